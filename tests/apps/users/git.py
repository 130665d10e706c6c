# SPDX-License-Identifier: GPL-2.0-only
"""git: a clone of this repository, commits with every object synced, gc, fsck."""

from pathlib import Path

from place import call, expect

CHECKOUT = Path(__file__).resolve().parents[3]
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
       "GIT_CONFIG_COUNT": "4", "GIT_CONFIG_KEY_0": "core.fsync", "GIT_CONFIG_VALUE_0": "all",
       "GIT_CONFIG_KEY_1": "gc.auto", "GIT_CONFIG_VALUE_1": "0", "GIT_CONFIG_KEY_2": "safe.directory",
       "GIT_CONFIG_VALUE_2": "*", "GIT_CONFIG_KEY_3": "core.fsyncMethod", "GIT_CONFIG_VALUE_3": "fsync"}


def run(place):
    origin, clone = place.folder / "origin.git", place.folder / "clone"
    call("git", "clone", "-q", "--bare", "--depth=8", f"file://{CHECKOUT}", origin, env=WHO)
    call("git", "clone", "-q", origin, clone, env=WHO)

    def git(*words):
        return call("git", *words, cwd=clone, env=WHO)

    commits = place.size(3, 2)
    for number in range(commits):
        (clone / "new file").write_text(f"{number}\n" * 2000)
        git("add", ".")
        git("commit", "-q", "-m", f"commit {number}")
    expect(git("status", "--porcelain") == "", "the work tree is not clean")
    git("push", "-q", "origin", "HEAD:refs/heads/pushed")     # a checkout under test may be on no branch
    git("fsck", "--full", "--strict", "--no-dangling")
    git("gc", "-q", "--prune=now")
    git("fsck", "--full", "--strict", "--no-dangling")
    call("git", "fsck", "--full", cwd=origin, env=WHO)
    expect(git("rev-parse", "HEAD") == call("git", "rev-parse", "refs/heads/pushed", cwd=origin, env=WHO), "what was pushed has not arrived")
    expect(len(git("log", "--format=%h", f"-{commits}", "--grep=^commit").split()) == commits, "commits are missing")
    place.note(f"{git('rev-list', '--count', 'HEAD').strip()} commits")
