# SPDX-License-Identifier: GPL-2.0-only
"""Images of caches and write logs: what a commit's core and command find in one. For `make` and test_formats.py.

The same code describes an image with the commit that made it and with today's. So the two descriptions can be compared.
"""

import hashlib
import json
import lzma
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORE = ["store/page.c", "store/file.c", "store/super.c", "log/super.c", "log/gen.c", "log/append.c", "log/replay.c", "pm/host.c"]
ONE_STORE_CORE = ["store/store.c", *CORE[2:]]  # up to 51e9248
FLAT_CORE = ["pagestore.c", "super.c", "writelog_super.c", "writelog_gen.c", "writelog_append.c", "writelog_replay.c", "host_pm.c"]
SECTOR = 512
NO_DATA = {2, 3}        # discards and zeroes, enum wl_op; here both leave zeros
WORDING = {"device", "problem", "detail"}


def kind(path):
    """cache or log; the names of images begin with it."""
    return path.name.partition("-")[0]


def build(name, checkout, program, *flags):
    """Builds make_images.c or read_image.c with the core of a checkout."""
    core = checkout / "core"
    lists = (CORE, ONE_STORE_CORE, FLAT_CORE)       # flat up to 4c15243
    files = next(paths for paths in ([core / file for file in one] for one in lists) if paths[0].exists())
    if (core / "names").is_dir():
        files += [*(core / "names").glob("*.c"), HERE / f"{name.partition('_')[0]}_names.c"]
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", *flags, f"-I{core}",
                    "-o", program, HERE / f"{name}.c", *files], check=True)
    return program


def unpack(packed, path):
    """Unpacks an image of tests/formats; its zeros take no space."""
    data = lzma.decompress(packed.read_bytes())
    with open(path, "wb") as image:
        image.truncate(len(data))
        for at in range(0, len(data), 1 << 16):
            part = data[at:at + (1 << 16)]
            if any(part):
                image.seek(at)
                image.write(part)
    return path


def with_hashes(found, data):
    """Adds what its data are to each record that has data: a hash, and the first words, for people."""
    for record in found:
        if record.get("bytes"):
            own = data[record["data"]:record["data"] + record["bytes"]]
            record |= {"sha256": hashlib.sha256(own).hexdigest(), "begins": own[:32].decode(errors="replace").rstrip(".\n")}
    return found


def replayed(found, data):
    """A hash of an origin of zeros after the replay of a log."""
    origin = bytearray(SECTOR * found[0]["origin_sectors"])
    for entry in (record for record in found if record["what"] == "entry"):
        own = data[entry["data"]:entry["data"] + entry["bytes"]]
        length = SECTOR * entry["nr_sectors"]
        origin[SECTOR * entry["sector"]:SECTOR * entry["sector"] + length] = bytes(length) if entry["op"] in NO_DATA else own
    return hashlib.sha256(origin).hexdigest()


def recovered(reader, path, *options):
    """What core finds in an image, and the origin after a replay."""
    done = subprocess.run([reader, kind(path), path, *options], check=True, capture_output=True, text=True)
    data = path.read_bytes()
    found = with_hashes([json.loads(line) for line in done.stdout.splitlines()], data)
    return {"found": found, "origin": replayed(found, data) if found[0]["what"] == "log" else None}


def without_wording(value):
    """A report of the command without the path, and without sentences for people."""
    if isinstance(value, dict):
        return {key: without_wording(item) for key, item in value.items() if key not in WORDING}
    return [without_wording(item) for item in value] if isinstance(value, list) else value


def reported(command, path):
    """What the command says of an image, and how it exits."""
    noun = ["writelog"] if kind(path) == "log" else []
    reports = {}
    for verb in ("check", "status"):
        done = subprocess.run([command, *noun, verb, "--json", path], capture_output=True, text=True, check=False)
        reports[verb] = {"exit": done.returncode, "json": without_wording(json.loads(done.stdout or "null"))}
    return reports
