# SPDX-License-Identifier: GPL-2.0-only
"""Comparing Forebay with its peers: systems x workloads in one boot of the test machine, ratios as the result."""
