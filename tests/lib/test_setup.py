# SPDX-License-Identifier: GPL-2.0-only
"""What scripts/setup asks apt for, by the release of Debian and the kernel that runs, and what it says."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(name="setup")
def fixture_setup(tmp_path):
    """scripts/setup on a machine made up of a release, a running kernel and installed packages; nothing is installed."""
    def run(*arguments, debian="12", kernel="6.1.0-49-amd64", installed=(), works=True, apt=None):
        (tmp_path / "os-release").write_text(f'ID=debian\nVERSION_ID="{debian}"\n', encoding="utf-8")
        listed = "".join(f"ii  {name}\\n" for name in installed)
        programs = {
            "uname": f"echo {kernel}",
            "id": "echo 0",
            "modinfo": "echo NEW",
            "dpkg-query": f"""case "$*" in
*'{{Package}}'*) printf '{listed}' ;;
*) for name; do :; done; case " {' '.join(installed)} " in *" $name "*) echo 'ii ' ;; *) exit 1 ;; esac ;;
esac""",
            "apt-get": 'for word; do case $word in install) asked=1 ;; -*) ;; *) [ -z "${asked-}" ] || echo "apt: $word" ;; esac; done; '
                       + (apt or str(works).lower()),
        }
        for name, script in programs.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            (tmp_path / name).chmod(0o755)
        done = subprocess.run([ROOT / "scripts/setup", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "OS_RELEASE": str(tmp_path / "os-release"),
                                   "POLICY": str(tmp_path / "policy"), "SYS_MODULE": str(tmp_path / "modules")})
        assert (done.returncode == 0) == works, done.stdout
        asked = {line.removeprefix("apt: ") for line in done.stdout.splitlines() if line.startswith("apt: ")}
        return {name for name in asked if name.startswith("linux-")}, asked, done.stdout
    return run


@pytest.mark.parametrize("debian, kernel, installed, wanted", [
    ("12", "6.1.0-49-amd64", ["linux-image-amd64"], {"linux-image-6.12-amd64", "linux-headers-6.12-amd64"}),
    ("12", "6.12.57+deb12-amd64", ["linux-image-6.12-amd64"], {"linux-headers-6.12.57+deb12-amd64", "linux-headers-6.12-amd64"}),
    ("13", "6.12.48+deb13-amd64", ["linux-image-amd64"], {"linux-headers-6.12.48+deb13-amd64", "linux-headers-amd64"}),
    ("13", "6.12.48+deb13-cloud-amd64", ["linux-image-cloud-amd64"],
     {"linux-headers-6.12.48+deb13-cloud-amd64", "linux-headers-cloud-amd64"}),
    ("13", "6.12.48+deb13-amd64", [], {"linux-headers-6.12.48+deb13-amd64"}),
    ("13", "6.17.8+deb13-amd64", ["linux-image-amd64"], {"linux-headers-amd64"}),
])
def test_kernel_for_install(setup, debian, kernel, installed, wanted):
    """If a kernel 6.12 runs, no other one is installed."""
    linux, asked, said = setup("--for", "install", debian=debian, kernel=kernel, installed=installed)
    assert linux == wanted
    assert {"ndctl", "dkms"} <= asked
    brings = any(name.startswith("linux-image") for name in wanted)
    assert ("is what the next boot starts" in said.split("apt:")[0]) == brings, said


@pytest.mark.parametrize("debian, wanted", [
    ("12", {"linux-image-6.12-amd64", "linux-headers-6.12-amd64"}), ("13", {"linux-image-amd64", "linux-headers-amd64"})])
def test_kernel_for_the_test_machine(setup, debian, wanted):
    assert setup("--for", "demo", debian=debian)[0] == wanted


def test_what_would_be_installed(setup):
    """`make demo` says it first."""
    linux, asked, said = setup("--for", "demo", "--tell")
    assert not asked and not linux and "packages and what they need, by apt-get, as root: " in said and "redis-server" in said
    wanted = said.split(": ")[1].split()
    assert setup("--for", "demo", "--tell", installed=wanted)[2] == "No package has to be installed.\n"
    assert setup("--for", "demo", "--tall", works=False)[2].startswith("usage: ")


def test_tools_for_packages(setup):
    """No kernel is brought: DKMS builds the modules where the packages are installed."""
    linux, asked, _ = setup("--for", "deb")
    assert not linux and {"debhelper", "dh-dkms", "dh-python", "lintian"} <= asked


def test_java_of_any_release(setup):
    """Each release of Debian has other versions of Java."""
    assert setup("--for", "ycsb", debian="13")[1] == {"default-jdk-headless", "maven"}


def test_headers_that_the_archive_lacks(setup):
    said = setup("--for", "install", debian="13", kernel="6.12.48+deb13-amd64", works=False)[2]
    assert "apt-get install linux-image-amd64 linux-headers-amd64, reboot, and try again" in said


def test_sources_without_security(setup):
    said = setup("--for", "install", works=False)[2]
    assert "bookworm-security must be among the sources of apt" in said
    assert "bookworm-security" not in setup("--for", "deb", works=False)[2]


def test_what_is_left_to_do(setup):
    assert "Reboot into Linux 6.12" in setup("--left", kernel="6.1.0-49-amd64")[2]
    said = setup("--left", kernel="6.12.57+deb12-amd64")[2]
    assert "no reboot is needed" in said and "Reboot" not in said


@pytest.mark.parametrize("signal", ["HUP", "INT", "TERM"])
def test_daemons_start_again_after_a_signal(setup, tmp_path, signal):
    """As when the connection over which it runs is lost."""
    said = setup("--for", "demo", works=False, apt=f"[ ! -x {tmp_path}/policy ] || echo forbidden; kill -{signal} $PPID; exit 1")[2]
    assert "forbidden" in said and not (tmp_path / "policy").exists()


def test_no_daemon_is_forbidden_without_need(setup, tmp_path):
    said = setup("--for", "install", apt=f"[ ! -e {tmp_path}/policy ] || echo forbidden")[2]
    assert "forbidden" not in said and not (tmp_path / "policy").exists()


@pytest.mark.parametrize("loaded, outdated", [({"forebay": "NEW"}, ""), ({"forebay": "OLD"}, "forebay"),
                                              ({"forebay": "NEW", "dm_forebay_writelog": "OLD", "foreign": "OLD"}, "dm_forebay_writelog")])
def test_modules_from_before(setup, tmp_path, loaded, outdated):
    for name, version in loaded.items():
        (tmp_path / "modules" / name).mkdir(parents=True)
        (tmp_path / "modules" / name / "srcversion").write_text(f"{version}\n", encoding="utf-8")
    said = setup("--left", kernel="6.12.57+deb12-amd64")[2]
    assert ("no reboot is needed" in said) == (not outdated)
    assert not outdated or f"modprobe -r {outdated}; or reboot" in said
