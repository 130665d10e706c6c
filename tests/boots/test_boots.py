# SPDX-License-Identifier: GPL-2.0-only
"""What a power cut leaves to the next boot. Runs on the host, and boots a machine twice for each test (tests/run):

    /usr/bin/python3 -m pytest tests/boots

FOREBAY_KERNEL=debug chooses the kernel. What happens in the machine is in guest.py.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from bench import engine                                # noqa: E402
from vm.machine import Machine                          # noqa: E402
from vm.settings import GIB, MIB, Settings              # noqa: E402

KERNEL = os.environ.get("FOREBAY_KERNEL", "stock")


@pytest.fixture(name="devices")
def devices_fixture(request):
    """A folder for the devices' images; not in /tmp, which may be memory."""
    folder = CHECKOUT / "build/boots" / request.node.name
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def boot(devices, part, pmem=64, **options):
    """Carries out one part; returns what it said, as a dictionary of the lines' first words."""
    settings = Settings(**{"pmem": pmem * MIB, "nvme": GIB, "mem": GIB, "kernel": KERNEL, "keep": devices,
                           "timeout": 240 if KERNEL == "stock" else 900, **options})
    said, errors = {}, []
    guest = CHECKOUT / "tests/boots/guest.py"
    with Machine(settings, ["/usr/bin/python3", str(guest), part], stderr=errors.append) as machine:
        for line in machine.lines():
            word, _, rest = line.partition(" ")
            said[word] = rest
            if word == "cut":
                machine.cut()
        result = machine.wait()
    text = b"".join(errors).decode(errors="replace")
    assert not result.reports, "\n".join(result.reports)
    assert {"cut", "off"} & set(said) if part.endswith("_1") else result.status == 0, f"{part}: status {result.status}\n{text}"
    return said


def two_boots(devices, name, **options):
    """Two parts, with a power cut between them or the machine switched off; what the second said."""
    boot(devices, f"{name}_1", **options)
    return boot(devices, f"{name}_2", **options)


def test_mount_with_a_full_cache(devices, capsys):
    """256 MiB of pages that are not below: the mount call doesn't wait for any of them."""
    said = two_boots(devices, "full", pmem=256 + 32)
    with capsys.disabled():
        print(f" mount took {said['seconds']} s with {said['recovered']} pages", end=" ")
    assert int(said["recovered"]) * 4096 >= 256 * MIB
    assert float(said["seconds"]) < (1 if KERNEL == "stock" else 10)


def test_deletion_that_was_not_durable(devices):
    two_boots(devices, "deleted")


def test_files_changed_below(devices):
    two_boots(devices, "changed")


def test_stores_of_fios_engine(devices):
    engine.make()
    two_boots(devices, "fio")


def test_machine_is_switched_off_with_a_transit_cache(devices):
    """The machine flushes the cache, as it flushes those of disks. A device that doesn't answer delays the end by
    a minute."""
    two_boots(devices, "transit")


@pytest.mark.skipif(KERNEL != "stock", reason="6 GiB of memory, and 3 minutes on the stock kernel")
def test_cache_of_300_gib(devices):
    """The cache's tables in DRAM are larger than 2 GiB. The device's image is sparse: some 6 GiB of it
    are written."""
    said = boot(devices, "large", pmem=300 * 1024, raw_pmem=True, mem=6 * GIB, timeout=900)
    assert int(said["pages"]) > 2**31 // 40
