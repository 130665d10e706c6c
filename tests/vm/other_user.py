# SPDX-License-Identifier: GPL-2.0-only
"""Code that runs as another user, without capabilities: functions in a child, or Python in a new process."""

import json
import os
import pwd
import subprocess
import sys
import traceback

NOBODY, SOMEBODY = pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("daemon").pw_uid


def become(uid):
    """Makes this process that user's, in the group of the same number and in no other."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def begin(uid, action):
    """Starts action() in a child; value_of() takes what this returns."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reading)
            become(uid)
            said = json.dumps({"value": action()})
        except BaseException:  # pylint: disable=broad-exception-caught
            said = json.dumps({"failed": traceback.format_exc()})
        try:
            os.write(writing, said.encode())
        finally:
            os._exit(0)
    os.close(writing)
    return pid, reading


def value_of(pid, reading):
    """The value of the child's action. Fails if that ended by an exception or a signal."""
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert said, f"the child ended with status {status}"
    said = json.loads(said)
    assert "value" in said, said["failed"]
    return said["value"]


def as_user(uid, action):
    """Calls action() in a child; returns its value, of those that JSON knows."""
    return value_of(*begin(uid, action))


def as_nobody(action):
    """The same as nobody."""
    return as_user(NOBODY, action)


def run_as(uid, *command, check=False, **options):
    """subprocess.run() of a program."""
    return subprocess.run(command, user=uid, group=uid, extra_groups=[], check=check, **options)


def python_as(uid, code, *arguments, **options):
    """The same of Python code."""
    return run_as(uid, sys.executable, "-c", code, *arguments, **options)
