# SPDX-License-Identifier: GPL-2.0-only
"""forebay log-preload off forebay: calls return what they return without it, and leave the same file; processes that share a log;
Redis, killed and started again."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS = ROOT / "tests/lib/log_calls.c"


@pytest.fixture(name="preload", scope="module")
def preload_fixture(tmp_path_factory):
    """The environment that `forebay log-preload` makes, with small chunks."""
    folder = tmp_path_factory.mktemp("lib")
    subprocess.run(["make", "-s", "-C", ROOT / "lib", f"O={folder}"], check=True)
    return {**os.environ, "LD_PRELOAD": f"{folder}/libforebay-log-preload.so", "FOREBAY_LOG_PATTERNS": "*.log\n*.incr.aof",
            "FOREBAY_LOG_SIZES": "65536 2 3"}


@pytest.fixture(name="calls", scope="module")
def calls_fixture(tmp_path_factory):
    """The program that plays calls."""
    program = tmp_path_factory.mktemp("calls") / "calls"
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", program, CALLS], check=True)
    return program


def run(command, env=None, status=0):
    """Its output."""
    done = subprocess.run([str(word) for word in command], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=60)
    assert done.returncode == status, done.stdout
    return done.stdout


@contextlib.contextmanager
def held_log(log, preload):
    """Another process makes a log with 1,000 bytes, and has it open meanwhile."""
    program = "import os, sys\nfd = os.open(sys.argv[1], 65)\nos.write(fd, b'x' * 1000)\nprint(1, flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program, log], env=preload, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        yield holder
        holder.communicate()


@pytest.mark.parametrize("end", [[], ["kill"]], ids=["exit", "kill"])
@pytest.mark.parametrize("how", ["append", "write", "sync"])
def test_same_as_without(preload, calls, tmp_path, how, end):
    """Every call's result and every byte; also of a program that is killed, once its file is opened again."""
    status = -signal.SIGKILL if end else 0
    for seed in range(12):
        plain, log = tmp_path / f"{seed}.plain", tmp_path / f"{seed}.log"
        expected = run([calls, plain, seed, 120, how, *end], status=status)
        assert run([calls, log, seed, 120, how, *end], preload, status) == expected
        if end:
            run(["wc", "-c", log], preload)
        assert log.read_bytes() == plain.read_bytes()


def test_logs_are_mapped(preload, calls, tmp_path):
    """Else all other tests here prove nothing: while it runs, the file is longer than what was written."""
    run([calls, tmp_path / "f.log", 1, 30, "append", "kill"], preload, -signal.SIGKILL)
    run([calls, tmp_path / "f.other", 1, 30, "append", "kill"], preload, -signal.SIGKILL)
    assert (tmp_path / "f.log").stat().st_size > (tmp_path / "f.other").stat().st_size + 65536


def test_many_patterns(preload, calls, tmp_path):
    """The last of them counts, too."""
    patterns = "\n".join(f"*.{number}" for number in range(40))
    run([calls, tmp_path / "f.39", 1, 30, "append", "kill"], {**preload, "FOREBAY_LOG_PATTERNS": patterns}, -signal.SIGKILL)
    assert (tmp_path / "f.39").stat().st_size > 65536 * 2


PROCESSES = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
if sys.argv[2] == "parent":
    os.write(fd, b"parent\\n")
for number in range(3):
    if not os.fork():
        try:
            for line in range(50):
                os.write(fd, b"child %d %d\\n" % (number, line))
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
print(*[os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)])
os.write(fd, b"end\\n")
"""


def test_children_that_write(preload, tmp_path):
    """If they write first, the kernel writes for all. If their parent did, they are refused, and its log is whole."""
    for first, codes in ("children", "0 0 0"), ("parent", "5 5 5"):
        log = tmp_path / f"{first}.log"
        assert run([sys.executable, "-c", PROCESSES, log, first], preload).splitlines()[-1] == codes
        lines = log.read_text().splitlines()
        assert lines[-1] == "end"
        assert len(lines) == (2 if first == "parent" else 151)


OTHERS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(fd, b"parent\\n")
if not os.fork():
    if sys.argv[2] == "other":
        os.execv(sys.executable, [sys.executable, "-c", sys.argv[3], sys.argv[1], "-1"])
    exec(sys.argv[3].replace("sys.argv[2]", "fd"))
    os._exit(0)
os.wait()
os.write(fd, b"again\\n")
"""
OPENS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p
for call in (lambda: os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), lambda: os.open(sys.argv[1], os.O_RDWR),
             lambda: os.truncate(sys.argv[1], 0), lambda: os.ftruncate(int(sys.argv[2]), 0)):
    try: call(), print("done")
    except OSError as error: print(error.errno)
print(libc.fopen(sys.argv[1].encode(), b"a"), ctypes.get_errno(), libc.fopen(sys.argv[1].encode(), b"r") is not None, flush=True)
"""


@pytest.mark.parametrize("who, errno", [("child", 5), ("other", 9)])
def test_opened_by_others(preload, tmp_path, who, errno):
    """Neither a child nor another process may write to a log in use, however it opens the file, nor truncate it."""
    log = tmp_path / "a.log"
    said = run([sys.executable, "-c", OTHERS, log, who, OPENS], preload)
    assert [line for line in said.splitlines() if "another process" not in line] == ["16", "16", "16", str(errno), "None 16 True"]
    assert log.read_text() == "parent\nagain\n"


DAEMON = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(fd, b"starting\\n")
ready = os.pipe()
if os.fork():
    exec(sys.argv[2])       # at its end the reader of the pipe finds no writer
os.close(ready[1])
os.read(ready[0], 1)
print(os.write(fd, b"daemon\\n"))
"""


@pytest.mark.parametrize("how", ["O_APPEND", "O_DSYNC"])
@pytest.mark.parametrize("end", ["sys.exit()", "os._exit(0)"])      # daemon(3) ends the parent in the second way
def test_daemon(preload, tmp_path, end, how):
    """A process that has written to its log goes on in a child: when the parent has ended, the child writes."""
    log = tmp_path / "a.log"
    assert run([sys.executable, "-c", DAEMON.replace("O_APPEND", how), log, end], preload) == "7\n"
    assert log.read_text() == "starting\ndaemon\n"


CLAIMS = """
import os, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(log, b"parent\\n")
for _ in range(16383):
    last = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
    os.close(last)
if not os.fork():
    try: os.write(log, b"child\\n")
    except OSError as error: os._exit(error.errno)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
os.write(log, b"again\\n")
"""


def test_many_logs_after_another(preload, tmp_path):
    """A log stays its process's, however many others this process opens and closes after it."""
    log = tmp_path / "a.log"
    assert run([sys.executable, "-c", CLAIMS, log, tmp_path / "b.log"], preload).splitlines()[-1] == "5"
    assert log.read_text() == "parent\nagain\n"


def test_pattern_of_all_names(preload, calls, tmp_path):
    """The library's own open of a log, by /proc, is not one of the program's, though its name matches."""
    command = f"ulimit -n $(ulimit -Hn); exec {calls} {tmp_path}/f.log 1 30 append"
    started = time.monotonic()
    run(["bash", "-c", command], {**preload, "FOREBAY_LOG_PATTERNS": "*.log\n[0-9]*"})
    assert time.monotonic() - started < 10
    assert (tmp_path / "f.log").stat().st_size


THREADS = """
import os, sys, threading
def work(number, log):
    together.wait()
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in range(5):
        os.write(fd, b"%d %d\\n" % (number, line))
    os.close(fd)
together = threading.Barrier(4)
for log in range(60):
    threads = [threading.Thread(target=work, args=(number, f"{sys.argv[1]}/{log}.log")) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_threads_that_open_at_once(preload, tmp_path):
    """Each has a descriptor of its own of the same log; no line is lost."""
    run([sys.executable, "-c", THREADS, tmp_path], preload)
    counts = [len((tmp_path / f"{log}.log").read_text().splitlines()) for log in range(60)]
    assert counts == [20] * 60


OPENED_TWICE = """
import os, sys
append, create = os.O_WRONLY | os.O_APPEND, os.O_CREAT
log = os.open(sys.argv[1], append | create)
os.write(log, b"x" * 100)
reader = os.open(sys.argv[1], os.O_RDONLY)
os.write(log, b"y" * 10)
print(os.read(reader, 10**6).decode())
both = os.open(sys.argv[2], os.O_RDWR | os.O_APPEND | create)
log = os.open(sys.argv[2], append)
for fd in log, both, log:
    os.write(fd, b"%d" % (fd == both) * 3)
os.close(log)
print(os.read(os.open(sys.argv[2], os.O_RDONLY), 10**6).decode())
"""


def test_opened_twice(preload, tmp_path):
    """A process that has its log open for reading, too, or for both, reads what it wrote, and loses nothing."""
    words = [sys.executable, "-c", OPENED_TWICE, tmp_path / "a.log", tmp_path / "b.log"]
    assert run(words, preload) == "x" * 100 + "y" * 10 + "\n000111000\n"


STREAM = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fputs.argtypes = ctypes.c_char_p, ctypes.c_void_p
libc.fclose.argtypes = ctypes.c_void_p,
def print_lines(log):
    together.wait()
    stream = libc.fopen(log.encode(), b"a")
    for line in range(5): libc.fputs(b"printed\\n", stream)
    libc.fclose(stream)
def write_lines(log):
    together.wait()
    time.sleep(0.2)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in range(5): os.write(fd, b"written\\n")
    time.sleep(0.6)
    os.close(fd)
together = threading.Barrier(2)
for log in range(3):
    threads = [threading.Thread(target=work, args=(f"{sys.argv[1]}/{log}.log",)) for work in (print_lines, write_lines)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_stream_while_it_is_opened(preload, tmp_path):
    """A thread prints to a stream of a file of which another thread makes a log meanwhile; no line is lost."""
    slow = tmp_path / "slow.so"
    run(["gcc", "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", slow, ROOT / "tests/lib/log_faulty.c"])
    run([sys.executable, "-c", STREAM, tmp_path], {**preload, "LD_PRELOAD": f"{preload['LD_PRELOAD']}:{slow}", "LOG_FAULT": "fopen"})
    assert [sorted((tmp_path / f"{log}.log").read_text().split()) for log in range(3)] == [["printed"] * 5 + ["written"] * 5] * 3


LOCKS = """
import fcntl, os, subprocess, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(fd, fcntl.LOCK_EX)
os.stat(sys.argv[1])
other = os.open(sys.argv[1], os.O_WRONLY)
subprocess.run([sys.executable, "-c", "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)", sys.argv[1]],
               env={}, check=False)
"""


def test_locks_of_the_program(preload, tmp_path):
    """A program that has a lock on its file keeps it, though the preload looks at the file."""
    assert "BlockingIOError" in run([sys.executable, "-c", LOCKS, tmp_path / "a.log"], preload)


@pytest.mark.parametrize("does", ["os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)", "os.truncate(sys.argv[1], 10**6)",
                                  "assert libc.fopen(sys.argv[1].encode(), b'a'), f'Errno {ctypes.get_errno()}'"])
def test_no_descriptor(preload, calls, tmp_path, does):
    """A program that has one left can't write behind what a crash left: cutting that takes two."""
    log = tmp_path / "a.log"
    run([calls, log, 1, 30, "append", "kill"], preload, -signal.SIGKILL)
    before = log.read_bytes()
    program = "import ctypes, os, resource, sys\nlibc = ctypes.CDLL(None, use_errno=True)\nlast = os.dup(0)\nos.close(last)\n" \
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, last + 1))\n{does}"
    assert "Errno 24" in run([sys.executable, "-c", program, log], preload, 1)
    assert log.read_bytes() == before


@pytest.mark.parametrize("mode, seeks", [("ab", 0), ("r+b", 0), ("r+b", 1), ("rb", 0)])
def test_inherited(preload, calls, tmp_path, mode, seeks):
    """A shell without the preload opens the file: what a crash left is cut before the program writes or reads. A position behind it
    is at the end then."""
    log, copy = tmp_path / "a.log", tmp_path / "b.log"
    run([calls, log, 1, 30, "append", "kill"], preload, -signal.SIGKILL)
    shutil.copy(log, copy)
    run(["wc", "-c", copy], preload)
    whole = copy.read_bytes()
    assert len(log.read_bytes()) > len(whole)
    with open(log, mode, buffering=0) as file:
        file.seek(0, os.SEEK_END if seeks else os.SEEK_SET)
        if mode == "rb":
            assert subprocess.run(["cat"], stdin=file, stdout=subprocess.PIPE, env=preload, check=True).stdout == whole
        else:
            subprocess.run(["echo", "end"], stdout=file, env=preload, check=True)
    assert log.read_bytes() == {"ab": whole + b"end\n", "r+b": whole + b"end\n" if seeks else b"end\n" + whole[4:], "rb": whole}[mode]


def test_inherited_from_no_crash(preload, tmp_path):
    """Another process has the log, which is said; a reader, and a file with another name, are not told of."""
    log = tmp_path / "a.log"
    with held_log(log, preload):
        size = log.stat().st_size
        for mode, told in ("ab", True), ("rb", False):
            with open(log, mode) as file:
                said = subprocess.run(["true"], stdin=file, stderr=subprocess.PIPE, text=True, env=preload, check=True).stderr
            assert ("a.log: another process has this log open" in said) == told and (said == "") != told
        assert log.stat().st_size == size
    assert log.stat().st_size == 1000


def test_stat_while_it_is_opened(preload, tmp_path):
    """A thread that asks for the file's size again and again doesn't make an open fail."""
    program = "import os, sys, threading\ndef ask():\n while going: os.stat(sys.argv[1])\ngoing = True\n" \
        "os.close(os.open(sys.argv[1], 65))\nthread = threading.Thread(target=ask)\nthread.start()\ntry:\n" \
        " for _ in range(1000): os.close(os.open(sys.argv[1], os.O_WRONLY))\nfinally: going = False"
    assert run([sys.executable, "-c", program, tmp_path / "a.log"], preload) == ""


@pytest.mark.parametrize("how", ["close_range", "closefrom", "freopen", "aio", "old", "iovec", "own_closed", "own_replaced", "printed", "locked",
                                 "linked"])
def test_rare_calls(preload, tmp_path, how):
    """What they return, and the files that they leave, are the same as without the preload."""
    program = tmp_path / "calls"
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", program, ROOT / "tests/lib/log_rare.c"], check=True)
    results = []
    for env in os.environ, preload:
        folder = tmp_path / f"{env is preload}"
        folder.mkdir()
        said = run([program, folder / "a.log", folder / "other", how], env)
        results.append((said, {file.name: file.read_bytes() for file in folder.iterdir()}))
    assert results[0] == results[1]


def test_one_writer(preload, tmp_path):
    """Another process is refused, and the file keeps its size: also O_TRUNC comes too late."""
    log = tmp_path / "a.log"
    with held_log(log, preload):
        size = log.stat().st_size
        said = run([sys.executable, "-c", "import os, sys\nos.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)", log], preload, 1)
        assert "another process has this log open" in said and "Errno 16" in said
        assert log.stat().st_size == size > 1000
    assert log.read_bytes() == b"x" * 1000


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_no_space(preload):
    """The write that finds too little space is the kernel's, and the file has what was written."""
    program = "import os\nfd = os.open('/mnt/a.log', 65)\nn = 0\ntry:\n while True: n += os.write(fd, b'x' * 10000)\n" \
        "except OSError as error: print(error.errno, n == os.fstat(fd).st_size, n > 1900000)"
    said = run(["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=2m none /mnt && {sys.executable} -c "{program}"; tr -d x </mnt/a.log | wc -c'],
               preload)
    assert said == "28 True True\n0\n"


@pytest.mark.parametrize("kib", [200, 256])
@pytest.mark.parametrize("ignored", [False, True])
def test_limit_of_the_file_size(preload, tmp_path, ignored, kib):
    """Space ahead beyond it neither ends a program whose log is far below, nor makes an append try for ever."""
    program = f"import os, signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_{'IGN' if ignored else 'DFL'})\n" \
        "fd = os.open(sys.argv[1], 65)\nfor i in range(6): print(os.write(fd, b'x' * 30000))"
    command = f"ulimit -f {kib}; exec {sys.executable} -c \"{program}\" {tmp_path}/a.log"
    assert run(["bash", "-c", command], preload) == "30000\n" * 6
    assert (tmp_path / "a.log").read_bytes() == b"x" * 180000


@pytest.fixture(name="redis")
def redis_fixture(preload, tmp_path):
    """Starts a server in a folder of its own; a function that calls it."""
    servers = []

    def call(*words, check=True):
        done = subprocess.run(["redis-cli", "-s", tmp_path / "s", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=check)
        return done.stdout.strip()

    def start(policy):
        with open(tmp_path / "said", "ab") as said:
            servers.append(subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", tmp_path / "s", "--dir", tmp_path, "--save", "",
                                             "--appendonly", "yes", "--appendfsync", policy], env=preload, stdout=said, stderr=said))
        until = time.monotonic() + 30
        while call("ping", check=False) != "PONG":
            assert time.monotonic() < until, (tmp_path / "said").read_text()
            time.sleep(0.05)
        return servers[-1]
    yield start, call, tmp_path
    for server in servers:
        server.kill()
        server.wait()


@pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server")
@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_redis(redis, preload, policy):
    """Killed, with a rewrite before: no SET is lost, redis-check-aof accepts the files; after shutdown also without the preload."""
    start, call, folder = redis
    manifest = folder / "appendonlydir/appendonly.aof.manifest"
    for turn in range(3):
        server = start(policy)
        assert call("dbsize") == str(turn * 2)
        call("set", f"a{turn}", "\\0" * 5000 + "a")
        if turn == 1:
            call("bgrewriteaof")
            until = time.monotonic() + 30
            while "aof_rewrite_in_progress:1" in (info := call("info", "persistence")) or "scheduled:1" in info:
                assert time.monotonic() < until
                time.sleep(0.05)
        assert call("set", f"b{turn}", turn) == "OK"
        log = max(folder.glob("appendonlydir/*.incr.aof"))
        current = int(call("info", "persistence").partition("aof_current_size:")[2].split()[0])
        base = sum(file.stat().st_size for file in folder.glob("appendonlydir/*.base.rdb"))
        assert log.stat().st_size > current - base      # space ahead; the server doesn't see it
        server.kill()
        server.wait()
        run(["redis-check-aof", manifest], preload)
        assert log.stat().st_size in (current, current - base)      # a new server counts no base
    start(policy)
    assert call("dbsize") == "6" and call("get", "b2") == "2"
    call("shutdown", check=False)
    run(["redis-check-aof", manifest])
