# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: makes the devices, stacks forebay (or not), runs the suite's `check` on a list of tests, and watches it.

Standard output has one line of JSON for each event: {"began": TEST}; {"test": TEST, "result": ..., "why": ..., "seconds": N}.
A test over its limit is killed with all it started. If it doesn't go away, the guest gives up: the host boots another.
"""

import argparse
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import results

HERE = Path(__file__).resolve().parent
RUN = Path("/run/xfstests")
LAYER = RUN / "layer"
TEST_SSD, SCRATCH_SSD, LOG_SSD, PMEM = "/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1", "/dev/pmem0"
TEST_DIR, SCRATCH_DIR = "/mnt/test", "/mnt/scratch"
USERS = {"fsgqa": 6001, "123456-fsgqa": 6002, "fsgqa2": 6003}
KILL_SECONDS = 60       # after that a killed test counts as hung
SHOWN = 200 << 10       # bytes of a failed test's files that are kept


def main():
    """Prepares, runs, watches; the exit status says whether `check` came to its end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--fs", required=True)
    parser.add_argument("--over", required=True)
    parser.add_argument("--cache-mib", type=int, required=True)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    prepare()
    suite = private_copy(options.suite)
    environment = settings(options)
    if options.over == "forebay":
        stack(suite, options.cache_mib, environment)
    elif options.over != "plain":
        mapped(options.over, options.cache_mib, environment)
    (RUN / "config").write_text("".join(f"export {name}={value}\n" for name, value in environment.items()), encoding="ascii")
    run(f"mkfs -t {options.fs} {environment['TEST_DEV']}")
    return Watch(suite, options).run()


def run(command):
    """A command that must work."""
    subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def prepare():
    """Users and programs that the suite expects, and folders."""
    for folder in (RUN / "bin", RUN / "state", RUN / "results", Path(TEST_DIR), Path(SCRATCH_DIR)):
        folder.mkdir(parents=True, exist_ok=True)
    for name, number in USERS.items():
        append("/etc/passwd", f"{name}:x:{number}:{number}::/tmp:/bin/bash\n")
        append("/etc/group", f"{name}:x:{number}:\n")
        append("/etc/shadow", f"{name}:*:20000:0:99999:7:::\n")
    # No systemd and no udev run here: nothing to ask, nothing to wait for.
    for name, status in {"udevadm": 0, "systemd-run": 1, "systemctl": 1}.items():
        path = RUN / "bin" / name
        path.write_text(f"#!/bin/sh\nexit {status}\n", encoding="ascii")
        path.chmod(0o755)
    shutil.copytree(HERE / "layer", LAYER, symlinks=True)


def append(path, line):
    """A line at a file's end."""
    with open(path, "a", encoding="ascii") as stream:
        stream.write(line)


def private_copy(suite):
    """The suite's folder, with what is changed in it here gone with the machine."""
    for folder in ("upper", "work"):
        (RUN / "suite" / folder).mkdir(parents=True)
    run(f"mount -t overlay -o lowerdir={suite},upperdir={RUN}/suite/upper,workdir={RUN}/suite/work suite {suite}")
    return suite


def settings(options):
    """The suite's own."""
    return {"FSTYP": options.fs, "TEST_DEV": TEST_SSD, "TEST_DIR": TEST_DIR, "SCRATCH_DEV": SCRATCH_SSD, "SCRATCH_MNT": SCRATCH_DIR,
            "LOGWRITES_DEV": LOG_SSD, "RESULT_BASE": RUN / "results", "PATH": f"{RUN}/bin:{os.environ['PATH']}"}


def stack(suite, mib, environment):
    """Two caches, and the programs that use them."""
    run("modprobe forebay")
    caches = cut_pmem(mib)
    environment.update(zip(("FOREBAY_TEST_CACHE", "FOREBAY_SCRATCH_CACHE"), caches))
    environment.update(FOREBAY_STATE=RUN / "state", FOREBAY_LAYER=LAYER, PATH=f"{LAYER}:{environment['PATH']}")
    for cache in caches:
        run(f"forebay format --force {cache}")
    append(suite / "common/rc", (LAYER / "functions.sh").read_text(encoding="ascii"))
    for name in ("src/godown", "src/log-writes/replay-log"):
        program = suite / name
        program.rename(f"{program}.real")
        shutil.copy(LAYER / program.name, program)


def cut_pmem(mib):
    """Two parts of the PMem."""
    for number in (0, 1):
        run(f"dmsetup create fbcache{number} --table '0 {mib * 2048} linear {PMEM} {number * mib * 2048}' && dmsetup mknodes")
    return ["/dev/mapper/fbcache0", "/dev/mapper/fbcache1"]


def mapped(over, mib, environment):
    """Both devices under a write log or a transit cache each."""
    caches = cut_pmem(mib)
    run(f"modprobe dm-forebay-{over}")
    for name, cache in zip(("TEST_DEV", "SCRATCH_DEV"), caches):
        device = f"{over}-{name.lower()}"
        if over == "writelog":
            run(f"forebay writelog format --force {cache} && "
                f"forebay writelog create --option block_size=4096 {device} {environment[name]} {cache}")
        else:
            run(f"forebay transit create --option cache_size={mib}M {device} {environment[name]}")
        environment[name] = f"/dev/mapper/{device}"


def tell(**event):
    """A line for the host."""
    print(json.dumps(event), flush=True)


class Watch:
    """`check`, and what it has said so far."""

    def __init__(self, suite, options):
        self.options = options
        self.end = time.monotonic() + options.budget
        self.text, self.told = "", 0
        self.began = {}                 # test: when
        self.killed = {}                # test: when
        self.process = subprocess.Popen(
            ["bash", "-c", f". {RUN}/config; exec ./check {' '.join(options.tests)}"], cwd=suite, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "HOST_OPTIONS": str(RUN / "config")},
            start_new_session=True)

    def run(self):
        """Until `check` ends, the budget is spent, or a test had to be killed; 1 if one hangs."""
        while self.read():
            entries = results.parse(self.text)
            for test, text in entries[self.told:-1]:
                self.ended(test, text)
            if not entries:
                continue
            test = entries[-1][0]
            if test not in self.began:
                # A killed test may leave, say, a mapped device that would make the next test fail.
                if time.monotonic() > self.end or self.killed:
                    self.process.send_signal(signal.SIGKILL)
                    return 0
                self.began[test] = time.monotonic()
                tell(began=test)
            if not self.in_time(test):
                return 1
        for test, text in results.parse(self.text)[self.told:]:
            if text or test in self.killed:
                self.ended(test, text)
        if not self.told:
            print(self.text[-4000:], file=sys.stderr)
        return 0

    def read(self):
        """More text, or a second without; False at the end."""
        ready, _, _ = select.select([self.process.stdout], [], [], 1)
        if ready:
            data = os.read(self.process.stdout.fileno(), 65536)
            self.text += data.decode(errors="replace")
            return bool(data)
        return True

    def ended(self, test, text):
        """Tells a test's result and keeps the files of one that failed."""
        result, why = results.judge(text)
        if test in self.killed and result != results.NOT_RUN:
            result, why = results.KILLED, f"over {self.options.limit:.0f} s\n{why}"
        self.told += 1
        if result in results.BAD:
            self.keep_files(test)
        tell(test=test, result=result, why=why[:6000], seconds=round(time.monotonic() - self.began.get(test, time.monotonic())))

    def keep_files(self, test):
        """What the suite wrote of it, for the host."""
        self.options.keep.mkdir(parents=True, exist_ok=True)
        for path in (RUN / "results").glob(f"{test}.*"):
            with open(path, "rb") as source:
                source.seek(max(0, path.stat().st_size - SHOWN))
                (self.options.keep / f"{test.replace('/', '-')}{path.name[len(test.split('/')[1]):]}").write_bytes(source.read())

    def in_time(self, test):
        """Kills the test at its time limit; returns False if the test is still there KILL_SECONDS later."""
        now = time.monotonic()
        if test in self.killed:
            if now - self.killed[test] < KILL_SECONDS:
                return True
            Path("/proc/sysrq-trigger").write_text("w", encoding="ascii")
            stuck = subprocess.run(["dmesg"], stdout=subprocess.PIPE, check=False).stdout[-SHOWN:].decode(errors="replace")
            self.options.keep.mkdir(parents=True, exist_ok=True)
            (self.options.keep / f"{test.replace('/', '-')}.hung").write_text(stuck, encoding="utf-8")
            tell(test=test, result=results.HUNG, why=f"could not be killed after {self.options.limit:.0f} s", seconds=round(now - self.began[test]))
            return False
        if now - self.began[test] > self.options.limit:
            self.killed[test] = now
            for process in processes_of(test):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return True


def processes_of(test):
    """All processes of the test, found by its name, which the suite exports."""
    mark = f"\0seqnum={test}\0".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in b"\0" + (folder / "environ").read_bytes() + b"\0":
                yield int(folder.name)
        except OSError:
            pass


if __name__ == "__main__":
    sys.exit(main())
