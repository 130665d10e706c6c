# SPDX-License-Identifier: GPL-2.0-only
"""Workloads compare what was done with what was asked for: outputs that must be refused."""

import copy
import shutil

import pytest

from bench import helpers, systems
from bench.commands import CommandFailed
from bench.workloads import aio, append_log, block, dax, fio, interface, ranges, redis, transit

JOBS, SECONDS = 2, 3


def report(reads=0, writes=3000, size=4096, ms=SECONDS * 1000, syncs=3000):
    """What fio says of a group of jobs, as far as it is read."""
    done = {"clat_ns": {"percentile": {"99.000000": 9, "99.990000": 9}}, "lat_ns": {"mean": 5.0}}
    return {"error": 0, "job_runtime": JOBS * ms, "sync": {"lat_ns": {"N": syncs, "mean": 7.0}}, "iodepth_level": {"8": 99.9}, "cost": {"cost_cpu_us": 5.0},
            "read": {**done, "total_ios": reads, "io_bytes": reads * size, "iops": reads / 3, "bw_bytes": reads * size / 3},
            "write": {**done, "total_ios": writes, "io_bytes": writes * size, "iops": writes / 3, "bw_bytes": writes * size / 3}}


def test_a_run_that_did_what_was_asked_for():
    fio.check_timed(report(), SECONDS, write=4096, jobs=JOBS)
    fio.check_timed(report(reads=7), SECONDS, read=4096, write=4096, jobs=JOBS)
    late = report()
    late["write"]["io_bytes"] += 400 * 4096         # in flight when the ramp ended
    fio.check_timed(late, SECONDS, write=4096, jobs=JOBS, depth=256)
    with pytest.raises(ValueError):
        fio.check_timed(late, SECONDS, write=4096, jobs=JOBS, depth=32)


@pytest.mark.parametrize("did, problem", [
    (report(ms=1400), "ran for 2800 ms"),               # one of two jobs ended early
    (report(writes=0), "to write blocks"),              # nothing
    (report(reads=1), "to read blocks"),                # something else
    (report(size=512), "to write blocks of 4096"),
])
def test_fio_did_something_else(did, problem):
    with pytest.raises(ValueError, match=problem):
        fio.check_timed(did, SECONDS, write=4096, jobs=JOBS)


@pytest.mark.parametrize("reads, writes, percent, good", [
    (2100, 900, 30, True), (99, 1, 1, True), (3000, 0, 30, False), (1500, 1500, 99, False), (0, 0, 50, False)])
def test_the_mix_is_the_one_asked_for(reads, writes, percent, good):
    if good:
        fio.check_mix(report(reads, writes), percent)
    else:
        with pytest.raises(ValueError, match=f"do {percent} % writes"):
            fio.check_mix(report(reads, writes), percent)


def test_a_log_with_holes_at_its_end():
    block.check_windows([5.0, 0, 7.0, 5.0], 2, 0.5)
    for series in ([5.0], [], [0, 0, 0, 0]):
        with pytest.raises(ValueError, match="fio logged"):
            block.check_windows(series, 2, 0.5)


def test_a_cache_that_was_not_written_back():
    assert block.absorbed(600, 100) == 6
    with pytest.raises(ValueError, match="was not written back"):
        block.absorbed(1 << 20, 512)


def test_mapsync_must_have_mapped_pmem_on_forebay():
    assert ranges.sync_times("MAP_SYNC\n7\n5\n", True) == [5, 7]
    assert ranges.sync_times("MAP_SHARED\n5\n", False) == [5]
    for said, must in (("MAP_SHARED\n5\n", True), ("MAP_SYNC\n", True), ("MAP_SHARED\n", False)):
        with pytest.raises(ValueError, match="mapsync"):
            ranges.sync_times(said, must)


INFO = "# Persistence\r\naof_enabled:{}\r\naof_last_write_status:{}\r\naof_current_size:4711\r\n"


def test_redis_must_have_logged():
    assert redis.log_size(INFO.format(1, "ok")) == 4711
    for enabled, status in ((0, "ok"), (1, "err")):
        with pytest.raises(RuntimeError, match="logs nothing"):
            redis.log_size(INFO.format(enabled, status))
    redis.check_logged(100, 100 * redis.LOGGED)
    with pytest.raises(RuntimeError, match="answered 100 SETs"):
        redis.check_logged(100, 50 * redis.LOGGED)


@pytest.fixture(name="said")
def said_fixture(monkeypatch):
    """fio says what a test wants it to; caches, devices and files are made up."""
    said = {}

    def fio_says(*_, **__):
        return said["report"]
    for module in (fio, block, transit):
        monkeypatch.setattr(module, "fio", fio_says)
        monkeypatch.setattr(module, "lay_out", lambda *_: None, raising=False)
    for module in (block, transit):
        monkeypatch.setattr(module, "settle", lambda: None)
    monkeypatch.setattr(fio, "read_all", lambda *_: None)
    monkeypatch.setattr(fio, "drop_caches", lambda: None)
    monkeypatch.setattr(block, "on_device", fio_says)
    monkeypatch.setattr(block, "rates", lambda *_: [1.0] * 300)
    monkeypatch.setattr(ranges, "lay_out", lambda *_: None)
    monkeypatch.setattr(ranges, "on_forebay", lambda *_: False)
    monkeypatch.setattr(aio, "lay_out", lambda *_: None)
    monkeypatch.setattr(aio, "run", lambda *_: "")
    for module in (ranges, aio, interface, dax):
        monkeypatch.setattr(module, "report_of", fio_says)
    for module in (interface, dax):
        monkeypatch.setattr(module, "on_mapping", lambda *_: ())
        monkeypatch.setattr(module, "lay_out", lambda *_: None)
    monkeypatch.setattr(dax, "read_all", lambda *_: None)
    monkeypatch.setattr(transit, "slots", lambda: (0, 16384))
    return said


READS = report(reads=3000, writes=0)
# A workload, and what fio says when it has done as it was told; runs of a given size say how many blocks that is.
WORKLOADS = [
    (fio.synced_writes(jobs=JOBS), report()), (fio.synced_appends(), report()), (fio.random_read(), READS),
    (fio.sequential_read(cached=True), report(reads=9, writes=0, size=128 << 10)),
    (fio.sequential_read(cached=False, mib=1), report(reads=8, writes=0, size=128 << 10)),
    (fio.sequential_write(mib=1), report(writes=8, size=128 << 10)),
    (block.scaling(JOBS, 4096, mib=2), report(writes=512)), (block.scaling_fsync(JOBS, 4096), report()),
    (block.mix(JOBS, 50), report(reads=3000)), (block.sustained(jobs=JOBS, length=120), report(ms=120000)),
    (dax.synced_blocks(4096, JOBS), report()), (ranges.direct("randread", True), READS), (ranges.direct("randwrite", True), report()),
    (interface.writes(JOBS, 4096), report(ms=4000)), (aio.asynchronous("read"), READS), (aio.asynchronous("randwrite"), report()),
    (transit.direct(JOBS, 32), report()), (transit.fsync_every(512), report(writes=4096, syncs=32)),
    (transit.breakdown(writes=512), report(writes=512)),
]


@pytest.mark.parametrize("number", range(len(WORKLOADS)))
def test_each_workload_of_fio_refuses_what_was_not_asked_for(said, tmp_path, number):
    measure, good = WORKLOADS[number]
    said["report"] = good
    assert measure(str(tmp_path), SECONDS)["value"] > 0
    for spoilt in ("none", "half"):
        said["report"] = bad = copy.deepcopy(good)
        for kind in ("read", "write"):
            for name in ("total_ios", "io_bytes"):
                bad[kind][name] //= 2 if spoilt == "half" else 10 ** 9
        bad["job_runtime"] //= 4
        with pytest.raises(ValueError, match="fio"):
            measure(str(tmp_path), SECONDS)


def test_a_cache_that_was_not_filled(said, tmp_path):
    said["report"] = report(writes=16384)           # 64 MiB, but the fill is of that size, too
    assert transit.full_cache(32)(str(tmp_path), SECONDS)["percent_used_before"] == 0
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    said["report"] = report(writes=16383)
    with pytest.raises(ValueError, match="to do 67108864 bytes"):
        transit.full_cache(32)(str(tmp_path), SECONDS)


MOUNTS = "/dev/nvme0n1 /mnt/bench-lower ext4 rw 0 0\n/mnt/bench-lower /mnt/bench {} rw 0 0\n"


@pytest.mark.parametrize("name, kind", [("forebay-names", "forebay"), ("ext4-btt", "ext4"), ("overlayfs", "overlay"), ("tmpfs", "tmpfs"),
                                        ("xfs", "xfs"), ("transit-no-ee", "ext4")])
def test_a_system_that_is_not_mounted_is_noticed(name, kind):
    systems.check_mounted(name, "/mnt/bench", MOUNTS.format(kind))
    for mounts in (MOUNTS.format("ext3"), MOUNTS.format(kind).partition("\n")[0], ""):
        with pytest.raises(RuntimeError, match=f"a mount of {kind}"):
            systems.check_mounted(name, "/mnt/bench", mounts)


@pytest.mark.parametrize("name, kind", [("ext4-dax", "ext4"), ("xfs-dax", "xfs")])
def test_a_mount_without_dax_is_noticed(name, kind):
    mounts = f"/dev/pmem0 /mnt/bench {kind} rw,relatime,dax=always 0 0\n"
    systems.check_mounted(name, "/mnt/bench", mounts)
    with pytest.raises(RuntimeError, match="without DAX"):
        systems.check_mounted(name, "/mnt/bench", mounts.replace("dax=always", "dax=never"))
    with pytest.raises(RuntimeError, match="with DAX"):
        systems.check_mounted(name.replace("dax", "pmem"), "/mnt/bench", mounts)


def test_fio_had_too_few_in_flight(said, tmp_path):
    said["report"] = report() | {"iodepth_level": {"1": 60.0, "8": 40.0}}
    with pytest.raises(ValueError, match="8 in flight"):
        aio.asynchronous("write")(str(tmp_path), SECONDS)


def test_a_folder_is_no_device(tmp_path):
    with pytest.raises(RuntimeError, match="no block device"):
        systems.check_mounted("bare-ssd", str(tmp_path), "")
    with pytest.raises(RuntimeError, match="no character device"):
        systems.check_mounted("devdax", str(tmp_path), "")
    systems.check_mounted("devdax", "/dev/null", "")


def test_real_programs_are_understood(tmp_path):
    """fio and mapsync on the host's own file system, which is no DAX."""
    if not shutil.which("fio"):
        pytest.skip("no fio")
    helpers.make()
    for name, measure in (("a", fio.synced_writes(jobs=2, mib=1)), ("c", ranges.synced_mapping(1, 4)), ("d", fio.random_read(mib=1))):
        (tmp_path / name).mkdir()
        assert measure(str(tmp_path / name), 0.3)["value"] > 0


def test_a_log_must_be_written_as_asked(tmp_path):
    log = tmp_path / "appendonlydir/appendonly.aof.1.incr.aof"
    log.parent.mkdir()
    for content, mapped in ((b"*1\r\n" * 2000, False), (b"log".ljust(8192, b"\0") + append_log.PLACE.ljust(4096, b"\0"), True)):
        log.write_bytes(content)
        append_log.check_mapped(str(tmp_path), mapped)
        with pytest.raises(RuntimeError, match="not asked for"):
            append_log.check_mapped(str(tmp_path), not mapped)


def test_a_real_redis_is_timed(tmp_path):
    if not shutil.which("redis-benchmark"):
        pytest.skip("no redis-benchmark")
    found = append_log.commands("always", 10)(str(tmp_path), 0.3)
    assert 0 < found["p50_us"] <= found["p99_us"] <= found["p999_us"] <= found["max_us"]
    assert found["cpu_us"] > 0 and found["timed"] >= append_log.LEAST


def test_a_real_redis_is_understood(tmp_path):
    if not shutil.which("redis-benchmark"):
        pytest.skip("no Redis")
    assert redis.sets(clients=1)(str(tmp_path), 0.3)["value"] > 0


def test_commands_fail_with_their_words():
    with pytest.raises(CommandFailed, match="status 3: no"):
        block.run("sh", "-c", "echo no >&2; exit 3")
