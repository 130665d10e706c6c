# SPDX-License-Identifier: GPL-2.0-only
"""tests/powercut/run: what its exit status says."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest


@pytest.mark.parametrize("operations, status", [(0, 1), (1, 0)])
def test_a_campaign_that_wrote_nothing(monkeypatch, tmp_path, operations, status):
    """Each cut was found in order, but there was nothing to lose."""
    spec = spec_from_loader("powercut_run", SourceFileLoader("powercut_run", str(Path(__file__).parent / "run")))
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    tally = script.campaign.Tally(cuts=4, passed=4, operations=operations)
    monkeypatch.setattr(script, "BUILD", tmp_path)
    monkeypatch.setattr(script.campaign, "build", lambda: None)
    monkeypatch.setattr(script.campaign, "campaign", lambda *_: tally)
    assert script.main(["4"]) == status
