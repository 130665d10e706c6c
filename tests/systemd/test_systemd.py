# SPDX-License-Identifier: GPL-2.0-only
"""README's lines on a real system: Debian with systemd, installed with `make install`, rebooted, cut, and
with devices missing.

    /usr/bin/python3 -m pytest tests/systemd            # as root; FOREBAY_DEBIAN=13 for the other release

Runs on the host (vm/image, vm/system.py). The tests are one story, in this order, of one machine: an NVDIMM
with three namespaces and two SSDs, for a forebay mount at /srv/db, a write log at /srv/fast and a transit
cache at /srv/quick.
"""

import json
import re
from contextlib import contextmanager

import pytest

from steps import ORIGIN, RELEASE, SSD, machine, write_file
from vm import debian
from vm.settings import GIB, MIB, Settings
from vm.system import LIMIT

PMEM = 320 * MIB
MOUNTS = ("db", "fast", "quick")
UNITS = ("srv-db.mount", "srv-fast.mount", "srv-quick.mount", "forebay-writelog@fast.service",
         "forebay-transit@quick.service")

NAMESPACES = """ndctl disable-region all && ndctl init-labels all && ndctl enable-region all
ndctl create-namespace -r region0 -m fsdax --map=mem -s 96M
ndctl create-namespace -r region0 -m fsdax --map=mem -s 96M
ndctl create-namespace -r region0 -m sector -s 64M"""

FSTAB = """{ssd}  /srv/ssd  ext4  defaults  0  2
/srv/ssd  /srv/db  forebay  cache={cache}  0  0
/dev/mapper/fast  /srv/fast  ext4  x-systemd.requires=forebay-writelog@fast.service,x-systemd.device-timeout=10min  0  2
/dev/mapper/quick  /srv/quick  ext4  x-systemd.requires=forebay-transit@quick.service  0  2
"""

DROP_IN = """[Unit]
RequiresMountsFor=/srv/db
"""

# Of what a shutdown prints on the console
TROUBLE = re.compile(r"FAILED|Failed |busy|[Ww]arning|Could not|timed out|not a mount", re.IGNORECASE)


def prepare(system):
    """Carries out the steps that README gives an administrator; returns the lasting names of the
    namespaces."""
    # systemd hasn't waited for them
    system.run(f"udevadm wait --timeout={LIMIT} /dev/pmem0 {ORIGIN} {SSD}")
    system.run(f"set -e\n{NAMESPACES}\nudevadm settle")
    spaces = sorted(json.loads(system.run("ndctl list")), key=lambda space: space["blockdev"])
    cache, log, disk = [f"/dev/disk/by-id/pmem-{space['uuid']}" for space in spaces]
    assert [space["mode"] for space in spaces] == ["fsdax", "fsdax", "sector"]
    system.run(f"mkdir -p /srv/ssd /srv/db /srv/fast /srv/quick && chattr +i /srv/db && mkfs.ext4 -q {SSD}")
    system.run(f"forebay format {cache} && forebay writelog format {log}")
    write_file(system, "/etc/forebay/writelog/fast",
               f'ORIGIN={ORIGIN}\nLOG={log}\nOPTIONS="--option block_size=4096"\n')
    write_file(system, "/etc/forebay/transit/quick", f'DEVICE={disk}\nOPTIONS="--option cache_size=16M"\n')
    system.run("systemctl start forebay-writelog@fast forebay-transit@quick && "
               "mkfs.ext4 -q /dev/mapper/fast && mkfs.ext4 -q /dev/mapper/quick")
    write_file(system, "/etc/fstab", FSTAB.format(ssd=SSD, cache=cache), append=True)
    system.run("systemctl daemon-reload && systemctl start srv-db.mount srv-fast.mount srv-quick.mount")


@contextmanager
def prepared(image, name):
    """A machine that has README's steps behind it, before its first reboot."""
    with machine(image, name, Settings(pmem=PMEM, nvme=GIB, nvme_count=2, mem=GIB)) as system:
        system.boot()
        assert system.settle() == "running", system.run("systemctl --failed")
        prepare(system)
        yield system


@pytest.fixture(name="system", scope="module")
def fixture_system():
    with prepared(debian.build(RELEASE, install=True), "story") as system:
        yield system


def mark(system, text):
    """Data that are durable when this returns."""
    for mount in MOUNTS:
        system.run(f"echo {text} >/srv/{mount}/mark && sync /srv/{mount}/mark")


def check_all_up(system, text):
    """Every unit is active by itself, every mount has its data, and nothing failed."""
    assert system.settle() == "running", system.run("systemctl --failed; "
                                                    "journalctl -b -p warning -o cat | tail -50")
    assert set(system.run(f"systemctl is-active {' '.join(UNITS)}").split()) == {"active"}
    types = [system.run(f"findmnt -no FSTYPE /srv/{mount}") for mount in MOUNTS]
    assert types == ["forebay", "ext4", "ext4"]
    assert [system.run(f"cat /srv/{mount}/mark") for mount in MOUNTS] == [text] * len(MOUNTS)


def check_shutdown(system, how):
    """A shutdown prints no line that needs an administrator's attention."""
    before = len(system.said())
    system.shut_down(how)
    shutdown = system.said()[before:]
    assert "reboot: " in shutdown
    assert not [line for line in shutdown.splitlines() if TROUBLE.search(line)], shutdown


def edit_fstab(system, script):
    system.run(f"sed -i '{script}' /etc/fstab && cat /etc/fstab")


def test_reboot(system):
    mark(system, "first")
    check_shutdown(system, "reboot")
    system.boot()
    check_all_up(system, "first")
    stopped = system.run("journalctl -b -1 -o cat -u 'forebay-*'")
    assert "Stopped" in stopped and "removed" not in stopped and "Don't" not in stopped, stopped


def test_power_cut(system):
    mark(system, "second")
    system.cut()
    system.boot()
    check_all_up(system, "second")


def test_a_unit_ends_with_its_device(system):
    """After `remove` the unit isn't active: the mount can start it again."""
    for kind, name in (("writelog", "fast"), ("transit", "quick")):
        unit = f"forebay-{kind}@{name}.service"
        system.run(f"umount /srv/{name} && forebay {kind} remove {name} && udevadm settle")
        system.run(f"for second in $(seq 100); do systemctl is-active {unit} || break; sleep 1; done")
        assert system.run(f"systemctl is-failed {unit}", check=False) == "inactive"
        system.run(f"systemctl start srv-{name}.mount")
    check_all_up(system, "second")


def test_service_that_needs_the_mount(system):
    """PostgreSQL, from the package, with its data there."""
    version = system.run("ls /etc/postgresql")
    system.run(f"pg_dropcluster --stop {version} main; mkdir /srv/db/pg && chown postgres: /srv/db/pg && "
               f"pg_createcluster -d /srv/db/pg/data {version} main")
    write_file(system, f"/etc/systemd/system/postgresql@{version}-main.service.d/forebay.conf", DROP_IN)
    system.run(f"systemctl daemon-reload && systemctl start postgresql@{version}-main && "
               "runuser -u postgres -- psql -qc 'create table t as select 42 as n'")
    check_shutdown(system, "reboot")
    system.boot()
    check_all_up(system, "second")
    assert system.run("runuser -u postgres -- psql -Atc 'select n from t'") == "42"
    times = [int(system.run(f"systemctl show -P ActiveEnterTimestampMonotonic {unit}"))
             for unit in ("srv-ssd.mount", "srv-db.mount", f"postgresql@{version}-main.service")]
    assert times == sorted(times)


def check_db_is_missing(system, needs):
    """The boot went on, it says why there is no /srv/db, and nothing has written to the bare directory."""
    assert system.settle() == "degraded"
    failed = system.run("systemctl --failed --plain --no-legend")
    assert "forebay-unmounted@srv-db.service" in failed
    reason = system.run("journalctl -b -o cat -u forebay-unmounted@srv-db.service")
    assert "/srv/db is not mounted" in reason and needs in reason, reason
    assert system.run("findmnt /srv/db", check=False) == ""
    assert system.run("ls -A /srv/db") == ""
    service = "postgresql@$(ls /etc/postgresql)-main"
    assert system.run(f"systemctl is-active {service}", check=False) == "inactive"
    return failed


def test_missing_pmem(system):
    """With nofail, everything that needs the PMem is missing and everything else is there."""
    edit_fstab(system, r"s/cache=\S*/&,nofail,x-systemd.device-timeout=20s/; s/=10min/=90s/; "
                r"/mapper/s/x-systemd.requires/nofail,x-systemd.before=local-fs.target,&/")
    system.shut_down()
    system.settings.pmem = 0
    system.boot()
    failed = check_db_is_missing(system, "srv-db.mount")
    for unit in ("srv-db.mount", "forebay-writelog@fast.service", "forebay-transit@quick.service"):
        assert unit in failed
    assert "srv-ssd.mount" not in failed


def test_missing_ssd(system):
    """PMem is back, and the SSD is missing: the mount isn't tried over the empty directory."""
    edit_fstab(system, "s/,x-systemd.device-timeout=20s//; s/=90s/=10min/; "
                       "/srv.ssd *ext4/s/defaults/nofail,x-systemd.device-timeout=20s/")
    system.shut_down()
    system.settings.pmem = PMEM
    system.settings.nvme_count = 1
    system.boot()
    failed = check_db_is_missing(system, "srv-ssd.mount")
    assert "srv-fast.mount" not in failed and "srv-quick.mount" not in failed


def test_everything_is_back(system):
    edit_fstab(system, "s/,x-systemd.device-timeout=20s//")
    system.shut_down()
    system.settings.nvme_count = 2
    system.boot()
    check_all_up(system, "second")
    assert system.run("runuser -u postgres -- psql -Atc 'select n from t'") == "42"
    check_shutdown(system, "poweroff")
