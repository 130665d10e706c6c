# SPDX-License-Identifier: GPL-2.0-only
"""The workloads of the PMDK thesis notice what was not done. The drivers run on the host's own file system, which is no DAX."""

import subprocess
from pathlib import Path

import pytest

from bench import helpers, results
from bench.commands import CommandFailed
from bench.workloads import faults, files, flush, kv, memory

KV_LIBRARIES = Path("/usr/include/memkind.h").exists() and Path("/usr/include/libpmemobj.h").exists()
needs_kv = pytest.mark.skipif(not KV_LIBRARIES, reason="no libmemkind-dev, or no libpmemobj-dev")


@pytest.fixture(scope="module", autouse=True)
def drivers_fixture():
    """The C programs."""
    helpers.make(["kv-hash-64"] if KV_LIBRARIES else [])


@pytest.fixture(autouse=True)
def small_fixture(monkeypatch):
    """Files are small."""
    monkeypatch.setattr(memory, "REGION_MIB", 2)
    monkeypatch.setattr(flush, "REGION_MIB", 2)
    monkeypatch.setattr(kv, "DATA_MIB", 1)
    monkeypatch.setattr(kv.guest_only, "install", lambda _: None)       # what the host has will do


@pytest.fixture(name="instead")
def instead_fixture(monkeypatch):
    """A driver that does nothing, and says that it did."""
    def plant(module, said):
        real = module.run
        monkeypatch.setattr(module, "run", lambda *argv, **options: said if str(helpers.BIN) in argv[0] else real(*argv, **options))
    return plant


@pytest.mark.parametrize("rw", ["read", "write"])
@pytest.mark.parametrize("order, chunk", [("seq", 4), ("rand", 64), ("rand", 4096), ("seq", 1 << 20)])
def test_memory(tmp_path, rw, order, chunk):
    assert memory.bandwidth(rw, order, chunk)(str(tmp_path), 0.02)["value"] > 0


def test_latency(tmp_path):
    assert 0 < memory.latency()(str(tmp_path), 0.02)["load_us"] < 10


@pytest.mark.parametrize("random", [False, True])
def test_chunks_that_were_not_written(tmp_path, instead, random):
    path = tmp_path / "0"
    path.write_bytes(bytes([0xff]) * 20480 + bytes(40960))
    memory.check_written(str(path), 5, 4096, False)
    for chunks, chunk in ((6, 4096), (4, 4096), (200, 4096), (100000, 64)):
        with pytest.raises(ValueError, match="were to be written"):
            memory.check_written(str(path), chunks, chunk, random and chunk == 64)
    instead(memory, "MAP_SHARED 4711 99999999")
    with pytest.raises(ValueError, match="were to be written"):
        memory.bandwidth("write", "rand" if random else "seq", 256)(str(tmp_path), 0.1)


@pytest.mark.parametrize("said, pmem", [("MAP_SHARED 5 1000000000", True), ("MAP_SYNC 0 1000000000", True), ("MAP_SYNC 5 800000000", False)])
def test_memory_that_was_not_used_as_asked(said, pmem):
    assert memory.counted("MAP_SYNC 5 1000000000", 1, True) == (5, 1)
    with pytest.raises(ValueError, match="memory was to"):
        memory.counted(said, 1, pmem)


MBW = "0\tMethod: MEMCPY\tElapsed: 0.0064\tMiB: 64.0\tCopy: 10000.0 MiB/s\nAVG\tMethod: MEMCPY\tElapsed: 0.00640\tMiB: 64.00000\tCopy: 10000.000 MiB/s\n"


def test_mbw():
    assert memory.mbw_rate(MBW, "MEMCPY") == 10000
    for said, kind in ((MBW, "MCBLOCK"), ("", "MEMCPY"), (MBW.replace("64.0", "32.0"), "MEMCPY"), (MBW.replace("0.00640", "0.01"), "MEMCPY"),
                       (MBW + MBW, "MEMCPY")):
        with pytest.raises(ValueError, match="mbw"):
            memory.mbw_rate(said, kind)


@pytest.mark.parametrize("name", ["create", "write", "delete"])
def test_files(tmp_path, name, instead):
    folder = tmp_path / name
    folder.mkdir()
    found = files.phase(name, 123)(str(folder), 0)
    assert found["steps"] == 123 and found["mean_us"] > 0
    with pytest.raises(ValueError, match="files are there"):
        files.check(str(folder), "create" if name == "delete" else "delete", 123)
    instead(files, "5\n" * 122)
    with pytest.raises(ValueError, match="timed 122"):
        files.phase(name, 123)(str(folder), 0)


def test_files_with_other_contents(tmp_path, instead):
    files.phase("create", 20)(str(tmp_path), 0)
    with pytest.raises(ValueError, match="other contents"):
        files.check(str(tmp_path), "write", 20)
    victim = files.path_of(str(tmp_path), 13)
    victim.write_bytes(files.content("create", 13)[:-1] + b"x")
    with pytest.raises(ValueError, match="file 13"):
        files.check(str(tmp_path), "create", 20)
    victim.unlink()
    with pytest.raises(ValueError, match="19 files"):
        files.check(str(tmp_path), "create", 20)
    instead(files, "5\n" * 20)
    with pytest.raises(ValueError, match="files are there"):
        files.phase("delete", 20)(str(tmp_path), 0)


@pytest.mark.parametrize("what, state", [("read", "cold"), ("read", "cached"), ("write", "cached"), ("mmap", "cached")])
def test_faults(tmp_path, what, state):
    found = faults.costs(what, "sync", state, mib=4)(str(tmp_path), 0.02)
    assert found["mean_us"] > 0 and 0 < found["steps"] <= (found["touched"] or 20000)


def test_pages_that_caused_no_fault():
    said = "MAP_SHARED\n" + "900\n" * 90 + "touched 100\n"
    assert faults.parse(said, "read", "MAP_SHARED") == ([900] * 90, 100)
    assert faults.parse(said.replace("100", "0"), "mmap", "MAP_SHARED") == ([900] * 90, 0)
    for spoilt, what, must in ((said, "read", "MAP_SYNC"), ("MAP_SHARED\ntouched 100\n", "read", "MAP_SHARED"),
                               ("MAP_SHARED\ntouched 0\n", "mmap", "MAP_SHARED"), (said.replace("100", "0"), "read", "MAP_SHARED"),
                               (said.replace("100", "80"), "write", "MAP_SHARED"), (said, "mmap", "MAP_SHARED")):
        with pytest.raises(ValueError, match="faults was to"):
            faults.parse(spoilt, what, must)


@pytest.mark.parametrize("way", flush.WAYS)
@pytest.mark.parametrize("size", [64, 4096])
def test_flushes(tmp_path, way, size):
    with open("/proc/cpuinfo", encoding="ascii") as file:
        if way in ("clwb", "clflushopt") and way not in file.read().split():
            with pytest.raises(CommandFailed, match=f"has no {way}"):
                flush.cost(way, size)(str(tmp_path), 0.02)
            return
    found = flush.cost(way, size)(str(tmp_path), 0.02)
    assert found["range_us"] == pytest.approx(found["line_us"] * size / 64)


def test_flushes_that_were_not_made(tmp_path, instead):
    assert flush.parse("PMEM 10 640 5000", 4096, True) == (10, 640, 5e-6)
    for said, pmem in (("MSYNC 10 640 5000", True), ("PMEM 10 640 5000", False), ("PMEM 0 0 5000", True), ("PMEM 10 10 5000", True),
                       ("PMEM 10 640 0", True)):
        with pytest.raises(ValueError, match="flush"):
            flush.parse(said, 4096, pmem)
    instead(flush, "MSYNC 1000 64000 5000")
    with pytest.raises(ValueError, match="were to be written"):
        flush.cost("clwb", 4096)(str(tmp_path), 0.02)


def test_a_way_to_flush_that_there_is_not(tmp_path):
    with pytest.raises(CommandFailed, match="no way to flush"):
        flush.cost("wbinvd", 64)(str(tmp_path), 0.02)


@needs_kv
@pytest.mark.parametrize("structure", ["hash", "tree"])
def test_stores(tmp_path, structure, monkeypatch):
    monkeypatch.setenv("PMEM_IS_PMEM_FORCE", "1")       # in place of a sync a flush, which takes no time
    found = kv.store(structure, 4096)(str(tmp_path), 5)
    assert found["volatile_keys"] == found["persistent_keys"] == 256
    assert found["cost_of_write"] == pytest.approx(found["persistent_write_us"] / found["volatile_write_us"])


@pytest.mark.parametrize("said, kind, pmem", [
    ("HEAP 100 5 200 5", "persistent", False), ("PMEM 100 5 200 5", "volatile", False), ("MSYNC 100 5 200 5", "persistent", True),
    ("PMEM 49 5000000000 98 5", "persistent", True), ("PMEM 60 4000000000 120 5", "persistent", True), ("PMEM 101 5 202 5", "persistent", True), ("PMEM 100 5 199 5", "persistent", True)])
def test_stores_that_did_something_else(said, kind, pmem):
    assert kv.parse("PMEM 60 5000000000 120 1000000000", "persistent", 100, 5, True) == (60, 5, 120, 1)
    with pytest.raises(ValueError, match="kv was to"):
        kv.parse(said, kind, 100, 5, pmem)


PLANTED = [
    ("memory", "memcpy(map + at * chunk, other, chunk);", ";", memory.bandwidth("write", "seq", 4096)),
    ("memory", "memcpy(map + at * chunk, other, chunk);", "memcpy(map, other, chunk);", memory.bandwidth("write", "rand", 64)),
    ("memory", "memcpy(other, map + at * chunk, chunk);", ";", memory.bandwidth("read", "rand", 64)),
    ("files", "pwrite(fd, data + at, piece, at)", "pwrite(fd, data + at, piece, 0)", files.phase("write", 20)),
    ("files", "unlink(name_of(file))", "0", files.phase("delete", 20)),
    ("faults", "(void)*byte;", ";", faults.costs("read", "shared", "cached", mib=4)),
    ("flush", "memset(map + offsets[i], 0xff, size);", ";", flush.cost("clflush", 4096)),
    ("flush", "line += LINE, lines++", "line += 2 * LINE, lines++", flush.cost("clflush", 4096)),
    ("kv", "memcpy(node->value, buffer, value_size);", ";", kv.store("hash", 4096)),
    ("kv", "set(where, made);", ";", kv.store("tree", 4096)),
    ("kv", "keys && (puts", "keys / 5 && (puts", kv.store("tree", 4096)),
]


@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_a_driver_with_a_planted_mistake(tmp_path, monkeypatch, number):
    """The driver is made anew without what it is to do; the workload must fail."""
    name, what, instead, measure = PLANTED[number]
    if name == "kv" and not KV_LIBRARIES:
        pytest.skip("no libmemkind-dev, or no libpmemobj-dev")
    if name == "kv":
        monkeypatch.setenv("PMEM_IS_PMEM_FORCE", "1")
    source = (helpers.SOURCES / f"{name}.c").read_text()
    assert what in source
    (tmp_path / f"{name}.c").write_text(source.replace(what, instead))
    subprocess.run(["gcc", "-std=gnu11", "-O2", f"-I{helpers.SOURCES}", "-o", tmp_path / name, tmp_path / f"{name}.c",
                    *helpers.links(name)], check=True)
    monkeypatch.setattr({"memory": memory, "files": files, "faults": faults, "flush": flush, "kv": kv}[name], "BIN", tmp_path)
    (tmp_path / "place").mkdir()
    with pytest.raises((ValueError, CommandFailed)):
        measure(str(tmp_path / "place"), 0.5 if name == "kv" else 0.05)


TRACE = """# tracer: function_graph
 0)               |  /* begins */
 0)               |  handle_mm_fault() {
 0)   1.102 us    |    __rcu_read_lock();
 0)               |    fb_dax_fault [forebay]() {
 0)   0.902 us    |    }
 0) + 21.1 us     |  }
 0)               |  /* ends */
"""


def test_a_trace_has_one_call_between_its_marks():
    lines = faults.between(TRACE, "handle_mm_fault")
    assert faults.calls(lines) == ["handle_mm_fault", "__rcu_read_lock", "fb_dax_fault"]
    assert lines[1] == "  __rcu_read_lock();"
    twice = TRACE.replace("  1.102 us    |    __rcu_read_lock();", "              |  handle_mm_fault() {")
    for spoilt in (TRACE.replace("begins", ""), TRACE + TRACE, twice, TRACE.replace("handle_mm_fault", "do_mmap")):
        with pytest.raises(ValueError, match="trace"):
            faults.between(spoilt, "handle_mm_fault")


def test_traces_are_kept_beside_the_results(tmp_path):
    rows = [{"workload": "trace-mmap-shared", "system": "ext4", "trace": ["a() {", "}"]}, {"workload": "fault-mmap", "system": "ext4"}]
    results.keep_traces(rows, tmp_path / "traces")
    assert "trace" not in rows[0]
    assert (tmp_path / "traces/trace-mmap-shared-ext4.txt").read_text() == "a() {\n}\n"
