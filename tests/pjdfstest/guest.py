# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: all test files of pjdfstest in a fresh file system; a line of JSON for each."""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "vm")]

import tap                                  # noqa: E402
from stack import LOWER, MOUNT, Stack       # noqa: E402


def main():
    """Mounts, runs the files on two processors, unmounts and checks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--fs", required=True)
    parser.add_argument("--over", choices=("forebay", "plain"), required=True)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    stack = Stack(options.fs, mib=2048).make()
    place = MOUNT if options.over == "forebay" else LOWER
    if options.over == "plain":
        stack.umount()
    with ThreadPoolExecutor(2) as pool:
        for entry in pool.map(lambda file: one(options, place, file), options.files):
            print(json.dumps(entry), flush=True)
    stack.destroy()


def one(options, place, file):
    """One file, in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        Path(folder).chmod(0o755)
        try:
            done = subprocess.run(["sh", options.suite / "tests" / file], cwd=folder, check=False, timeout=options.limit, text=True,
                                  errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return {"file": file, "tests": tap.count(done.stdout), "failed": tap.failures(done.stdout, done.returncode)}
        except subprocess.TimeoutExpired:
            return {"file": file, "tests": 0, "failed": {0: f"over {options.limit:.0f} s"}}


if __name__ == "__main__":
    sys.exit(main())
