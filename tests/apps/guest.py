# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: applications on forebay over one lower file system, in one boot; then unmount, compare,
fsck.

Exits with 0 if all is well. Failures are printed with the application's own output.
"""

import argparse
import importlib
import sys
import time
import traceback

import lower
import users
from place import Failure, Place

SHOWN = ("syncs_absorbed", "syncs_lower", "pages_absorbed", "pages_written_back", "pages_reclaimed", "cache_full")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fs", choices=lower.MAKE, default="ext4")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--cache", type=int, metavar="BYTES", help="of the PMem device")
    parser.add_argument("names", nargs="*", choices=[*users.NAMES, []])
    options = parser.parse_args()
    failed = []
    if options.cache:
        lower.use_only(options.cache)
    step(failed, "mount", lambda: (lower.make(options.fs), lower.mount(options.fs)) and "")
    if not failed:
        for name in options.names or users.NAMES:
            step(failed, name, lambda name=name: application(name, options))
        step(failed, "counters", lambda: counters(not options.names or set(options.names) & set(users.SYNCING)))
        step(failed, "unmount, compare, fsck", lambda: lower.unmount_and_compare(options.fs))
    say(f"{options.fs}: " + (f"FAILED: {', '.join(failed)}" if failed else "all well"))
    return 1 if failed else 0


def step(failed, name, action):
    begin = time.monotonic()
    try:
        text = action()
        say(f"  ok      {name:<24} {time.monotonic() - begin:6.1f} s  {text}")
    except Exception as failure:        # a test that breaks in any way is one that failed; the others go on
        failed.append(name)
        say(f"  FAILED  {name:<24} {time.monotonic() - begin:6.1f} s")
        say(str(failure) if isinstance(failure, Failure) else traceback.format_exc())


def application(name, options):
    module = importlib.import_module(f"users.{name}")
    place = Place(lower.TOP / name, lower.PLAIN / name, options.fs, options.small)
    for folder in (place.folder, place.plain):
        folder.mkdir()
        folder.chmod(0o777)
    before = lower.counters()
    module.run(place)
    after = lower.counters()
    moved = [f"{key} {after[key] - before[key]}" for key in SHOWN if after[key] != before[key]]
    return "; ".join([*place.notes, ", ".join(moved)])


def counters(synced):
    found = lower.counters()
    if (synced and found["syncs_absorbed"] == 0) or found["writeback_errors"] or found["last_error"] or found["pages_unplaced"]:
        raise Failure(f"not as it must be after all this: {found}")
    return ", ".join(f"{key} {found[key]}" for key in ("syncs_absorbed", "pages_absorbed", "pages_written_back", "pages_out_of_sync"))


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
