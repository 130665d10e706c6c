# SPDX-License-Identifier: GPL-2.0-only
"""`bench/run --on host` refuses devices that are in use or hold data."""

import json
import os
import subprocess

import pytest

from bench import host, packages, systems
from bench.boot import BenchFailed
from vm.settings import CHECKOUT

FREE = {"path": "/dev/nullb0", "type": "disk", "ro": False, "mountpoints": [None]}


@pytest.mark.parametrize("spoilt, said", [
    ({}, ""), ({"mountpoints": ["/srv"]}, "is in use as /srv"), ({"mountpoints": [None, "[SWAP]"]}, r"is in use as [SWAP]"),
    ({"children": [{"path": "/dev/nullb0p1"}]}, "has /dev/nullb0p1 on it"), ({"ro": True}, "is read-only")])
def test_a_device_in_use(spoilt, said):
    assert host.tree_in_use(FREE | spoilt) == said


def test_no_device(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "none", "/dev/null"):
        assert host.in_use(str(path)) == "is no block device"


def test_what_a_device_holds(tmp_path):
    path = tmp_path / "image"
    path.write_bytes(bytes(8 << 20))
    assert host.holds(str(path)) == ""
    subprocess.run(["mkfs.ext4", "-q", "-F", path], check=True)
    assert host.holds(str(path)) == "ext4"
    for at in (4096, (8 << 20) - 4096):
        path.write_bytes(bytes(8 << 20))
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(b"x")
        assert host.holds(str(path)) == "data of an unknown kind"


@pytest.fixture(name="devices")
def devices_fixture(monkeypatch):
    """Two free devices with nothing on them; a test spoils something."""
    state = {"in_use": "", "holds": "", "dax": True}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(host, "in_use", lambda device: state["in_use"] if device == "/dev/b" else "")
    monkeypatch.setattr(host, "holds", lambda device: state["holds"] if device == "/dev/b" else "")
    monkeypatch.setattr(host, "has_dax", lambda _: state["dax"])
    monkeypatch.setattr(host, "size_of", lambda _: 1 << 30)
    return state


def test_what_is_overwritten_is_said(devices, capsys):
    host.Host("/dev/a", "/dev/b").look(overwrite=False)
    said = capsys.readouterr().err
    assert "overwrites /dev/a, 1024 MiB, which holds nothing" in said and "overwrites /dev/b" in said
    devices["holds"] = "xfs"
    host.Host("/dev/a", "/dev/b").look(overwrite=True)
    assert "overwrites /dev/b, 1024 MiB, which holds xfs" in capsys.readouterr().err


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("spoilt, said", [({"in_use": "is in use as /"}, "not overwritten"), ({"dax": False}, "has no DAX"),
                                          ({"holds": "xfs"}, "--overwrite destroys")])
def test_what_is_refused(devices, spoilt, said, overwrite, capsys):
    devices |= spoilt
    if overwrite and "holds" in spoilt:
        return
    with pytest.raises(host.Refused, match=said):
        host.Host("/dev/a", "/dev/b").look(overwrite)
    assert "overwrites" not in capsys.readouterr().err


def test_one_device_for_both(devices):
    assert not devices["in_use"]
    with pytest.raises(host.Refused, match="two devices"):
        host.Host("/dev/b", "/dev/b").look(overwrite=True)


def test_only_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(host.Refused, match="as root"):
        host.Host("/dev/a", "/dev/b").look(overwrite=True)


def test_plans_that_are_for_a_guest(monkeypatch):
    monkeypatch.setattr(packages, "is_installed", lambda package: package != "mbw")
    host.refuse_plan({"systems": ["ext4", "forebay"], "workloads": ["kv-hash-64", "untar"]})
    assert "transit" in systems.OVER_NAMESPACE and "lru-64m" in systems.OVER_NAMESPACE and "ext4-dax" not in systems.OVER_NAMESPACE
    with pytest.raises(host.Refused, match="transit: set up by"):
        host.refuse_plan({"systems": ["ext4", "transit"], "workloads": ["untar"]})
    with pytest.raises(host.Refused, match="mbw not installed"):
        host.refuse_plan({"systems": ["ext4"], "workloads": ["mbw-memcpy"]})


def test_events_are_followed(monkeypatch, tmp_path):
    (tmp_path / "build/bench").mkdir(parents=True)
    monkeypatch.setattr(host, "CHECKOUT", tmp_path)
    plan = {"systems": ["ext4"], "workloads": ["untar"], "rounds": 1}
    sample = {"event": "sample", "round": 1, "system": "ext4", "workload": "untar", "sample": {"value": 5}, "seconds": 1}
    events = [{"event": "machine", "kernel": "6.12"}, sample, {"event": "done", "rounds": 1}]
    script = "\n".join(f"echo '{json.dumps(event)}'" for event in events)
    monkeypatch.setattr(host, "PYTHON", ["sh", "-c", f'test $BENCH_SSD$BENCH_PMEM = /dev/a/dev/b || exit 1\n{script}'])
    found, guest = host.Host("/dev/a", "/dev/b").carry_out(plan)
    assert found[0]["sample"] == {"value": 5} and guest == {"kernel": "6.12", "rounds": 1}
    monkeypatch.setattr(host, "PYTHON", ["sh", "-c", "exit 3"])
    with pytest.raises(BenchFailed, match="status 3"):
        host.Host("/dev/a", "/dev/b").carry_out(plan)


@pytest.mark.parametrize("argv", [["demo", "--on", "host"], ["demo", "--ssd", "/dev/a"], ["demo", "--overwrite"],
                                  ["list", "--on", "host", "--ssd", "/dev/a", "--pmem", "/dev/b"]])
def test_options_that_do_not_fit(argv):
    done = subprocess.run([CHECKOUT / "bench/run", *argv], capture_output=True, text=True)
    assert done.returncode == 2 and "--on host" in done.stderr
