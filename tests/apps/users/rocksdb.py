# SPDX-License-Identifier: GPL-2.0-only
"""RocksDB's db_bench: fillsync and readrandom, buffered, with direct I/O and with mappings. All written
data are found."""

import re

from place import call, expect

SMALL_FILES = ["--write_buffer_size=65536", "--target_file_size_base=65536", "--max_bytes_for_level_base=262144",
               "--level0_file_num_compaction_trigger=2", "--value_size=400", "--key_size=16", "--seed=1"]
WAYS = {"buffered": [], "direct": ["--use_direct_io_for_flush_and_compaction", "--use_direct_reads"],
        "mapped": ["--mmap_read", "--mmap_write"]}


def run(place):
    keys = place.size(1500, 200)
    for way, options in WAYS.items():
        folder = place.folder / way
        bench(folder, keys, ["fillsync"], options)
        bench(folder, keys, ["fillseq", "overwrite", "compact", "verifychecksum"], [*options, "--sync"])
        said = bench(folder, keys, ["readrandom", "readseq", "verifychecksum"], [*options, "--use_existing_db"])
        found = re.search(r"\((\d+) of (\d+) found\)", said)
        expect(found and found[1] == found[2] == str(keys), f"{way}: of {keys} keys read: {found and found[0]}\n{said[-3000:]}")
    place.note(f"{keys} keys, {' '.join(WAYS)}")


def bench(folder, keys, benchmarks, options):
    said = call("db_bench", f"--db={folder}", f"--num={keys}", f"--benchmarks={','.join(benchmarks)}", "--threads=1", *SMALL_FILES, *options)
    for name in benchmarks:
        expect(re.search(rf"^{name} ", said, re.MULTILINE) or name in ("compact", "verifychecksum"), f"{name} is missing in\n{said}")
    for sign in ("Corruption", "IO error", "error:"):
        expect(sign not in said, f"db_bench says\n{said[-3000:]}")
    return said
