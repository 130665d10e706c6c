# SPDX-License-Identifier: GPL-2.0-only
"""A mapped device with a target of ours over another device, as the tests of the targets set it up."""

import mmap
import os
import random
import subprocess
import time
from pathlib import Path

from stack import SSD, SSD2, block_name, run

VERIFICATOR = Path(__file__).resolve().parents[2] / "build/tests/verificator"
DEBUG = "debug" in os.uname().release      # of the kernel
MANY = 1000000      # writes of the checker, more than there is time for


class Target:
    """`module`, `kind` and `name` are those of the class; table() gives the line."""
    module = kind = name = ""

    def __init__(self, sectors):
        self.sectors = sectors
        self.options = {}

    @property
    def device(self):
        """The path by which other programs open the mapped device."""
        return f"/dev/mapper/{self.name}"

    def devices(self):
        """The devices that the table names, as words."""
        raise NotImplementedError

    def table(self, **options):
        """The table line."""
        self.options = options or self.options
        words = [f"{key} {value}" for key, value in self.options.items()]
        return f"0 {self.sectors} {self.kind} {self.devices()} {2 * len(words)} {' '.join(words)}"

    def create(self, **options):
        """Maps it."""
        run(f"modprobe {self.module}; dmsetup create {self.name} --table '{self.table(**options)}' && dmsetup mknodes")
        return self

    def remove(self):
        """Unmaps it."""
        run(f"dmsetup remove --retry {self.name}")

    def remove_after(self, worker):
        """Tries to unmap the device until its user has ended, so that it is removed at once then.
        Returns False if the device was removed before the user had opened it."""
        while worker.poll() is None:
            run(f"dmsetup remove {self.name} 2>/dev/null", check=False)     # busy
            time.sleep(0.01)
        assert worker.returncode == 0 or not Path(self.device).exists()
        if Path(self.device).exists():
            self.remove()
        return worker.returncode == 0

    def again(self):
        """Unmaps the device and maps it again."""
        self.remove()
        return self.create()

    def reload(self, **options):
        """Another table."""
        run(f"dmsetup load {self.name} --table '{self.table(**options)}'; dmsetup suspend {self.name}; dmsetup resume {self.name}")

    def message(self, text, check=True):
        """Sends a message."""
        return run(f"dmsetup message {self.name} 0 {text}", check)

    def write(self, offset, data):
        """Writes to the device, buffered and synced."""
        with Device(self.device) as fd:
            os.pwrite(fd, data, offset)
            os.fsync(fd)

    def read(self, offset, length, device=None):
        """Reads from the device after its caches were dropped."""
        block = 4096 if offset % 4096 == length % 4096 == 0 else 512
        return run_bytes(f"dd if={device or self.device} bs={block} skip={offset // block} count={length // block} iflag=direct status=none")


class Device:
    """A device opened for buffered I/O."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.fd = os.open(self.path, os.O_RDWR)
        return self.fd

    def __exit__(self, *exception):
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(self.fd)


def run_bytes(command):
    """Runs a command; returns its output as bytes."""
    return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE).stdout


def verificator(command, check=True):
    """Runs the checker; returns its output."""
    return run(f"{VERIFICATOR} {command}", check)


def beside_checker(arguments, rounds, step):
    """Carries out step(number) for some rounds while the checker works; then the checker must have found
    no error."""
    with subprocess.Popen([VERIFICATOR, *str(arguments).split()]) as worker:
        try:
            for number in range(rounds):
                assert worker.poll() is None, "it came to an end before the rounds did"
                step(number)
        finally:
            worker.terminate()
    assert worker.returncode == 0


def freeze_tasks():
    """Freezes all tasks that can be frozen for 5 seconds, as the kernel does before it suspends the machine or
    hibernates. Fails if a task can't be frozen in 20 seconds."""
    Path("/sys/power/pm_test").write_text("freezer", encoding="ascii")
    Path("/sys/power/state").write_text("freeze", encoding="ascii")


def flush_in_freeze(name):
    """Freezes all tasks while a message flush is under way, which continues afterwards."""
    with subprocess.Popen(["dmsetup", "message", name, "0", "flush"]) as flush:
        time.sleep(0.5)
        freeze_tasks()
        assert flush.wait(120) == 0


def direct_from_anywhere(device, block_size, rounds, write_each, step=lambda number: None):
    """Direct I/O over the first SSD with buffers that begin wherever the device takes them. One request in `write_each`
    writes, the others must read what was written. step(number) comes after each."""
    model = bytearray(noise(1 << 20))
    Path("/tmp/model").write_bytes(model)
    run(f"dd if=/tmp/model of={SSD} bs=1M oflag=direct status=none")
    queue = Path("/sys/block") / block_name(device) / "queue"
    align = int((queue / "dma_alignment").read_text(encoding="ascii")) + 1
    chance = random.Random(3)
    memory = memoryview(mmap.mmap(-1, 40 * block_size + 4096))
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    try:
        for number in range(rounds):
            size, begin = chance.randint(1, 40) * block_size, chance.randrange(0, 4096, align)
            at = chance.randrange(0, len(model) - size, block_size)
            view = memory[begin:begin + size]
            if number % write_each == 0:
                view[:] = model[at:at + size] = chance.randbytes(size)
                assert os.pwritev(fd, [view], at) == size
            else:
                assert os.preadv(fd, [view], at) == size
                assert view == model[at:at + size], (number, at)
            step(number)
    finally:
        os.close(fd)


def slow_device(sectors, device, milliseconds):
    """Makes a device whose writes take so much longer."""
    run("modprobe dm-delay")
    run(f"dmsetup create slow --table '0 {sectors} delay {device} 0 0 {device} 0 {milliseconds}' && dmsetup mknodes")
    return "/dev/mapper/slow"


def delay_writes(sectors, device, milliseconds):
    """Changes that, while it is in use."""
    run("dmsetup suspend --noflush slow && "
        f"dmsetup load slow --table '0 {sectors} delay {device} 0 0 {device} 0 {milliseconds}' && dmsetup resume slow")


def logged_device(sectors):
    """Makes a device of one MiB of zeros, below which dm-log-writes records all writes on the second
    SSD."""
    run("modprobe dm-log-writes")
    run(f"dd if=/dev/zero of={SSD} bs=1M count=1 conv=fsync status=none")
    run(f"dmsetup create logw --table '0 {sectors} log-writes {SSD} {SSD2}' && dmsetup mknodes")
    return "/dev/mapper/logw"


def small_device(name, mib, device, offset_mib=0):
    """A part of a device."""
    run(f"dmsetup create {name} --table '0 {mib * 2048} linear {device} {offset_mib * 2048}' && dmsetup mknodes")
    return f"/dev/mapper/{name}"


def noise(size, seed=1):
    """Bytes that occur nowhere else."""
    return random.Random(seed).randbytes(size)
