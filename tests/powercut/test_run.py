# SPDX-License-Identifier: GPL-2.0-only
"""tests/powercut/run: what its exit status says."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest


def status_of(monkeypatch, tmp_path, arguments, **tally):
    """Of a campaign in which each cut was found in order."""
    spec = spec_from_loader("powercut_run", SourceFileLoader("powercut_run", str(Path(__file__).parent / "run")))
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    tally = script.campaign.Tally(cuts=4, passed=4, **tally)
    monkeypatch.setattr(script, "BUILD", tmp_path)
    monkeypatch.setattr(script.campaign, "build", lambda: None)
    monkeypatch.setattr(script.campaign, "campaign", lambda *_: tally)
    return script.main(["4", *arguments])


@pytest.mark.parametrize("operations, status", [(0, 1), (1, 0)])
def test_a_campaign_that_wrote_nothing(monkeypatch, tmp_path, operations, status):
    """There was nothing to lose."""
    assert status_of(monkeypatch, tmp_path, [], operations=operations) == status


@pytest.mark.parametrize("arguments, replayed, status", [
    (["--names"], 0, 1), (["--names"], 1, 0), (["--names", "4M,none"], 0, 1), (["--names", "none"], 0, 0),
    (["--names", "--system", "lower"], 0, 0)])
def test_a_campaign_that_replayed_nothing(monkeypatch, tmp_path, arguments, replayed, status):
    """Storage had everything each time, or the log was off: replay has shown nothing."""
    assert status_of(monkeypatch, tmp_path, arguments, operations=1, replayed=replayed) == status
