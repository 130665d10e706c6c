# SPDX-License-Identifier: GPL-2.0-only
"""The units that make mapped devices at boot, with the files and the lines of fstab that the documents show: what systemd says of them.

No systemd runs here (but in tests/systemd): its own reader, its generator for fstab and `systemd-analyze verify` do, which finds words that it doesn't
know, programs that aren't there, and units that wait for each other.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = "/usr/lib/systemd/system-generators/systemd-fstab-generator"
KINDS = {"writelog": "fast", "transit": "quick"}
USAGE = 16


def block(kind, heading):
    """The indented lines below a comment in the document."""
    text = (ROOT / f"docs/{kind}.md").read_text(encoding="utf-8")
    return re.search(rf"^    # {re.escape(heading)}\n((?:    [^#\n].*\n)+)", text, re.MULTILINE)[1].replace("    ", "", 1)


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """As installed, except for the folder of the command."""
    subprocess.run(["make", "-s", "-C", ROOT / "packaging", "units", f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True)
    folder = tmp_path / "units"
    folder.mkdir()
    command = tmp_path / "forebay"
    command.symlink_to("/bin/true")
    for unit in (tmp_path / "usr/lib/systemd/system").iterdir():
        (folder / unit.name).write_text(unit.read_text(encoding="utf-8").replace("/usr/sbin/forebay", str(command)), encoding="utf-8")
    return folder


def mounts(folder):
    """The units that systemd makes of the fstab in the documents."""
    fstab = folder.parent / "fstab"
    fstab.write_text("".join(block(kind, "/etc/fstab") for kind in KINDS), encoding="utf-8")
    subprocess.run([GENERATOR, folder, folder, folder], env={**os.environ, "SYSTEMD_FSTAB": str(fstab)}, check=True)
    return {kind: (folder / f"srv-{name}.mount").read_text(encoding="utf-8") for kind, name in KINDS.items()}


def verify(folder):
    """The complaints of systemd about all of them together, with its own units."""
    units = [f"forebay-{kind}@{name}.service" for kind, name in KINDS.items()]
    done = subprocess.run(["systemd-analyze", "--man=no", "verify", "local-fs.target", *(f"srv-{name}.mount" for name in KINDS.values()), *units],
                          env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.stdout + (f"status {done.returncode}" if done.returncode else "")


def test_mounts_wait_for_the_units(folder):
    for kind, unit in mounts(folder).items():
        service = f"forebay-{kind}@{KINDS[kind]}.service"
        assert f"\nRequires={service}\n" in unit and f"\nAfter={service}\n" in unit
        # The order at shutdown, also of what is mounted by hand.
        assert f"\nAfter=blockdev@dev-mapper-{KINDS[kind]}.target\n" in unit
        assert "\nBefore=blockdev@dev-mapper-%i.target\n" in (folder / f"forebay-{kind}@.service").read_text(encoding="utf-8")


def test_mount_of_a_log_has_time_for_the_replay(folder):
    mounts(folder)
    timeout = (folder / "dev-mapper-fast.device.d/50-device-timeout.conf").read_text(encoding="utf-8")
    assert re.search(r"^JobRunningTimeoutSec=10min$", timeout, re.MULTILINE)
    assert "\nTimeoutStartSec=infinity\n" in (folder / "forebay-writelog@.service").read_text(encoding="utf-8")
    for page in "README.md", "docs/man/forebay-writelog.8":
        line = re.search(r"/dev/mapper/fast\s+/srv/fast .*", (ROOT / page).read_text(encoding="utf-8"))[0]
        assert line.split() == block("writelog", "/etc/fstab").split(), page


@pytest.mark.parametrize("code, done", [("killed", "writelog remove --no-flush --quiet fast\n"), ("exited", "")])
def test_what_a_killed_create_made_is_removed(folder, code, done):
    unit = (folder / "forebay-writelog@.service").read_text(encoding="utf-8")
    line = re.search("^ExecStopPost=-(.*)", unit, re.MULTILINE)[1].replace("%i", "fast").replace("$$", "$")
    command = folder.parent / "forebay"
    command.unlink()
    command.write_text("#!/bin/sh\necho $*\n", encoding="utf-8")
    command.chmod(0o755)
    ran = subprocess.run(shlex.split(line), env={**os.environ, "EXIT_CODE": code}, stdout=subprocess.PIPE, text=True, check=True)
    assert ran.stdout == done


def test_the_shell_runs_nothing_of_a_mount_point(folder):
    """systemd fills in names after it has split the line into words."""
    unit = (folder / "forebay-unmounted@.service").read_text(encoding="utf-8")
    line = re.search("^ExecStart=(.*)", unit, re.MULTILINE)[1]
    name = f"/srv/`touch {folder}/ran`$(touch {folder}/ran) $HOME\\n\"it's"
    names = {"%f": name, "%i": r"srv-x\x20y", "%%": "%", "$$": "$"}
    words = [re.sub(r"%[fi%]|\$\$", lambda found: names[found[0]], word) for word in shlex.split(line)]
    stub = folder.parent / "systemctl"
    stub.write_text('#!/bin/sh\necho "asked: $*"\n', encoding="utf-8")
    stub.chmod(0o755)
    done = subprocess.run(words, env={**os.environ, "PATH": f"{folder.parent}:{os.environ['PATH']}"}, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and not (folder / "ran").exists()
    first, second = done.stdout.splitlines()
    assert first == f"{name} is not mounted. What it needs, and how that is:"
    assert second.startswith(r"asked: --no-pager --plain --all --no-legend list-units -- srv-x\x20y.mount ")


def test_systemd_has_nothing_against_them(folder):
    mounts(folder)
    assert verify(folder) == ""


@pytest.mark.parametrize("change, said", [
    (("DefaultDependencies=no\n", ""), "ordering cycle"),
    (("RemainAfterExit", "RemainAfterwards"), "Unknown key"),
    (("udevadm wait", "udevadmm wait"), "not executable"),
])
def test_systemd_would_have(folder, change, said):
    mounts(folder)
    unit = folder / "forebay-writelog@.service"
    text = unit.read_text(encoding="utf-8")
    assert change[0] in text
    unit.write_text(text.replace(*change), encoding="utf-8")
    assert said in verify(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_are_taken(folder, kind):
    """With the settings from the documents, the command and udevadm accept their arguments, and find no such devices."""
    subprocess.run(["make", "-s", "-C", ROOT / "tools", "O=../build/tools"], check=True)
    settings = dict(line.split("=", 1) for line in block(kind, f"/etc/forebay/{kind}/{KINDS[kind]}").replace("    ", "").splitlines())
    settings = {key: shlex.split(value)[0] for key, value in settings.items()}
    assert settings.keys() <= {"ORIGIN", "LOG", "DEVICE", "OPTIONS"}
    lines = re.findall(r"^Exec(?!StopPost)\w+=(.*)", (folder / f"forebay-{kind}@.service").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        for key, value in {"WAIT": "0.1", **settings}.items():
            line = line.replace(f"${{{key}}}", value).replace(f"${key}", value)
        assert "$" not in line
        line = line.replace(str(folder.parent / "forebay"), str(ROOT / "build/tools/forebay"))
        words = shlex.split(line.replace("%i", "forebay-no-such-device"))
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if "-c" in words:       # only if the device is there
            assert (done.returncode, done.stdout) == (0, "")
            done = subprocess.run(["sh", "-c", words[2].replace("! -b", "! -n")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
        if words[0] == "udevadm":
            assert done.returncode and "Timed out" in done.stdout
        else:
            assert done.returncode not in (0, USAGE) and "usage:" not in done.stdout, done.stdout
