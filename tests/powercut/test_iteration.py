# SPDX-License-Identifier: GPL-2.0-only
"""What is said of the files of one run and its cut."""

import pytest

from .iteration import Iteration


@pytest.mark.parametrize("links, wrong", [(1, []), (2, ["writer 0: file 7 has 1 names and a link count of 2"])])
def test_links_below(tmp_path, links, wrong):
    """Names and contents are the same above and below; only the link count isn't."""
    for name, count in ("found", 1), ("drained", links):
        (tmp_path / f"{name}.index").write_text(f"0 n1 7 100 {count} 3 0\n")
        (tmp_path / f"{name}.data").write_bytes(b"abc")
    assert Iteration(tmp_path).drain_violations() == wrong
