# SPDX-License-Identifier: GPL-2.0-only
"""The options of a machine, which vm/run and vm/cluster share."""

import argparse
from pathlib import Path

from .settings import Settings, parse_size


def size(text):
    try:
        return parse_size(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def add_options(parser, default):
    """`default` is a Settings: what a machine has if an option is not given."""
    add = parser.add_argument
    add("--pmem", type=size, default=default.pmem, metavar="SIZE", help="persistent memory, /dev/pmem0 (1G)")
    add("--no-pmem", dest="pmem", action="store_const", const=0, help="a machine without it")
    add("--raw-pmem", action="store_true", help="leave the namespace in raw mode, without struct pages")
    add("--persistence", choices=("mem-ctrl", "cpu"), default=default.persistence,
        help="what survives a power cut: what reached the memory controller (default), or CPU caches too")
    add("--cxl", action="store_true", help="the persistent memory is on a CXL device; a multiple of 256M, and slow")
    add("--virtio-pmem", type=size, default=0, metavar="SIZE",
        help="also a PMem device that is not synchronous; modprobe virtio_pmem shows it (none)")
    add("--nvme", type=size, default=default.nvme, metavar="SIZE", help="size of an NVMe device (8G, sparse)")
    add("--nvme-count", type=int, default=default.nvme_count, metavar="N", help="NVMe devices: nvme0n1, nvme1n1 ... (1)")
    add("--mem", type=size, default=default.mem, metavar="SIZE", help=f"ordinary memory ({default.mem >> 20}M)")
    add("--smp", type=int, default=default.smp, metavar="N", help=f"processors ({default.smp})")
    add("--kernel", default=default.kernel, metavar="stock|debug|7.3|PATH",
        help="newest 6.12 of /boot, `make debug-kernel`'s, one of scripts/setup --for kernels, or a bzImage")
    add("--append", default="", metavar="ARGUMENTS", help="more kernel arguments")
    add("--qemu", action="append", default=[], metavar="ARGUMENT", help="another argument for QEMU")
    add("--timeout", type=float, metavar="SECONDS", help="end the machine then, with status 124")
    add("--silence", type=float, metavar="SECONDS", help="the same, when the command has written nothing for so long")
    add("--keep", type=Path, metavar="DIR", help="device images live in DIR and survive, however the machine ends")
    add("--env", action="append", default=[], metavar="NAME=VALUE", help="for the command's environment")
    add("--expect-report", action="store_true", help="a kernel report is no failure")
    add("--verbose", action="store_true", help="say how long the boot took")
    add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def parse(parser, argv):
    """The options, with the command in `command`."""
    options = parser.parse_args(argv)
    if options.command[:1] == ["--"]:
        options.command = options.command[1:]
    if not options.command:
        parser.error(f"no command: {parser.prog} [options] -- COMMAND")
    return options


def settings(options):
    return Settings(
        pmem=options.pmem, nvme=options.nvme, nvme_count=options.nvme_count, mem=options.mem, smp=options.smp,
        persistence=options.persistence, kernel=options.kernel, raw_pmem=options.raw_pmem, timeout=options.timeout,
        silence=options.silence, keep=options.keep and options.keep.absolute(), append=options.append, qemu=options.qemu,
        expect_report=options.expect_report, virtio_pmem=options.virtio_pmem, cxl=options.cxl,
        environment=dict(entry.split("=", 1) for entry in options.env))
