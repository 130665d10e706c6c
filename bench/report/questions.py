# SPDX-License-Identifier: GPL-2.0-only
"""What each figure and table of the documents asks, its numbers, and which of our results answer.

The documents' numbers are typed here, with the figure they are from. Ours are read from results, never typed.
"""

from dataclasses import dataclass

from ..experiments import (AIO, AOF, BLOCKS, CACHE_MIB, DATABASES, DEPTHS, DIRTY, FAULTS, FENCED, FILES, FLUSHES, FSYNCS, INTERFACE, JOBS, KV,
                           MAPPED, MEMORY, MIXED, NAMES, PROGRAMS, READS_AND_WRITES, ROCKSDB, SCALING, SCALING_FSYNC, STAGING, YCSB,
                           BATCHES)

THESIS, PAPER, DPWC, CAITI, PMDK, OWN = ("Hybrid-storage thesis", "Hybrid-SSD paper", "DPWC", "Caiti", "PMDK evaluation",
                                         "Forebay's own")


@dataclass(frozen=True)
class Compare:
    """Ratios of one system to another, at some workloads; above 1 the first is ahead."""
    of: str
    to: str
    workloads: tuple[str, ...]
    theirs: str = ""            # the document's number for that
    figure: str = "value"
    sizes: tuple[int, ...] = ()     # MiB: both systems have a name for each size
    peers: bool = False         # neither is ours: no loss of ours

    def pairs(self) -> list[tuple[str, str]]:
        return [(f"{self.of}-{mib}m", f"{self.to}-{mib}m") for mib in self.sizes] or [(self.of, self.to)]


@dataclass(frozen=True)
class Reading:
    """One figure of one system, as it is."""
    workload: str
    system: str
    figure: str
    unit: str
    theirs: str = ""


@dataclass(frozen=True)
class Question:
    document: str
    caption: str                # of the document's figure or table; the experiment's name, if the question is ours
    asks: str
    experiment: str = ""        # that answers; none: not measured, and `why` says why not
    compare: tuple[Compare, ...] = ()
    readings: tuple[Reading, ...] = ()
    theirs: str = ""            # the document's numbers, where they are no ratio of two systems
    why: str = ""               # what makes ours differ: of the machine or the design, not of one run


@dataclass(frozen=True)
class Void:
    """Results that measured nothing, and are left out."""
    experiment: str
    workloads: str              # their names begin so
    before: str                 # when the workload was mended
    reason: str


VOID = (Void("writelog-databases", "rocksdb-fillsync", "2026-11-23",
             "db_bench divided the number of keys by 1,000 and did next to no operations"),)

TRANSLATED = "The emulated machine makes software ten to thirty times slower and leaves the host's disk as it is."
AS_FAST = "The PMem here is as fast as DRAM, and device-mapper alone costs more than the BTT takes for a block."
NO_METER = "The host has no power meter, and the guest's processor time includes the emulator's."
REDIS = ("redis-set-c1", "redis-set-c50")
NOT_BUILT = "No experiment yet."

THE_THESIS = (
    Question(THESIS, "Figure 3.2", "How do loads and stores to device memory compare with block I/O, in bandwidth and processor time?",
             "interface",
             (Compare("forebay-emu", "bare-ssd", INTERFACE, "14 GiB/s with one thread, 22.6 at the peak, against 2.5"),
              Compare("forebay-emu", "bare-ssd", INTERFACE, "less at almost all points, more at 128 KiB with six threads and up",
                      "cpu_s_per_gib"),
              Compare("devdax", "bare-ssd", INTERFACE, "14 GiB/s with one thread, 22.6 at the peak, against 2.5", peers=True),
              Compare("forebay-emu", "devdax", INTERFACE, "no file system there")),
             theirs="The SSD makes up to 105 MiB/s with 512 B; the memory's bandwidth drops below 15 GiB/s beyond its peak.",
             why="Emulation has neither a CXL link that saturates nor a meter of energy."),
    Question(THESIS, "Figure 5.1", "What does fdatasync() of a mapping cost, by mapping size and dirty size?", "mapping-sync",
             (Compare("forebay-cpu", "ext4", MAPPED + DIRTY, "37.1 × at 2 MiB of 2 MiB; less than 1 × beyond 2 GiB mapped, as built"),
              Compare("forebay", "ext4", MAPPED + DIRTY, "CPU caches are always durable there")),
             why="Where CPU caches are volatile, each page that was stored to must be flushed."),
    Question(THESIS, "Figure 5.2", "How fast are random writes to a mapping with a sync after each block?", "sync-blocksize",
             (Compare("forebay-cpu", "ext4", BLOCKS, "11 to 30 × at 128 KiB with clear-dirty; 0.6 to 3.3 × as built"),
              Compare("forebay", "ext4", BLOCKS, "CPU caches are always durable there"),
              Compare("forebay", "ext4", FENCED, "a sync is always a call there"),
              Compare("forebay", "ext4-dax", FENCED, "no DAX file system there")),
             why="memcpy(), byte by byte in the emulator, takes most of a block's time on all systems. Where the program flushes, it is not used."),
    Question(THESIS, "Figure 5.3", "How much of the cost of appendfsync=always goes?", "demo",
             (Compare("forebay", "ext4", REDIS, "up to 3.64 × with ten pipelined commands"),
              Compare("forebay", "tmpfs", REDIS, "0.87 × the policy 'never'")),
             why="Redis is unchanged here and has no pipelines. " + TRANSLATED),
    Question(THESIS, "Figure 5.4", "How are a request's response times distributed?", "append-log",
             (Compare("forebay", "ext4", AOF["always"], "the 99th percentile is 77.8 % lower", "p99_us"),
              Compare("forebay", "ext4", AOF["always"], "no number in the text", "p50_us")), why=TRANSLATED),
    Question(THESIS, "Figure 5.5", "How does the gain depend on the pipeline's length?", "append-log",
             (Compare("forebay", "ext4", AOF["always"], "4.1 × without pipelining, 4.5 with clear-dirty; 1.21 × with 1,000 commands"),
              Compare("forebay", "tmpfs", AOF["always"], "no number in the text")),
             why=TRANSLATED),
    Question(THESIS, "Figure 5.6", "What processor time and energy does a request take?", "append-log",
             readings=tuple(Reading(workload, system, "cpu_us", "µs of Redis a SET", "up to 78 % less processor time, 74 % less energy")
                            for workload in ("aof-always-p1", "aof-always-mapped-p1", "aof-always-p1000") for system in ("ext4", "forebay")), why=NO_METER),
    Question(PAPER, "Figure 1", "What do Valkey's writes gain from fast syncs?", "demo",
             (Compare("forebay", "ext4", REDIS[:1], "up to 4.1 ×"),), why="Throughput without pipelines only. " + NO_METER),
)

MULTI = tuple(name for name in SCALING_FSYNC if not name.endswith("j1"))
THE_LOG = (
    Question(DPWC, "Figure 5.2", "How does the bandwidth of synced writes scale with writers?", "writelog-fsync",
             (Compare("writelog", "dm-writecache", MULTI, "1.37 to 2.05 × with several writers"),
              Compare("writelog", "dm-writecache", tuple(name for name in SCALING_FSYNC if name.endswith("j1")),
                      "0.84 to 1.20 × with one writer"),
              Compare("writelog", "ext4", SCALING_FSYNC, "no number in the text")),
             why="dm-writecache commits at each flush, the log with each write, so a flush costs the log nothing."),
    Question(DPWC, "Figure 5.2, the device alone", "The same without a file system and without syncs", "writelog-scaling",
             (Compare("bare-writelog", "bare-dm-writecache", SCALING, "measured there through ext4 with syncs only"),),
             why="Without a flush dm-writecache promises nothing durable, and the log does. The block layer takes most of the time."),
    Question(DPWC, "Figure 5.3", "Where does the time of a synced write go?",
             theirs="30 % of fsync()'s time is in the module; dm-zero reaches 1,300 MB/s where the medium has 1,600.", why=NOT_BUILT),
    Question(DPWC, "Figure 5.4", "What happens when the cache is full for long?", "writelog-sustained",
             (Compare("small-writelog", "small-dm-writecache", ("bare-sustained",), "569 against 517 MB/s, so 1.10 ×"),
              Compare("small-writelog", "small-dm-writecache", ("bare-sustained-least",), "down to 0 for the log"),
              Compare("small-writelog", "bare-ssd", ("bare-sustained",), "569 against 508 MB/s, so 1.12 ×")),
             why="The log writes a generation as one batch, and the SSD runs dry between two batches."),
    Question(DPWC, "Figure 5.5", "What do reads beside the writes cost?", "writelog-mix",
             (Compare("bare-writelog", "bare-dm-writecache", MIXED, "0.63 to 0.88 × at most points, 0.5 × with 16 writers"),),
             why="Reads pass no queue here, and logged blocks are read from the log."),
    Question(DPWC, "Figure 5.6", "What does Redis gain?", "writelog-databases",
             (Compare("writelog", "dm-writecache", REDIS, "1.12 to 1.34 ×"), Compare("writelog", "ext4", REDIS, "no number in the text"))),
    Question(DPWC, "Figure 5.7", "What does RocksDB's fillsync gain?", "writelog-databases",
             (Compare("writelog", "dm-writecache", DATABASES[2:4], "1.43 × with 8 threads, 0.69 to 0.78 × with fewer"),)),
    Question(DPWC, "Figure 5.8", "What does MariaDB gain?", "writelog-databases",
             (Compare("writelog", "dm-writecache", DATABASES[4:], "0.80 to 0.95 × with several threads"),
              Compare("writelog", "ext4", DATABASES[4:], "1.1 to 1.3 × the SSD"))),
    Question(DPWC, "Figure 5.9", "What do other ways of writing back bring?", theirs="None is better everywhere.",
             why="Those variants don't exist here."),
)


def against_all(workloads: tuple[str, ...], theirs: dict[str, str], figure: str = "value",
                sizes: tuple[int, ...] = ()) -> tuple[Compare, ...]:
    """The transit cache against the BTT, if there is a number of the document for it, and against each staging policy."""
    others = (() if sizes else ("ext4-btt",)) + STAGING
    return tuple(Compare("transit", to, workloads, theirs.get(to, "no number in the text"), figure, sizes) for to in others)


THE_TRANSIT = (
    Question(CAITI, "Figure 2a", "What does the BTT cost, before any cache?", "transit-depth",
             (Compare("ext4-pmem", "ext4-btt", DEPTHS[:1], "1.37 ×: the BTT takes 37.4 % more time", peers=True),
              Compare("ext4-dax", "ext4-btt", DEPTHS[:1], "1.17 ×: 16.6 % more time", peers=True),
              Compare("pmbd", "ext4-btt", DEPTHS[:1], "0.94 ×: 6.3 % more time than the BTT", peers=True)),
             why="256 MiB for seconds, not 64 GiB."),
    Question(CAITI, "Figure 2b", "What does an fsync cost, by what was written before?", "transit-fsync", against_all(FSYNCS, {}),
             why="The BTT has nothing to flush. An fsync through the cache waits for what the workers have not written yet."),
    Question(CAITI, "Figure 2c to 2e", "How long does each request take?", theirs="Spikes above 20 µs with PMBD and LRU.",
             why="No workload keeps the time of each request."),
    Question(CAITI, "Figure 3", "The same over a million requests", theirs="No number in the text.",
             why="No workload keeps the time of each request."),
    Question(CAITI, "Figure 5a", "What is the response time by the number of requests in flight?", "transit-depth",
             (*against_all(DEPTHS, {"ext4-btt": "up to 3.6 × (128 in flight)", "pmbd": "3.6 × (128)", "pmbd70": "3.6 × (128)",
                                    "lru": "3.5 × (128)", "coactive": "2.9 × (128)"}, "mean_us"),
              Compare("transit", "ext4-pmem", DEPTHS, "2.20 ×: 120.2 % more time", "mean_us"),
              Compare("transit", "ext4-dax", DEPTHS, "2.16 ×: 115.7 % more time", "mean_us")), why=AS_FAST),
    Question(CAITI, "Figure 5b and 5c", "How long does each request take with transit caching?", theirs="Most below 20 µs.",
             why="No workload keeps the time of each request."),
    Question(CAITI, "Figure 5d", "What is the 99.99th percentile?", "transit-depth",
             against_all(DEPTHS, {"pmbd": "14.0 × (1,024 in flight)"}, "p9999_us"), why=AS_FAST),
    Question(CAITI, "Figure 5e", "How does it scale with jobs?", "transit-jobs", against_all(JOBS, {}, "mean_us"),
             why="Two jobs keep both processors busy, and none is left for the workers."),
    Question(CAITI, "Table 1", "Does the size of the cache matter?", "transit-cache-size",
             against_all(("full-cache",), {"pmbd": "3.7 to 3.9 ×", "pmbd70": "3.7 to 3.9 ×", "lru": "3.7 to 3.8 ×", "coactive": "2.8 to 3.0 ×"},
                         "mean_us", CACHE_MIB),
             theirs="4.29 to 4.44 µs at all sizes.", why=AS_FAST),
    Question(CAITI, "Figure 6a", "Where does the time of a write go?", "transit-breakdown",
             (Compare("transit", "ext4-btt", ("breakdown",), "no number in the text", "mean_us"),
              Compare("transit", "transit-no-ee", ("breakdown",), "ahead", "mean_us"),
              Compare("transit", "transit-no-bp", ("breakdown",), "about level", "mean_us")),
             (Reading("breakdown", "transit", "percent_metadata", "% metadata", "2.9 %"),
              *(Reading("breakdown", policy, "percent_evict_and_write", "% evict and write", theirs) for policy, theirs in
                (("transit", "next to nothing"), ("pmbd", "40.5 %"), ("pmbd70", "25.3 %"), ("lru", "40.0 %"), ("coactive", "32.7 %")))),
             why=AS_FAST),
    Question(CAITI, "Figure 6b to 6d", "Reads; shares and averages of the kinds of writes", theirs="No number in the text.",
             why="No pread workload; the target counts the kinds, and no workload reports them."),
    Question(CAITI, "Figure 7", "When does each step of a write happen?",
             theirs="54.0 % of a write's time passes before it reaches the cache.", why="The tracepoints exist; no timeline is made."),
    Question(CAITI, "Figure 8", "What does a key-value store gain?", "transit-rocksdb",
             (*against_all(ROCKSDB[:1], {"ext4-btt": "1.68 ×: 40.6 % less time (2 KiB)", "pmbd": "1.25 ×", "pmbd70": "1.22 ×", "lru": "1.24 ×",
                                         "coactive": "1.95 ×"}),
              *against_all(ROCKSDB[1:2], {"ext4-btt": "1.62 ×: 38.2 % less time (2 KiB)"}),
              *against_all(ROCKSDB[2:], {"ext4-btt": "about level"}),
              Compare("transit", "transit-no-ee", ROCKSDB[:2], "ahead: less time with eager eviction"),
              Compare("transit", "transit-no-bp", ROCKSDB[:2], "ahead: less time with bypass")),
             why="Eager eviction needs a processor for the workers, and RocksDB's own threads keep both busy."),
    Question(CAITI, "Figure 9a", "How are LevelDB's response times distributed?", theirs="No number in the text.", why=NOT_BUILT),
    Question(CAITI, "Figure 9b to 9d", "What does YCSB gain?", "transit-ycsb",
             (*against_all(YCSB[:1], {"pmbd": "1.66 × (zipfian)", "pmbd70": "1.40 ×", "lru": "1.66 ×", "coactive": "1.52 ×"}),
              *against_all(YCSB[1:], {})),
             why="YCSB runs on RocksDB here. Loading keeps both processors busy; A and F wait for single operations."),
    Question(CAITI, "Figure 10", "What does a virtual machine on the cache gain?",
             theirs="43.9 % less time than the BTT with Fileserver, 22.4 % with Varmail.", why="Filebench isn't packaged."),
)

def with_dax(workloads: tuple[str, ...], ext4: str, xfs: str) -> tuple[Compare, ...]:
    """What DAX brings to two file systems on the same memory, which is the thesis's own comparison."""
    return (Compare("ext4-dax", "ext4-pmem", workloads, ext4, peers=True), Compare("xfs-dax", "xfs-pmem", workloads, xfs, peers=True))


def forebay_against(workloads: tuple[str, ...], *others: str, of: str = "forebay", figure: str = "value") -> tuple[Compare, ...]:
    return tuple(Compare(of, to, workloads, "forebay is not in the thesis", figure) for to in others)


def engines(figure: str, unit: str, theirs: dict[tuple[str, int], str]) -> tuple[Reading, ...]:
    """Both kinds on ext4-dax, which the thesis has, and on forebay, at the sizes that its text names."""
    return tuple(Reading(f"kv-hash-{size}", system, f"{kind}_{figure}", f"{unit}, {kind}", said if system == "ext4-dax" else "")
                 for (kind, size), said in theirs.items() for system in ("ext4-dax", "forebay"))


ALL_MEMORY, ALL_KV, ALL_FLUSHES = (tuple(name for names in of.values() for name in names) for of in (MEMORY, KV, FLUSHES))
STAND_IN = "pmemkv isn't packaged: own engines stand in, of one code on memkind and on libpmemobj."
NO_FLUSH = "The emulator executes a flush as nothing."
THE_PMDK = (
    Question(PMDK, "Figure 7", "What are bandwidth and latency of the memory?", "pmdk-memory",
             (*forebay_against((*ALL_MEMORY, "memory-latency"), "tmpfs", "ext4-dax"),
              *forebay_against((*ALL_MEMORY, "memory-latency"), "tmpfs", of="forebay-emu")),
             (Reading("memory-seqread-16384", "tmpfs", "value", "MiB/s", "18.9 GiB/s at the peak, 18 for each kind of access"),
              Reading("memory-seqread-16384", "ext4-dax", "value", "MiB/s"), Reading("memory-latency", "tmpfs", "load_us", "µs a load", "0.0305"),
              Reading("memory-latency", "ext4-dax", "load_us", "µs a load"),
              Reading("mbw-memcpy", "tmpfs", "value", "MiB/s", "LMBench and STREAM agree with it")),
             why="Without KVM it measures the translator. 64 MiB are mapped, not 1 GiB."),
    Question(PMDK, "Figure 8", "What does DAX bring to asynchronous I/O?", "pmdk-fio",
             (*with_dax(AIO, "1.33 ×: 32.85 % more on average", "1.32 ×: 31.60 % more on average"),
              Compare("ext4-dax", "tmpfs", AIO, "close to 1", peers=True),
              *forebay_against(AIO, "ext4", "ext4-dax", "tmpfs"), *forebay_against(AIO, "ext4", "ext4-dax", "tmpfs", of="forebay-pinned")),
             why="Direct I/O of a file that is not pinned goes to the SSD. Pages in PMem are found by an index of forebay's own."),
    Question(PMDK, "Figure 9", "What do creating, writing and deleting many files cost?", "pmdk-files",
             (*with_dax(FILES[:1], "1.67 ×: 10.00 against 16.66 µs", "1.33 ×: 10.00 against 13.34 µs"),
              *with_dax(FILES[1:2], "2.37 ×: 4.00 against 9.48 µs", "3.12 ×: 3.85 against 12.03 µs"),
              *with_dax(FILES[2:], "level", "level"), *forebay_against(FILES, "ext4", "ext4-dax", "tmpfs")),
             why="Filebench isn't packaged: an own driver makes 1,000 files, not 100,000. A stacked file system passes the VFS twice."),
    Question(PMDK, "Figure 10", "What does a page fault cost?", "pmdk-faults",
             (*with_dax(FAULTS[:1], "1.99 ×: 0.91 against 1.81 µs", "level"), *with_dax(FAULTS[-1:], "level: 1.11 µs", "level: 1.11 µs"),
              *forebay_against(FAULTS, "ext4", "ext4-dax", "xfs-dax")),
             tuple(Reading(workload, system, "value", "calls in the kernel, traced", theirs) for workload, system, theirs in
                   (("trace-read-sync", "ext4-dax", "one call of the DAX handler"), ("trace-read-sync", "xfs-dax", "two calls of the DAX handler"),
                    ("trace-read-sync", "forebay", ""), ("trace-write-sync", "forebay", ""), ("trace-mmap-shared", "forebay", ""))),
             why="A page fault on forebay passes its own handler before that of the lower file system, or looks the page up in PMem."),
    Question(PMDK, "Figure 11", "How fast do key-value engines read?", "pmdk-kv",
             forebay_against(ALL_KV, "ext4-dax", "xfs-dax", figure="persistent_read_mibs"),
             engines("read_mibs", "MiB/s", {("volatile", 65536): "17 GiB/s at the peak of all engines", ("persistent", 65536): "about the same",
                                            ("volatile", 262144): "a sudden drop", ("persistent", 262144): "a sudden drop"}), why=STAND_IN),
    Question(PMDK, "Figure 12", "How fast do key-value engines write?", "pmdk-kv",
             forebay_against(ALL_KV, "ext4-dax", "xfs-dax", figure="persistent_write_mibs"),
             engines("write_mibs", "MiB/s", {("volatile", 4096): "5 GiB/s at the peak of all engines", ("persistent", 4096): "below the volatile ones",
                                             ("volatile", 16384): "a sudden drop"}), why=STAND_IN),
    Question(PMDK, "Figure 13", "How long does a read take?", "pmdk-kv",
             forebay_against(ALL_KV, "ext4-dax", "xfs-dax", figure="persistent_read_us"),
             (*engines("read_us", "µs", {("volatile", 64): "0.38", ("persistent", 64): "0.46"}),
              Reading("kv-hash-64", "ext4-dax", "cost_of_read", "persistent / volatile", "1.21"),
              Reading("kv-hash-64", "forebay", "cost_of_read", "persistent / volatile")), why=STAND_IN),
    Question(PMDK, "Figure 14", "How long does a write take?", "pmdk-kv",
             forebay_against(ALL_KV, "ext4-dax", "xfs-dax", figure="persistent_write_us"),
             (*engines("write_us", "µs", {("volatile", 64): "0.57", ("persistent", 64): "3.52"}),
              *(Reading(f"kv-hash-{size}", system, "cost_of_write", "persistent / volatile", theirs) for size, theirs in
                ((64, "6.18"), (4096, "3 on average of all sizes"), (65536, "3 on average of all sizes")) for system in ("ext4-dax", "forebay"))),
             why=f"{STAND_IN} {NO_FLUSH}"),
    Question(PMDK, "Figure 15", "What does a flush cost, by size?", "pmdk-flush",
             (*forebay_against(FLUSHES["persist"], "ext4", "ext4-dax", "xfs-dax", figure="line_us"),
              *forebay_against(ALL_FLUSHES[len(FLUSHES["persist"]):], "ext4-dax", "xfs-dax", figure="line_us")),
             tuple(Reading(f"flush-{way}-{size}", "forebay", "line_us", "µs a line", theirs) for way in FLUSHES for size, theirs in
                   ((64, "most"), (4096, "cheapest a line from 1 to 4 KiB on"), (65536, "hardly less"))),
             why=f"{NO_FLUSH} On ext4 without DAX libpmem calls msync()."),
    Question(PMDK, "Figure 16", "Does prefetching explain the baseline?", theirs="More prefetches with sequential access up to 16 KiB.",
             why="The emulated processor has no such counters."),
    Question(PMDK, "Figure 17", "Does prefetching explain the engines?", theirs="A drop at values of 16 KiB.",
             why="The emulated processor has no such counters."),
)

OURS = (
    Question(OWN, "sync", "How do the demo's workloads run on more systems?", "sync",
             tuple(Compare("forebay", to, (*REDIS, "fio-fdatasync-j1", "fio-fdatasync-j2"))
                   for to in ("ext4", "xfs", "ext4-pmem-journal", "dm-writecache", "ext4-dax", "tmpfs"))),
    Question(OWN, "demo", "What does a 4 KiB write with fdatasync cost?", "demo",
             tuple(Compare("forebay", to, ("fio-fdatasync-j1", "fio-fdatasync-j2")) for to in ("ext4", "dm-writecache", "tmpfs")),
             why="The emulator is slow at the copy instruction that tmpfs uses."),
    Question(OWN, "append", "How fast does a synced log grow?", "append",
             tuple(Compare("forebay", to, ("append-fdatasync",)) for to in ("ext4", "dm-writecache", "ext4-dax", "tmpfs"))),
    Question(OWN, "randwrite-128k", "Do larger synced writes gain?", "randwrite-128k",
             tuple(Compare("forebay", to, ("randwrite-128k",)) for to in ("ext4", "dm-writecache", "ext4-dax", "tmpfs"))),
    Question(OWN, "scattered", "How many pages may a sync have?", "scattered",
             (Compare("forebay", "ext4", BATCHES), Compare("forebay-small", "ext4", BATCHES))),
    Question(OWN, "no-tax", "What does work without syncs lose?", "no-tax",
             (Compare("forebay", "ext4", (*READS_AND_WRITES, "untar")), Compare("overlayfs", "ext4", ("untar",), peers=True)),
             why="A stacked file system has a second inode and a second pass through the VFS."),
    Question(OWN, "direct-io", "What does direct I/O gain and lose?", "direct-io",
             (Compare("forebay", "ext4", ("direct-read-pmem", "direct-write-pmem", "direct-read-elsewhere", "direct-write-elsewhere")),
              Compare("forebay", "ext4-dax", ("direct-read-pmem", "direct-write-pmem"))),
             why="A request passes the VFS twice; pages in PMem are found by an index of its own."),
    Question(OWN, "locked", "Does a thrashing task slow one with locked pages?", "locked",
             readings=tuple(Reading(name, "forebay-small", "value", "stores/s") for name in ("locked-alone", "locked-beside", "unlocked-beside")),
             why="The loop varies tenfold by itself: the emulator flushes its table of addresses with every page that is unmapped."),
    Question(OWN, "share", "Does a task that goes through the whole cache slow one with a small file?", "share",
             readings=tuple(Reading(name, "forebay-small", "value", "syncs/s")
                            for name in ("synced-alone", "synced-beside-computing", "synced-beside-direct", "synced-beside-synced", "synced-beside-stored")),
             why="The last sixteenth of the cache is for files that have no more than their share. The tasks that compute, or write "
             "past Forebay to the SSD, show what the host's two processors take from each other."),
    Question(OWN, "names", "What do syncs of names gain from the name log?", "names",
             tuple(Compare("forebay-names", to, NAMES) for to in ("ext4", "forebay", "ext4-dax", "dm-writecache", "tmpfs"))),
    Question(OWN, "programs", "And real programs?", "programs",
             tuple(Compare("forebay-names", to, PROGRAMS) for to in ("ext4", "forebay", "ext4-dax", "dm-writecache"))),
    Question(OWN, "writelog-zipf", "How much reaches the SSD when few blocks are written often?", "writelog-zipf",
             (Compare("small-writelog", "small-dm-writecache", ("bare-zipf",)),),
             why="The log keeps old versions for a while, and they take space."),
)

QUESTIONS = THE_THESIS + THE_LOG + THE_TRANSIT + THE_PMDK + OURS
# Captions with nothing to measure.
DRAWINGS = {
    THESIS: ("Table 2.1", "Figure 3.1", "Figure 3.3", "Listing 4.1", "Figure 4.1", "Figure 4.2", "Algorithm 1", "Figure 4.3", "Table 5.1"),
    DPWC: ("Figure 2.1", "Figure 3.1", "Figure 3.2", "Algorithm 1", "Algorithm 2", "Figure 5.1"),
    CAITI: ("Figure 1", "Figure 4", "Algorithm 1"),
    PMDK: ("Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5", "Figure 6", "Table 1",
           *(f"Listing {number}" for number in range(1, 14))),
}
