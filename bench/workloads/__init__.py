# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: each workload works in a folder for about so many seconds and returns {"value": ...}.

Besides the value, in the workload's unit, a workload may return figures of its own; they go to the JSON results.
"""

from . import (aio, append_log, block, dax, dpkg, etcd, faults, files, fio, flush, git, interface, kv, lmdb, mariadb, memory, names, postfix,
               postgres, ranges, redis, share, transit, untar, ycsb)

OPS, MIB, FILES = "ops/s", "MiB/s", "files/s"

# name: (unit, what it is, function of folder and seconds)
WORKLOADS = {
    "redis-set-c1": (OPS, "Redis SET, appendfsync always, 1 client", redis.sets(clients=1)),
    "redis-set-c50": (OPS, "Redis SET, appendfsync always, 50 clients", redis.sets(clients=50)),
    "fio-fdatasync-j1": (OPS, "4 KiB random write + fdatasync, 1 job", fio.synced_writes(jobs=1)),
    "fio-fdatasync-j2": (OPS, "4 KiB random write + fdatasync, 2 jobs", fio.synced_writes(jobs=2)),
    "append-fdatasync": (OPS, "4 KiB append + fdatasync", fio.synced_appends()),
    "randwrite-128k": (OPS, "128 KiB random write + fdatasync", fio.synced_writes(block=128 << 10, mib=256)),
    "seqwrite": (MIB, "buffered sequential write of a new file, no sync", fio.sequential_write()),
    "seqread-cold": (MIB, "buffered sequential read, caches dropped", fio.sequential_read(cached=False)),
    "seqread-cached": (MIB, "buffered sequential read, cached", fio.sequential_read(cached=True)),
    "randread-cached": (OPS, "4 KiB random read, cached", fio.random_read()),
    "rocksdb-fillsync-t1": (OPS, "RocksDB fillsync, 1 thread", block.fillsync(1)),
    "rocksdb-fillsync-t8": (OPS, "RocksDB fillsync, 8 threads", block.fillsync(8)),
    "mariadb-insert-t1": (OPS, "MariaDB, sysbench oltp_insert, 1 thread", mariadb.inserts(1)),
    "mariadb-insert-t8": (OPS, "MariaDB, sysbench oltp_insert, 8 threads", mariadb.inserts(8)),
    "bare-sustained": (MIB, "4 KiB direct writes for two minutes into a small cache, 4 writers", block.sustained()),
    "bare-sustained-least": (MIB, "the worst half second of bare-sustained, which runs before it", block.sustained_least()),
    "bare-zipf": ("× absorbed", "4 KiB zipfian overwrites: MiB written for a MiB that reaches the SSD", block.zipfian()),
    "untar": (FILES, "tar x of kernel sources, no sync", untar.untar()),
    **{f"mapped-{mib}m": (MIB, f"2 MiB stored to a mapping of {mib} MiB, fdatasync", ranges.synced_mapping(mib, 512))
       for mib in (2, 32, 256, 2048)},
    **{f"dirty-{4 * pages}k": (MIB, f"{4 * pages} KiB stored to a mapping of 2 MiB, fdatasync", ranges.synced_mapping(2, pages))
       for pages in (1, 8, 64)},
    **{f"blocks-{kib}k-t{threads}": (MIB, f"{kib} KiB to a mapping at random, msync() after each, {threads} threads",
                                     dax.synced_blocks(kib << 10, threads, "--dax_msync=1"))
       for kib in (4, 16, 64, 128, 256, 1024) for threads in (1, 2, 4, 8)},
    **{f"fenced-{kib}k-t{threads}": (MIB, f"the same, where that is persistent memory flushed by the program and fenced, {threads} threads",
                                     dax.synced_blocks(kib << 10, threads))
       for kib in (4, 16, 64, 128, 256, 1024) for threads in (1, 2, 4, 8)},
    **{f"scattered-{pages}": ("batches/s", f"{pages} scattered pages written, fdatasync", ranges.synced_batches(pages, True))
       for pages in (8, 16, 32, 64, 128, 256)},
    **{f"piece-{4 * pages}k": ("batches/s", f"{4 * pages} KiB written in one piece, fdatasync", ranges.synced_batches(pages, False))
       for pages in (1, 4, 16, 64, 256, 512, 1024)},
    **{f"direct-{short}-{where}": (OPS, f"4 KiB direct {rw}, {about}", ranges.direct(rw, where == "pmem"))
       for short, rw in (("read", "randread"), ("write", "randwrite"))
       for where, about in (("pmem", "pages in PMem"), ("elsewhere", "other pages of a file that has some"))},
    "locked-alone": (OPS, "flushed stores to a locked DAX mapping", share.stored_beside()),
    "locked-beside": (OPS, "the same beside a task that thrashes", share.stored_beside(share.stored)),
    "unlocked-beside": (OPS, "the same, not locked", share.stored_beside(share.stored, lock=False)),
    "synced-alone": (OPS, "4 KiB overwrites of 8 MiB, fdatasync after each", share.synced_beside()),
    "synced-beside-computing": (OPS, "the same beside a task that computes", share.synced_beside(share.computing)),
    "synced-beside-direct": (OPS, "the same beside a task that writes to the SSD past Forebay, as much as the worker does",
                             share.synced_beside(share.direct)),
    "synced-beside-synced": (OPS, "the same beside a task that does it in 256 MiB", share.synced_beside(share.synced)),
    "synced-beside-stored": (OPS, "the same beside a task that stores to a DAX mapping of 256 MiB", share.synced_beside(share.stored)),
}

WORKLOADS |= {
    **{f"depth-{depth}": (OPS, f"4 KiB direct random writes, {depth} in flight", transit.direct(1, depth))
       for depth in (32, 64, 128, 256, 512, 1024)},
    **{f"jobs-{jobs}": (OPS, f"4 KiB direct random writes, {jobs} jobs, 32 in flight each", transit.direct(jobs, 32))
       for jobs in (1, 2, 4, 8)},
    "full-cache": (OPS, "4 KiB direct random writes, 32 in flight, through a cache that was full", transit.full_cache(32)),
    **{f"fsync-every-{kib}k": ("fsyncs/s", f"4 KiB direct random writes, fsync after {kib} KiB; the fsyncs' own time",
                               transit.fsync_every(kib))
       for kib in (512, 2048, 8192, 32768, 131072)},
    "breakdown": (OPS, "4 KiB direct random writes, one at a time, with the time of each phase", transit.breakdown()),
    "rocksdb-fillrandom": (OPS, "RocksDB fillrandom, 1 KiB values", transit.rocksdb("fillrandom", fill=False)),
    "rocksdb-overwrite": (OPS, "RocksDB overwrite", transit.rocksdb("overwrite")),
    "rocksdb-readrandom": (OPS, "RocksDB readrandom", transit.rocksdb("readrandom")),
    "rocksdb-readhot": (OPS, "RocksDB readrandom, few keys most of the time",
                        transit.rocksdb("readrandom", "--read_random_exp_range=25")),
    "ycsb-load": (OPS, "YCSB on RocksDB, loading 20,000 records of 1 KiB", ycsb.load()),
    **{f"ycsb-{workload}-{distribution}": (OPS, f"YCSB {workload.upper()} on RocksDB, {about}, {distribution}",
                                           ycsb.transactions(workload, distribution))
       for workload, about in (("a", "half reads, half updates"), ("f", "half reads, half read-modify-writes"))
       for distribution in ("uniform", "zipfian", "latest")},
}

WORKLOADS |= {
    "names-create": (OPS, "a new file of 4 KiB, fsync", names.steps("create")),
    "names-maildir": (OPS, "a new file of 4 KiB, fsync, rename to another folder, fsync of that", names.steps("maildir")),
    "names-replace": (OPS, "a new file of 4 KiB, fsync, rename over another, fsync of the folder", names.steps("replace")),
    **{f"names-sqlite-{mode}": (OPS, f"SQLite, journal_mode={mode}, synchronous=FULL: inserts, a transaction each", names.sqlite(mode))
       for mode in ("delete", "truncate", "persist")},
    "names-wal-1m": ("segments/s", "a new file of 1 MiB, fsync, fsync of the folder, an older one is deleted", names.steps("wal")),
}

WORKLOADS |= {
    "git-commit": ("commits/s", "git with core.fsync=all: a line more in five files, git commit -a", git.commits()),
    "mail-postfix": ("mails/s", "Postfix: mails of 3.6 KB by SMTP, through the queue into maildirs, 4 clients", postfix.deliveries()),
    "dpkg-unpack": (FILES, "dpkg --unpack of packages of 20 files, 4 at a time", dpkg.unpack()),
    "etcd-put": (OPS, "etcd: puts of 256 bytes by its HTTP gateway, 8 clients", etcd.puts()),
    "postgres-insert": ("tps", "PostgreSQL with WAL in new files of 1 MiB: inserts of 6 KB, a transaction each, 4 clients", postgres.inserts()),
    "lmdb-put": ("commits/s", "LMDB, synchronous: a put of 100 bytes, a transaction each", lmdb.puts()),
}

WORKLOADS |= {
    **{f"aof-{fsync}{'-mapped' if mapped else ''}-p{pipeline}":
       (OPS, f"Redis SET, appendfsync {fsync}, pipelines of {pipeline}{', log-preload' if mapped else ''}; with response times",
        append_log.commands(fsync, pipeline, mapped))
       for fsync in ("always", "everysec", "no") for mapped in (False, True) for pipeline in (1, 10, 100, 1000)},
    **{f"aof-always{'-mapped' if mapped else ''}-{command}":
       (OPS, f"Redis {command.upper()}, appendfsync always{', log-preload' if mapped else ''}; with response times",
        append_log.commands("always", 1, mapped, command))
       for mapped in (False, True) for command in ("hset", "incr")},
}

INTERFACE = {f"{block >> 10}k" if block >= 1024 else str(block): block for block in (512, 4096, 16384, 131072, 1 << 20)}
WORKLOADS |= {f"interface-{name}-t{threads}": (MIB, f"random writes of {name} bytes, {threads} threads; with processor time",
                                               interface.writes(threads, block))
              for threads in (1, 2, 4, 8) for name, block in INTERFACE.items()}

# The PMDK thesis. Sizes in names are bytes.
CHUNKS = (4, 64, 1024, 4096, 16384, 262144, 4 << 20)
VALUES = (64, 1024, 4096, 16384, 65536, 262144)
FLUSHED = (64, 256, 1024, 4096, 16384, 65536)
WORKLOADS |= {
    **{f"memory-{order}{rw}-{chunk}": (MIB, f"memcpy() of {chunk} bytes {about}, {'at random' if order == 'rand' else 'one after the other'}",
                                       memory.bandwidth(rw, order, chunk))
       for order in ("seq", "rand") for rw, about in (("read", "out of a mapping"), ("write", "into a mapping")) for chunk in CHUNKS},
    "memory-latency": ("loads/s", "loads of which each says where the next one is, 64 MiB mapped", memory.latency()),
    "mbw-memcpy": (MIB, "mbw: memcpy() of an array, in ordinary memory whatever the system", memory.mbw("memcpy")),
    "mbw-mcblock-4096": (MIB, "mbw: the same by blocks of 4 KiB", memory.mbw("mcblock", 4096)),
    **{f"aio-{rw}": (MIB, f"fio, libaio, 8 in flight, 4 KiB {rw}, direct (tmpfs: buffered)", aio.asynchronous(rw))
       for rw in ("read", "write", "randread", "randwrite")},
    "files-create": (FILES, "new files of 64 KiB, no sync", files.phase("create")),
    "files-write": (FILES, "files of 64 KiB opened and overwritten by 16 calls, no sync", files.phase("write")),
    "files-delete": (FILES, "files of 64 KiB deleted", files.phase("delete")),
    **{f"fault-{what}-{how}-{state}": ("faults/s", f"page faults of a mapping ({how}), by a {what} at random, {about}",
                                       faults.costs(what, how, state))
       for what, how, state, about in (
           ("read", "shared", "cold", "page cache dropped"), ("read", "shared", "cached", "file in memory"),
           ("write", "shared", "cached", "file in memory"), ("read", "sync", "cached", "file in memory"),
           ("write", "sync", "cached", "file in memory"))},
    "fault-mmap": (OPS, "mmap() of a file of 64 MiB", faults.costs("mmap", "shared", "cached")),
    **{f"trace-{what}-{how}": ("calls", f"functions of the kernel in one {about}; the trace is kept", faults.trace(what, how))
       for what, how, about in (("read", "shared", "fault by a read"), ("read", "sync", "fault by a read, MAP_SYNC"),
                                ("write", "sync", "fault by a write, MAP_SYNC"), ("mmap", "shared", "mmap()"))},
    **{f"kv-{structure}-{size}": ("puts/s", f"own key-value store ({structure}), values of {size} bytes, volatile and persistent",
                                  kv.store(structure, size))
       for structure in ("hash", "tree") for size in VALUES},
    **{f"flush-{way}-{size}": ("lines/s", f"flushes ({way}) of {size} bytes at random, each fenced", flush.cost(way, size))
       for way in flush.WAYS for size in FLUSHED},
}

SIZES = {"4k": 4096, "64k": 65536, "1m": 1 << 20}
for _jobs in (1, 2, 4, 8):
    for _name, _size in SIZES.items():
        WORKLOADS[f"bare-{_name}-j{_jobs}"] = (MIB, f"{_name} direct random writes on the device, {_jobs} writers",
                                               block.scaling(_jobs, _size))
        WORKLOADS[f"fsync-{_name}-j{_jobs}"] = (MIB, f"{_name} random writes + fsync, {_jobs} writers with a file each",
                                                block.scaling_fsync(_jobs, _size))
    for _writes in (1, 30, 50, 70, 99):
        WORKLOADS[f"bare-mix-w{_writes}-j{_jobs}"] = (MIB, f"4 KiB direct, {_writes} % writes, {_jobs} workers",
                                                      block.mix(_jobs, _writes))
