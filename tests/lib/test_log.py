# SPDX-License-Identifier: GPL-2.0-only
"""libforebay-log off forebay: appends and their ends, after each kind of crash, on a disk's file system and on tmpfs."""

import ctypes
import errno
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINE, CHUNK = 64, 65536


@pytest.fixture(name="driver", scope="module")
def driver_fixture(tmp_path_factory):
    """log_driver, with the library in it and the sanitizer for undefined behaviour."""
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run(["make", "-s", "-C", ROOT / "lib", f"O={folder}/lib"], check=True)
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-g", "-D_GNU_SOURCE", "-fsanitize=undefined", "-fno-sanitize-recover",
                    f"-I{ROOT}/include", "-o", folder / "driver", ROOT / "tests/lib/log_driver.c", folder / "lib/libforebay-log.a",
                    "-pthread"], check=True)
    return folder / "driver"


@pytest.fixture(name="file", params=["disk", "tmpfs"])
def file_fixture(request, tmp_path):
    """The path of a log that is not there yet."""
    if request.param == "disk":
        yield tmp_path / "log"
    else:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            yield Path(folder) / "log"


def pattern(length):
    """As the driver writes them."""
    return bytes(0 if at % 7 == 6 else (at * 2654435761 % (1 << 64)) >> 13 & 0xff for at in range(length))


def drive(driver, file, *words, chunk=CHUNK, status=0):
    """What the driver prints: a number a line."""
    done = subprocess.run([driver, file, str(chunk), *map(str, words)], stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stdout
    return [int(line) for line in done.stdout.split()]


def test_a_closed_log_is_what_was_appended(driver, file):
    """Of every size around the page and the chunk; opened again, it goes on at its end."""
    rng, length = random.Random(1), 0
    for _ in range(12):
        words = []
        for _ in range(rng.randint(1, 6)):
            size = rng.choice([1, 63, 64, 65, 4095, 4096, 4097, CHUNK, CHUNK * 9, rng.randint(1, 100000)])
            length += size
            words += ["append", size, rng.choice(["sync", "settle", "sync"])]
        assert drive(driver, file, *words, "end") == [length]
        assert file.read_bytes() == pattern(length)


def test_killed(driver, file):
    """No byte that an append returned for is lost, synced or not, and none is added: as with write(2)."""
    rng, length = random.Random(2), 0
    for _ in range(10):
        words = []
        for _ in range(rng.randint(1, 5)):
            size = rng.randint(1, 2 * CHUNK)
            length += size
            words += ["append", size, *rng.choice([["sync"], []])]
        drive(driver, file, *words, "kill", status=-signal.SIGKILL)
        assert file.stat().st_size > length
        if rng.random() < 0.5:
            assert drive(driver, file, "recover") == [length]
            assert file.read_bytes() == pattern(length)
    drive(driver, file)
    assert file.read_bytes() == pattern(length)


def test_killed_while_it_works(driver, file):
    """At any moment, with the file growing: what was synced is there, and all is as appended."""
    rng = random.Random(3)
    for _ in range(8):
        with subprocess.Popen([driver, file, "4096", "forever", "9000"], stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()           # it works
            time.sleep(rng.uniform(0.01, 0.15))
            process.kill()
            lines = (first + process.stdout.read()).split("\n")[:-1]
        said = int(lines[-1])
        length, = drive(driver, file, "recover", chunk=4096)
        assert length >= said
        assert file.read_bytes() == pattern(length)


def mixed(rng, before, after, share):
    """A crash state: of each cache line, what was durable or what was stored later."""
    state = bytearray(before.ljust(len(after), b"\0"))
    for at in range(0, len(after), LINE):
        if before[at:at + LINE] != after[at:at + LINE] and rng.random() < share:
            state[at:at + LINE] = after[at:at + LINE]
    return bytes(state)


@pytest.mark.parametrize("last", [["append", 30000], ["append", 30000, "sync"], ["append", 1, "sync", "append", 500],
                                  ["append", 20000, "append", 100, "append", 4000]], ids=str)
def test_power_cut(driver, tmp_path, last):
    """Any subset of the lines stored since the last sync is durable: a log ends at or behind that sync, without a gap."""
    file, durable = tmp_path / "log", tmp_path / "durable"
    rng, ends = random.Random(4), set()
    drive(driver, file, "append", 10000, "sync", "append", 7777, "sync", "copy", durable, *last, "kill", status=-signal.SIGKILL)
    before, after = durable.read_bytes(), file.read_bytes()
    whole = 17777 + sum(word for word in last if isinstance(word, int))
    assert len(before) == len(after)
    for share in [0, 1] + [rng.choice([0.01, 0.5, 0.9, 0.99, 0.999]) for _ in range(60)]:
        file.write_bytes(mixed(rng, before, after, share))
        length, = drive(driver, file, "recover")
        assert 17777 <= length <= whole and (share or length == 17777) and (share < 1 or length == whole)
        assert file.read_bytes() == pattern(length)
        ends.add(length)
    assert len(ends) > 1


def test_a_file_of_others_stays_as_it_is(driver, file):
    """Also with zeros at its end, and one of pages with numbers like ours."""
    for contents in b"", b"x", bytes(8192), b"rfby-log" + bytes(4088), pattern(12288):
        file.write_bytes(contents)
        assert drive(driver, file, "recover") == [len(contents)]
        assert file.read_bytes() == contents
        file.write_bytes(contents)
        drive(driver, file, "append", 0)
        assert file.read_bytes() == contents


def test_bytes_that_look_like_a_place(driver, tmp_path):
    """A log with the last page of another log in it, or one like it that ends in a line of text, ends where it ended."""
    file, other = tmp_path / "log", tmp_path / "other"
    drive(driver, other, "append", 10, "kill", status=-signal.SIGKILL)
    place = other.read_bytes()
    for contents in place * 2, place[:-1] + b"\n":
        file.write_bytes(contents)
        drive(driver, file)
        assert file.read_bytes() == contents


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("chunk", ctypes.c_size_t), ("low_water", ctypes.c_uint), ("pre_alloc", ctypes.c_uint)]


@pytest.mark.parametrize("chunk, low_water, pre_alloc", [(1 << 62, 0, 0), (1 << 60, 16, 32), (1 << 33, 1, 2), (1 << 32, 2, (1 << 32) - 1)])
def test_sizes_that_are_too_large(driver, tmp_path, chunk, low_water, pre_alloc):
    """16 GiB ahead, and more: also where 64 bits don't hold the product."""
    library = ctypes.CDLL(driver.parent / "lib/libforebay-log.so", use_errno=True)
    library.forebay_log_open.restype = ctypes.c_void_p
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    options = Options(ctypes.sizeof(Options), chunk, low_water, pre_alloc)
    assert not library.forebay_log_open(fd, ctypes.byref(options)) and ctypes.get_errno() == errno.EINVAL
    os.close(fd)


def test_threads(driver, file):
    """Lines of four threads that append, sync and settle are whole, each thread's in its order."""
    drive(driver, file, "threads", 4, 3000, chunk=4096)
    lines = [tuple(map(int, line.split())) for line in file.read_text().splitlines()]
    assert len(lines) == 12000
    for thread in range(4):
        assert [number for of, number in lines if of == thread] == list(range(3000))


def test_threads_of_many_sizes(driver, file):
    """A thread that waits for space wakes with as much as it needs, though others have appended meanwhile."""
    drive(driver, file, "sizes", 60, 8000, chunk=4096)
    contents = file.read_bytes()
    assert [contents.count(byte) for byte in (b"a", b"b", b"c")] == [60 * 300001, 8000 * 97, 8000 * 97]
    assert len(contents) == 60 * 300001 + 16000 * 97


def test_one_process_at_a_time(driver, file):
    """A second one is refused, and doesn't cut what the first one has open."""
    with subprocess.Popen([driver, file, str(CHUNK), "append", "10", "forever", "100"], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        done = subprocess.run([driver, file, "4096", "append", "1"], stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 1 and os.strerror(16) in done.stdout
        assert drive(driver, file, "recover") == [-1]
        process.kill()
    assert drive(driver, file, "recover")[0] > 10


@pytest.fixture(name="faulty")
def faulty_fixture(tmp_path):
    """The environment in which a call fails for the driver (log_faulty.c)."""
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", tmp_path / "faulty.so",
                    ROOT / "tests/lib/log_faulty.c"], check=True)
    return lambda fault: {**os.environ, "LD_PRELOAD": str(tmp_path / "faulty.so"), "LOG_FAULT": fault}


def test_a_failed_write_that_the_worker_hears_of(driver, faulty, tmp_path):
    """The kernel reports it once, here to the call that makes the file longer: the next sync fails nevertheless."""
    command = [driver, tmp_path / "log", str(CHUNK), "append", "200000", "wait", "sync"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=faulty("fdatasync")) as process:
        assert process.stdout.readline() == "failed\n"
        time.sleep(0.2)             # for the worker to take the answer
        said, _ = process.communicate("\n", timeout=60)
    assert (process.returncode, said) == (1, f"sync: {os.strerror(5)}\n")


def test_no_more_threads(driver, faulty, tmp_path):
    """The append fails, and doesn't try for ever; the file keeps its size."""
    done = subprocess.run([driver, tmp_path / "log", str(CHUNK), "append", "10"], stdout=subprocess.PIPE, text=True, check=False,
                          env=faulty("thread"), timeout=60)
    assert (done.returncode, done.stdout) == (1, f"append: {os.strerror(11)}\n")
    assert (tmp_path / "log").stat().st_size == 0


def in_small_tmpfs(command):
    """A shell command in a namespace with 2 MiB of tmpfs at /mnt."""
    return subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=2m none /mnt && {command}"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=60)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_no_space(driver):
    """The append that finds no space fails whole; what was there stays, and so does its size."""
    done = in_small_tmpfs(f"{driver} /mnt/log 65536 append 1500000 sync append 600000; {driver} /mnt/log 65536 recover; wc -c </mnt/log;"
                          f"{driver} /mnt/log 4096 append 300000; wc -c </mnt/log")
    assert done.stdout.split("\n")[0] == f"append: {os.strerror(28)}", done.stdout
    assert done.stdout.split("\n")[1:4] == ["1500000", "1500000", "1800000"]
