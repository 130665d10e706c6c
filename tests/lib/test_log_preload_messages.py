# SPDX-License-Identifier: GPL-2.0-only
"""Where messages of forebay log-preload go, and where not."""

import subprocess

from test_log_preload import held_log, preload_fixture, run

a_preload = preload_fixture


def test_standard_error_is_a_log(preload, tmp_path):
    """A program that writes nothing inherits another process's log as its standard error: no message gets into the log, behind
    which nothing would be found again."""
    log = tmp_path / "a.log"
    with held_log(log, preload) as holder:
        size = log.stat().st_size
        with open(log, "ab") as file:
            subprocess.run(["true"], stderr=file, env=preload, check=True)
        assert log.stat().st_size == size
        holder.kill()
    run(["wc", "-c", log], preload)
    assert log.read_bytes() == b"x" * 1000
