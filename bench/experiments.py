# SPDX-License-Identifier: GPL-2.0-only
"""Which workloads are compared on which systems, and what must come out."""

from dataclasses import dataclass

from .systems import BARE, CACHE_MIB, STAGING, SYSTEMS


@dataclass(frozen=True)
class Target:
    """The ratio that a system must reach to another."""
    workload: str
    to: str
    at_least: float
    of: str = "forebay"
    to_workload: str = ""       # if it is another one
    figure: str = "value"       # or one of its own that the workload returns; of a time (..._us) less is better


@dataclass(frozen=True)
class Experiment:
    about: str
    workloads: tuple[str, ...]
    systems: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    rounds: int = 3
    seconds: float = 3          # that a run of a workload counts
    budget: float = 600         # seconds: no round begins that would not end in them
    least_rounds: int = 2       # the budget notwithstanding
    full_rounds: int = 7
    pmem_mib: int = 1024
    nvme_mib: int = 2048
    cpu: str = ""               # the guest's if it is emulated, as QEMU's -cpu takes it; none: max
    only: bool = False          # its workloads make sense on its systems alone

    def plan(self, full: bool = False, systems: tuple[str, ...] | None = None, rounds: int | None = None) -> dict:
        """What the guest is told."""
        if full:
            # Workloads on a device are none for a folder, and the other way round.
            folders = tuple(name for name in SYSTEMS if name not in BARE)
            systems = systems or (self.systems if self.only or self.systems[0] in BARE else folders)
            rounds = rounds or self.full_rounds
        return {"workloads": list(self.workloads), "systems": list(systems or self.systems),
                "rounds": rounds or self.rounds, "least_rounds": rounds or self.least_rounds,
                "seconds": self.seconds * (2 if full else 1), "budget": self.budget}


SYNC = ("redis-set-c1", "redis-set-c50", "fio-fdatasync-j1", "fio-fdatasync-j2")
SYNC_TARGETS = (
    Target("fio-fdatasync-j1", "ext4", 80), Target("fio-fdatasync-j1", "tmpfs", 0.6),
    Target("fio-fdatasync-j2", "tmpfs", 0.8),
    Target("redis-set-c1", "ext4", 4.5), Target("redis-set-c1", "tmpfs", 0.9),
)
OURS = ("forebay", "forebay-cpu")
MAPPED = ("mapped-2m", "mapped-32m", "mapped-256m", "mapped-2048m")
DIRTY = ("dirty-4k", "dirty-32k", "dirty-256k")
BATCHES = (*(f"scattered-{pages}" for pages in (8, 16, 32, 64, 128, 256)),
           *(f"piece-{kib}k" for kib in (4, 16, 64, 256, 1024, 2048, 4096)))
BLOCKS = tuple(f"blocks-{kib}k-t{threads}" for kib, threads in (
    (4, 1), (16, 1), (64, 1), (128, 1), (256, 1), (1024, 1), (4, 2), (128, 2), (4, 4), (128, 4), (4, 8), (128, 8), (1024, 8)))
FENCED = tuple(f"fenced-{kib}k-t{threads}" for kib, threads in (
    (4, 1), (16, 1), (64, 1), (128, 1), (256, 1), (1024, 1), (128, 2), (128, 4), (128, 8)))
WRITERS, SIZES, MIXES = (1, 2, 4, 8), ("4k", "64k", "1m"), (1, 30, 50, 70, 99)
SCALING = tuple(f"bare-{block}-j{jobs}" for block in SIZES for jobs in WRITERS)
SCALING_FSYNC = tuple(f"fsync-{block}-j{jobs}" for block in SIZES for jobs in WRITERS)
MIXED = tuple(f"bare-mix-w{writes}-j{jobs}" for writes in MIXES for jobs in WRITERS)
DATABASES = ("redis-set-c1", "redis-set-c50", "rocksdb-fillsync-t1", "rocksdb-fillsync-t8",
             "mariadb-insert-t1", "mariadb-insert-t8")
BARE_PEERS = ("bare-ssd", "bare-dm-writecache", "bare-writelog")
OVER_BTT = ("ext4-btt", "transit", *STAGING)
# Copies from DRAM to DRAM are not done byte by byte then (docs/benchmarks.md): they would cost more than those to PMem.
COPYING = "max,-erms,-fsrm"
DEPTHS = tuple(f"depth-{depth}" for depth in (32, 64, 128, 256, 512, 1024))
JOBS = tuple(f"jobs-{jobs}" for jobs in (1, 2, 4, 8))
FSYNCS = tuple(f"fsync-every-{kib}k" for kib in (512, 2048, 8192, 32768, 131072))
ROCKSDB = tuple(f"rocksdb-{name}" for name in ("fillrandom", "overwrite", "readrandom", "readhot"))
YCSB = ("ycsb-load", *(f"ycsb-{workload}-{asked}" for workload in "af" for asked in ("uniform", "zipfian", "latest")))
INTERFACE = tuple(f"interface-{size}-t{threads}" for threads in (1, 2, 4, 8) for size in ("512", "4k", "16k", "128k", "1024k"))
READS_AND_WRITES = ("seqwrite", "seqread-cold", "seqread-cached", "randread-cached")

NAMES = ("names-create", "names-maildir", "names-replace", "names-sqlite-delete", "names-sqlite-truncate", "names-sqlite-persist",
         "names-wal-1m")
PROGRAMS = ("git-commit", "lmdb-put", "mail-postfix", "dpkg-unpack", "etcd-put", "postgres-insert")

MEMORY = {f"{order}{rw}": tuple(f"memory-{order}{rw}-{chunk}" for chunk in (4, 64, 1024, 4096, 16384, 262144, 4 << 20))
          for order in ("seq", "rand") for rw in ("read", "write")}
AIO = tuple(f"aio-{rw}" for rw in ("read", "write", "randread", "randwrite"))
FILES = ("files-create", "files-write", "files-delete")
FAULTS = ("fault-read-shared-cold", "fault-read-shared-cached", "fault-write-shared-cached", "fault-read-sync-cached",
          "fault-write-sync-cached", "fault-mmap")
TRACES = ("trace-read-shared", "trace-read-sync", "trace-write-sync", "trace-mmap-shared")
KV = {structure: tuple(f"kv-{structure}-{size}" for size in (64, 1024, 4096, 16384, 65536, 262144)) for structure in ("hash", "tree")}
FLUSHES = {way: tuple(f"flush-{way}-{size}" for size in (64, 256, 1024, 4096, 16384, 65536))
           for way in ("persist", "clwb", "clflushopt", "clflush", "nt")}
# Those of the PMDK thesis, with and without DAX on the same memory, and the SSD's. NOVA isn't in Linux.
WITH_AND_WITHOUT_DAX = ("tmpfs", "ext4", "xfs", "ext4-pmem", "xfs-pmem", "ext4-dax", "xfs-dax", "forebay")

AOF = {fsync: tuple(f"aof-{fsync}{how}-p{pipeline}" for how in ("", "-mapped") for pipeline in (1, 10, 100, 1000))
       for fsync in ("always", "everysec", "no")}
AOF_COMMANDS = tuple(f"aof-always{how}-{command}" for command in ("hset", "incr") for how in ("", "-mapped"))

EXPERIMENTS = {
    "demo": Experiment("Redis and fio, every write made durable; what `make demo` runs", SYNC,
                       ("ext4", "dm-writecache", "forebay", "tmpfs"), SYNC_TARGETS, seconds=1.5, budget=205, least_rounds=1),
    "sync": Experiment("the demo's workloads on more systems", SYNC,
                       ("ext4", "xfs", "ext4-pmem-journal", "dm-writecache", "forebay", "ext4-dax", "tmpfs"),
                       SYNC_TARGETS),
    "append": Experiment("a log that grows", ("append-fdatasync",),
                         ("ext4", "dm-writecache", "forebay", "ext4-dax", "tmpfs"),
                         (Target("append-fdatasync", "ext4", 60),), rounds=5),
    "append-log": Experiment(
        "Redis's append-only file written by calls and through a mapping, by policy and pipeline (hybrid-storage-thesis 5.4)",
        (*AOF["always"], *AOF["everysec"], *AOF["no"], *AOF_COMMANDS), ("ext4", "forebay", "ext4-dax", "tmpfs"),
        (Target("aof-always-mapped-p1", "ext4", 4.1, to_workload="aof-always-p1"),
         Target("aof-always-mapped-p1", "tmpfs", 0.95, to_workload="aof-always-p1"),
         Target("aof-always-mapped-p1", "ext4", 4.35, to_workload="aof-always-p1", figure="p99_us")),      # 77 % less
        seconds=1.5, budget=2400, least_rounds=1),
    "randwrite-128k": Experiment("larger writes, each made durable", ("randwrite-128k",),
                                 ("ext4", "dm-writecache", "forebay", "ext4-dax", "tmpfs"),
                                 (Target("randwrite-128k", "ext4", 4),), rounds=5),
    "scattered": Experiment(
        "many pages, scattered or in one piece, each batch made durable; with a cache of four times the file, and of a quarter of it",
        BATCHES, ("ext4", "forebay", "forebay-small", "tmpfs"),
        (*(Target(workload, "tmpfs", 0.6) for workload in BATCHES),
         *(Target(workload, "ext4", 1.0, "forebay-small") for workload in BATCHES)),
        seconds=1.5, budget=900),
    "names": Experiment(
        "sync calls that owe names; with a name log in the cache and without", NAMES,
        ("ext4", "forebay", "forebay-names", "ext4-dax", "tmpfs", "dm-writecache"),
        (*(Target(workload, "forebay", 1.0, "forebay-names") for workload in NAMES),
         *(Target(workload, "ext4-dax", 1.0, "forebay-names") for workload in NAMES[:-1]),
         Target(NAMES[-1], "ext4", 1.0, "forebay-names")), budget=900, cpu=COPYING),
    "programs": Experiment(
        "real programs whose sync calls owe names; with a name log in the cache and without", PROGRAMS,
        ("ext4", "forebay", "forebay-names", "ext4-dax", "dm-writecache"),
        tuple(Target(workload, to, 1.0, "forebay-names") for workload in PROGRAMS for to in ("ext4", "forebay")),
        seconds=10, budget=1800, least_rounds=1, cpu=COPYING),
    "no-tax": Experiment("work that never syncs: nothing to gain, nothing to lose", (*READS_AND_WRITES, "untar"),
                         ("ext4", "forebay", "overlayfs"),
                         (*(Target(workload, "ext4", 0.95) for workload in READS_AND_WRITES),
                          Target("untar", "ext4", 0.9)), rounds=7),
    "mapping-sync": Experiment(
        "what fdatasync() of a mapping costs, by its size and by what is dirty (hybrid-storage-thesis 5.2)",
        (*MAPPED, *DIRTY), ("ext4", *OURS),
        (*(Target("mapped-2m", "ext4", 37, of) for of in OURS),
         *(Target("mapped-2048m", of, 0.8, of, "mapped-2m") for of in OURS),        # 1.25 times the latency
         *(Target(workload, "ext4", 1, of) for of in OURS for workload in (*MAPPED[1:], *DIRTY))),
        seconds=1.5, budget=900, pmem_mib=2560, nvme_mib=4096),
    "sync-blocksize": Experiment(
        "random writes to a mapping, one sync a block, by its size and the number of threads (hybrid-storage-thesis 5.3)",
        (*BLOCKS, *FENCED), ("ext4", *OURS, "ext4-dax"),
        (*(Target(workload, "ext4", 11 if "128k" in workload else 1, of) for of in OURS for workload in (*BLOCKS, *FENCED)),
         *(Target(workload, "ext4-dax", 0.9) for workload in FENCED)),
        seconds=1.5, budget=1200),
    "direct-io": Experiment(
        "4 KiB direct I/O, where pages are in PMem and where not",
        ("direct-read-pmem", "direct-write-pmem", "direct-read-elsewhere", "direct-write-elsewhere"),
        ("ext4", "forebay", "ext4-dax"),
        (Target("direct-read-pmem", "ext4", 10), Target("direct-write-pmem", "ext4", 10),
         Target("direct-read-elsewhere", "ext4", 0.9), Target("direct-write-elsewhere", "ext4", 0.9)), rounds=5),
    "locked": Experiment(
        "a task with locked pages beside one that thrashes",
        ("locked-alone", "locked-beside", "unlocked-beside"), ("forebay-small",),
        (Target("locked-beside", "forebay-small", 0.9, "forebay-small", "locked-alone"),), seconds=5, rounds=3, only=True),
    "share": Experiment(
        "small synced writes beside a task that goes through four times the cache; nothing is pinned",
        ("synced-alone", "synced-beside-computing", "synced-beside-direct", "synced-beside-synced", "synced-beside-stored"), ("forebay-small",),
        tuple(Target(workload, "forebay-small", 0.9, "forebay-small", "synced-alone")
              for workload in ("synced-beside-synced", "synced-beside-stored")), seconds=5, rounds=3, only=True),
    "interface": Experiment(
        "stores to device-DAX memory and to a pinned file, io_uring to the SSD: bandwidth and processor time (hybrid-storage-thesis 3.1)",
        INTERFACE, ("bare-ssd", "forebay-emu", "devdax"), seconds=1.5, budget=900),
    "writelog-scaling": Experiment(
        "direct writes on the device: block size and number of writers", SCALING, BARE_PEERS,
        tuple(Target(workload, "bare-dm-writecache", 1.0 if workload.endswith("j1") else 1.5, "bare-writelog")
              for workload in SCALING)),
    "writelog-fsync": Experiment(
        "thesis figure 5.2: a file a writer, fsync after each write", SCALING_FSYNC,
        ("ext4", "dm-writecache", "writelog", "ext4-dax"),
        tuple(Target(workload, "dm-writecache", 1.0, "writelog") for workload in SCALING_FSYNC
              if not workload.endswith("j1")), seconds=1),
    "writelog-sustained": Experiment(
        "thesis figure 5.4: two minutes of writes into a small cache", ("bare-sustained", "bare-sustained-least"),
        ("bare-ssd", "small-dm-writecache", "small-writelog"),
        (Target("bare-sustained", "small-dm-writecache", 1.0, "small-writelog"),
         Target("bare-sustained-least", "small-writelog", 0.5, "small-writelog", "bare-sustained")),
        rounds=1, least_rounds=1, budget=900),
    "writelog-mix": Experiment(
        "thesis figure 5.5: reads and writes", MIXED, BARE_PEERS,
        tuple(Target(workload, "bare-dm-writecache", 1.0, "bare-writelog") for workload in MIXED), seconds=1),
    "writelog-databases": Experiment(
        "thesis figures 5.6 to 5.8: Redis, RocksDB, MariaDB", DATABASES, ("ext4", "dm-writecache", "writelog", "ext4-dax"),
        tuple(Target(workload, "dm-writecache", 1.0, "writelog") for workload in DATABASES)),
    "writelog-zipf": Experiment(
        "bytes that reach the SSD when few blocks are overwritten often", ("bare-zipf",),
        ("small-dm-writecache", "small-writelog"),
        (Target("bare-zipf", "small-dm-writecache", 1.0, "small-writelog"),)),
    "transit-depth": Experiment(
        "Caiti figures 5a and 5d: direct random writes by how many are in flight, mean and 99.99th percentile", DEPTHS,
        (*OVER_BTT, "ext4-btt-beside", "transit-none", "ext4-pmem", "ext4-dax"),
        tuple(Target(workload, to, 1.0, "transit", figure=figure) for workload in DEPTHS for to in ("ext4-btt", *STAGING)
              for figure in ("mean_us", "p9999_us") if to in STAGING or figure == "mean_us"), seconds=2, budget=900, cpu=COPYING),
    "transit-jobs": Experiment(
        "Caiti figure 5e: the same by the number of jobs", JOBS, (*OVER_BTT, "ext4-pmem", "ext4-dax"),
        tuple(Target(workload, to, 1.0, "transit", figure="mean_us") for workload in JOBS for to in STAGING), seconds=2, cpu=COPYING),
    "transit-cache-size": Experiment(
        "Caiti table 1: the same by the size of the cache, full of other blocks", ("full-cache",),
        tuple(f"{policy}-{mib}m" for policy in ("transit", *STAGING) for mib in CACHE_MIB),
        tuple(Target("full-cache", f"{policy}-{mib}m", 1.0, f"transit-{mib}m", figure="mean_us") for policy in STAGING
              for mib in CACHE_MIB), seconds=20, least_rounds=1, budget=1200, pmem_mib=2560,
        cpu=COPYING, only=True),
    "transit-fsync": Experiment(
        "Caiti figure 2b: what an fsync costs, by what was written before it", FSYNCS, (*OVER_BTT, "ext4-pmem", "ext4-dax"),
        tuple(Target(workload, to, 1.0, "transit") for workload in FSYNCS for to in STAGING), budget=900, cpu=COPYING),
    "transit-breakdown": Experiment(
        "Caiti figure 6: where the time of a write goes, with and without eager eviction (EE) and bypass (BP)",
        ("breakdown",), ("ext4-btt", "ext4-btt-beside", "transit-none", "transit", "transit-no-ee", "transit-no-bp", *STAGING),
        cpu=COPYING, only=True),
    "transit-rocksdb": Experiment(
        "Caiti figures 8 and 9a: a key-value store", ROCKSDB, (*OVER_BTT, "transit-no-ee", "transit-no-bp", "ext4-dax"),
        tuple(Target(workload, to, 1.0, "transit") for workload in ROCKSDB[:2] for to in ("ext4-btt", *STAGING)), budget=900,
        cpu=COPYING),
    "transit-ycsb": Experiment(
        "Caiti figures 9b to 9d: YCSB A and F on a key-value store, by which records are asked for", YCSB,
        (*OVER_BTT, "transit-no-ee", "transit-no-bp", "ext4-dax"), budget=1500, least_rounds=1, cpu=COPYING),
    "pmdk-memory": Experiment(
        "PMDK thesis figure 7: bandwidth of mappings by chunk, and latency, on DRAM, PMem and emulated memory",
        (*(name for names in MEMORY.values() for name in names), "memory-latency", "mbw-memcpy", "mbw-mcblock-4096"),
        ("tmpfs", "ext4-dax", "forebay", "forebay-emu"), seconds=1, budget=1500, least_rounds=1, cpu=COPYING, only=True),
    "pmdk-fio": Experiment(
        "PMDK thesis figure 8: asynchronous I/O on file systems with and without DAX", AIO, (*WITH_AND_WITHOUT_DAX, "forebay-pinned"),
        seconds=2, budget=900, least_rounds=1, cpu=COPYING, only=True),
    "pmdk-files": Experiment(
        "PMDK thesis figure 9: creating, writing and deleting many files", FILES, WITH_AND_WITHOUT_DAX, budget=900, least_rounds=1,
        cpu=COPYING, only=True),
    "pmdk-faults": Experiment(
        "PMDK thesis figure 10: page faults and mmap(), with a trace of the kernel's functions", (*FAULTS, *TRACES),
        WITH_AND_WITHOUT_DAX, seconds=1.5, budget=900, least_rounds=1, cpu=COPYING, only=True),
    "pmdk-kv": Experiment(
        "PMDK thesis figures 11 to 14: own key-value engines, volatile and persistent, by the size of a value",
        (*KV["hash"], *KV["tree"]), ("tmpfs", "ext4", "ext4-dax", "xfs-dax", "forebay"), seconds=3, budget=1500, least_rounds=1,
        cpu=COPYING, only=True),
    "pmdk-flush": Experiment(
        "PMDK thesis figure 15: what a flush costs a line, by size and instruction",
        tuple(name for names in FLUSHES.values() for name in names), ("tmpfs", "ext4", "ext4-dax", "xfs-dax", "forebay"), seconds=0.5,
        budget=900, least_rounds=1, cpu=COPYING, only=True),
}
