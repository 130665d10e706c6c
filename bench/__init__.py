# SPDX-License-Identifier: GPL-2.0-only
"""Comparing Forebay with its peers: systems x workloads in one boot of the test machine, ratios as the result.

`bench/run` and `bench/demo` are the commands. What is compared: experiments, which names systems and workloads/.

On the host, before and around a boot: boot starts it; devices and wipe prepare the images; helpers, engine, packages, debs,
sources and ycsb_client make what the guest runs or unpacks; quiet and versions say under which conditions. host is an
experiment without a guest, everything is all of them.

In the guest: guest carries out the plan, with systems, workloads/ and cost; commands runs programs, resp talks to Redis. The
demo's power cut is redis_cut on the host, redis_cut_guest and redis_cut_values in the guest.

From samples to pages: results and stats; table and words on the terminal; picture with chart, axes and curves; report/.
progress prints messages.
"""
