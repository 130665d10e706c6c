# SPDX-License-Identifier: GPL-2.0-only
"""What forebay-generator adds to systemd's units for lines of /etc/fstab; tests/systemd boots with it."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FSTAB_GENERATOR = "/usr/lib/systemd/system-generators/systemd-fstab-generator"
CACHE = "/dev/disk/by-id/pmem-5a0b8c0e-6a1f"
DEVICE = r"dev-disk-by\x2did-pmem\x2d5a0b8c0e\x2d6a1f.device"


@pytest.fixture(name="generate")
def fixture_generate(tmp_path):
    """Lines of fstab -> the folder with systemd's own units for them, and what our generator adds."""
    subprocess.run(["make", "-s", "-C", ROOT / "packaging", "units", f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True)
    generator = tmp_path / "usr/lib/systemd/system-generators/forebay-generator"

    def run(*lines):
        (tmp_path / "fstab").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        folder = tmp_path / "units"
        folder.mkdir()
        (folder / "forebay-unmounted@.service").write_bytes((tmp_path / "usr/lib/systemd/system/forebay-unmounted@.service").read_bytes())
        for program in FSTAB_GENERATOR, generator:
            subprocess.run([program, folder, folder, folder], env={**os.environ, "SYSTEMD_FSTAB": str(tmp_path / "fstab")}, check=True)
        return folder
    return run


def settings(folder, unit):
    """The drop-in for a unit, as a set of lines; empty if there is none."""
    path = folder / f"{unit}.d/50-forebay.conf"
    return set(path.read_text(encoding="utf-8").splitlines()[2:]) if path.exists() else set()


@pytest.mark.parametrize("nofail", ["", ",nofail"])
def test_one_plain_line(generate, nofail):
    """The mount waits for the cache, needs the lower file system, and precedes services, with `nofail` or without."""
    folder = generate(f"/srv/ssd /srv/db forebay cache={CACHE}{nofail} 0 0")
    assert settings(folder, "srv-db.mount") == {
        'RequiresMountsFor="/srv/ssd"', f"Wants={DEVICE}", f"After={DEVICE}", "Before=local-fs.target",
        "OnFailure=forebay-unmounted@srv-db.service"}


@pytest.mark.parametrize("cache, device", [
    ("UUID=0d7c-12", r"dev-disk-by\x2duuid-0d7c\x2d12.device"), ("/dev/pmem0.1", "dev-pmem0.1.device"), ("/dev//pmem0/", "dev-pmem0.device"),
    ("UUID=0D7C-12", r"dev-disk-by\x2duuid-0d7c\x2d12.device"), ('"UUID=0d7c-12"', r"dev-disk-by\x2duuid-0d7c\x2d12.device"),
    ('"/dev/pmem0"', "dev-pmem0.device"), ("PARTUUID=0D7C-12", r"dev-disk-by\x2dpartuuid-0d7c\x2d12.device"),
    ("PARTLABEL=Cache", r"dev-disk-by\x2dpartlabel-Cache.device"),
    (r"PARTLABEL=my\040log", r"dev-disk-by\x2dpartlabel-my\x5cx20log.device")])
def test_names_of_the_cache(generate, cache, device):
    added = settings(generate(f"/srv/ssd /srv/db forebay cache={cache} 0 0"), "srv-db.mount")
    assert {f"Wants={device}", f"After={device}"} <= added


@pytest.mark.parametrize("path", ["/", "/srv/my db", "/srv//x/", "/.hidden/é%b", r"/a\b", "/x-y"])
def test_units_are_named_as_systemd_names_them(generate, path):
    """Paths with special characters are escaped, and the path of the lower directory is complete."""
    escaped = path.replace("\\", r"\134").replace(" ", r"\040")
    folder = generate(f"{escaped} {escaped} forebay cache=/dev/pmem0 0 0")
    unit = subprocess.run(["systemd-escape", "--path", "--suffix=mount", path], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    quoted = os.path.normpath(path).replace("\\", "\\\\").replace("%", "%%")
    assert {line for line in settings(folder, unit) if line.startswith("RequiresMountsFor")} == {f'RequiresMountsFor="{quoted}"'}


@pytest.mark.parametrize("target", ["{0}/link/db", "{0}/./real//db/", "{0}/real/../link/./db", "{0}/dangling/db", "{0}/relative/db"])
def test_mount_point_behind_a_link(generate, tmp_path, target):
    """The drop-in is for the unit that systemd's own generator makes."""
    (tmp_path / "real").mkdir()
    for name, to in {"link": tmp_path / "real", "dangling": tmp_path / "later/on", "relative": "../" + tmp_path.name + "/real"}.items():
        (tmp_path / name).symlink_to(to)
    folder = generate(f"/srv/ssd {target.format(tmp_path)} forebay cache={CACHE} 0 0")
    unit, = (path.name for path in folder.glob("*.mount"))
    assert [path.name for path in folder.glob("*.mount.d")] == [f"{unit}.d"]
    assert f"OnFailure=forebay-unmounted@{unit.removesuffix('.mount')}.service" in settings(folder, unit)


def test_lower_directory_behind_a_link(generate, tmp_path):
    """What the link is on is needed, and what it leads to."""
    (tmp_path / "link").symlink_to("/mnt/disk")
    folder = generate(f"{tmp_path}/link/ssd /srv/db forebay cache={CACHE} 0 0")
    assert f'RequiresMountsFor="/mnt/disk/ssd" "{tmp_path}/link/ssd"' in settings(folder, "srv-db.mount")


def test_a_circle_of_links(generate, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    folder = generate(f"{tmp_path}/a /srv/db forebay cache={CACHE} 0 0")
    assert f'RequiresMountsFor="{tmp_path}/a"' in settings(folder, "srv-db.mount")


def test_how_long_the_device_is_waited_for(generate):
    folder = generate(f"/srv/ssd /srv/db forebay cache={CACHE},nofail,x-systemd.device-timeout=10s 0 0")
    assert settings(folder, DEVICE) == {"JobRunningTimeoutSec=10s"}


@pytest.mark.parametrize("option, before", [
    ("noauto", set()), ("x-systemd.automount", set()), ("_netdev", {"Before=remote-fs.target"})])
def test_what_the_boot_need_not_wait_for(generate, option, before):
    added = settings(generate(f"/srv/ssd /srv/db forebay cache={CACHE},{option} 0 0"), "srv-db.mount")
    assert {line for line in added if line.startswith("Before")} == before and f"Wants={DEVICE}" in added


def test_other_lines_are_left_alone(generate):
    folder = generate("# /srv/ssd /srv/a forebay cache=/dev/pmem0 0 0", "/dev/sda1 /srv/b ext4 defaults 0 2", "", "tmpfs /srv/c tmpfs size=1M 0 0")
    assert not list(folder.glob("*/50-forebay.conf"))


def test_without_fstab(tmp_path, generate):
    folder = generate()
    (tmp_path / "fstab").unlink()
    generator = tmp_path / "usr/lib/systemd/system-generators/forebay-generator"
    before = sorted(folder.rglob("*"))
    done = subprocess.run([generator, folder, folder, folder], env={**os.environ, "SYSTEMD_FSTAB": str(tmp_path / "fstab")},
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.stdout == b"" and sorted(folder.rglob("*")) == before


def test_systemd_has_nothing_against_it(generate):
    folder = generate("/dev/nvme0n1 /srv/ssd ext4 defaults 0 2", f"/srv/ssd /srv/db forebay cache={CACHE},nofail 0 0")
    done = subprocess.run(["systemd-analyze", "--man=no", "verify", "local-fs.target", "srv-db.mount",
                           "forebay-unmounted@srv-db.service"],
                          env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
