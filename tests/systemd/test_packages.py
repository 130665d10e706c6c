# SPDX-License-Identifier: GPL-2.0-only
"""The packages of `make deb` on a real system: installed by apt, booted, reinstalled in use, refused to be removed while in use
or with data in a log, and purged.

The tests are one story, in this order, of one machine, prepared as in test_systemd.py.
"""

import json
import re
import subprocess

import pytest

from steps import RELEASE
from test_systemd import check_all_up, check_shutdown, edit_fstab, mark, prepared
from vm import debian

PACKAGES = ("forebay", "forebay-dkms", "libforebay1", "libforebay-log0", "libforebay-dev", "python3-forebay")
MODULES = {"forebay", "dm-forebay-writelog", "dm-forebay-transit", "forebay-emu", "forebay-ranges"}
APT = "apt-get -y -o Dpkg::Use-Pty=0"      # through a terminal, its lines would end with a carriage return
LOG = "$(. /etc/forebay/writelog/fast && readlink -f $LOG)"
# What the test machine itself has of that name, and what logs and caches of others remember
FOREIGN = r"forebay-vm|^/usr/src/forebay-packages|^/var/(log|cache)/"


@pytest.fixture(name="system", scope="module")
def fixture_system():
    with prepared(debian.build(RELEASE, packages=True), "packages") as system:
        system.run("systemctl enable forebay-writelog@fast forebay-transit@quick")
        yield system


def check_installed(system):
    """Whatever dpkg has noted as wanted: a removal that was refused stays so."""
    states = system.run(f"dpkg-query -W -f '${{db:Status-Status}}\\n' {' '.join(PACKAGES)}")
    assert set(states.split()) == {"installed"}


def remove(system):
    """What `apt remove` says when it is refused; all stays as it is."""
    status, said = system.status(f"{APT} remove forebay forebay-dkms")
    assert status, said
    check_installed(system)
    return said


def test_what_apt_said():
    """DKMS built the modules, and nothing is left to do where 6.12 runs."""
    said = (debian.build(RELEASE, packages=True) / "install.log").read_text(errors="replace")
    assert re.search(r"Building initial module|Building module", said), said[-3000:]
    assert "forebay-dkms:" not in said, said[-3000:]


@pytest.mark.skipif(RELEASE != "12", reason="only Debian 12 has a kernel 6.1")
def test_what_apt_brings_to_the_own_kernel_of_debian_12():
    """A kernel 6.12 with its headers, for which DKMS builds the modules; and a word on the reboot."""
    image = debian.build("12-6.1", packages=True)
    said = (image / "install.log").read_text(errors="replace")
    assert re.search(r"forebay-dkms: Linux 6\.1\.\S+ runs, and the modules are for 6\.12: reboot into that", said), said[-3000:]
    kernels = subprocess.run(["debugfs", "-R", "ls -p /usr/lib/modules", image / "root.ext4"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, check=True).stdout
    kernel = re.search(r"/(6\.12\.[^/]+)/", kernels)[1]
    modules = subprocess.run(["debugfs", "-R", f"ls -p /usr/lib/modules/{kernel}/updates/dkms", image / "root.ext4"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    assert set(re.findall(r"/([\w-]*forebay[\w-]*)\.ko", modules)) == MODULES


def test_reboot(system):
    check_installed(system)
    mark(system, "first")
    check_shutdown(system, "reboot")
    system.boot()
    check_all_up(system, "first")
    assert system.run("python3 -c 'import forebay; print(forebay.__name__)'") == "forebay"


def test_installed_anew_in_use(system):
    """As an upgrade does it: mounts and mapped devices go on, and the message says that their modules do. DKMS is left out, since
    an emulated processor takes too long for a build; so the modules of before are not where modinfo looks for new ones."""
    system.run("for module in /lib/modules/*/updates/dkms/*forebay*; do mv $module $module.away; done; depmod; "
               "mount --bind /bin/true /usr/sbin/dkms")
    said = system.run("dpkg -i /usr/src/forebay-packages/*.deb; umount /usr/sbin/dkms")
    system.run("for module in /lib/modules/*/updates/dkms/*.away; do mv $module ${module%.away}; done; depmod")
    assert re.search(r"goes on with the modules from before: forebay .*dm_forebay_writelog", said), said
    check_installed(system)
    check_all_up(system, "first")


def test_removal_in_use(system):
    said = remove(system)
    for advice in ("umount /srv/db", "forebay writelog remove fast", "forebay transit remove quick"):
        assert f"\n  {advice}\n" in said, said
    status, said = system.status("dpkg --force-depends -r forebay-dkms")
    assert status and "in use" in said, said
    check_installed(system)
    check_all_up(system, "first")


def test_removal_with_data_in_a_log(system):
    """Nothing is in use, and the origin lacks what is in the log."""
    system.run("dd if=/dev/urandom of=/srv/fast/data bs=1M count=24 conv=fsync status=none && md5sum </srv/fast/data >/root/sum")
    system.run("umount /srv/fast && forebay writelog remove --no-flush fast")
    system.run("umount /srv/quick && forebay transit remove quick && umount /srv/db")
    assert json.loads(system.run(f"forebay writelog status --json {LOG}"))[0]["entries"] > 0
    log = system.run(f"echo {LOG}")
    said = remove(system)
    assert f"not removed: {log} holds data that the SSD lacks" in said, said
    system.run("systemctl start srv-fast.mount")
    assert system.run("md5sum </srv/fast/data") == system.run("cat /root/sum")


def test_purge(system):
    """With everything written back. Of Forebay nothing is left, and the data are on the disks."""
    system.run("umount /srv/fast && forebay writelog remove fast")
    status, said = system.status(f"{APT} purge {' '.join(PACKAGES)}")
    assert status == 0 and "/etc/fstab still mounts with Forebay: /srv/db" in said, said
    left = [name for name in system.run("find / -xdev -name '*forebay*'").splitlines() if not re.search(FOREIGN, name)]
    assert left == [], left
    assert system.run("lsmod | grep forebay", check=False) == ""
    assert system.run("ls /var/lib/dkms | grep forebay", check=False) == ""
    units = system.run("systemctl list-unit-files --no-legend 'forebay*'", check=False)
    assert [line.split()[0] for line in units.splitlines()] == ["forebay-vm-agent.service"]


def test_boot_without_forebay(system):
    edit_fstab(system, "/ forebay /d; /mapper/d")
    system.shut_down("reboot")
    system.boot()
    assert system.settle() == "running", system.run("systemctl --failed")
    assert system.run("cat /srv/ssd/mark") == "first"
    check_shutdown(system, "poweroff")
