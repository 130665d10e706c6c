# SPDX-License-Identifier: GPL-2.0-only
"""Keys and values that clients store before a power cut. The check derives both from a number alone."""

CLIENTS = 4             # whose SETs are on their way at a time


def key(number: int) -> bytes:
    return b"key:%d" % number


def value(number: int) -> bytes:
    """Values differ in length, so that the log's pages are rewritten at every offset."""
    return b"%d:" % number + b"%016x" % (number * 0x9E3779B97F4A7C15 % (1 << 64)) * (1 + number % 13)
