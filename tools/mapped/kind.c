// SPDX-License-Identifier: GPL-2.0-only
/*
 * The targets that the command knows, and their options. docs/writelog.md, docs/transit.md, each target's
 * params.c and packaging/completion/forebay name the same options.
 */
#include "base/kind.h"

static const struct target_option writelog_options[] = {
	{ "slots", false, "how many writers copy to the log at a time, 1 to 256; default: the\n"
	  "                      number of processors, 2 to 16" },
	{ "block_size", false, "the smallest write: 512, 1024, 2048 or 4096, which is best under ext4\n"
	  "                      and xfs; default: the origin's logical block size" },
	{ "high_mark", true, "begin to write back when so many percent are in use, 1 to 99; 60" },
	{ "low_mark", true, "go on until it is so many, 0 to 98, less than high_mark; 40" },
	{ "depth", true, "MiB that are on their way to the origin at a time, 1 to 256; 16" },
	{ "error_timeout", true, "seconds that a full log whose origin fails holds writers up before it\n"
	  "                      refuses them, 0 to 86400; 60" },
	{ "on_damage", false, "stop refuses a damaged log (the default), skip uses what is whole of it" },
	{ "allow_volatile", false, "1: the log may be on ordinary memory (`forebay emu create`); 0" },
	{ }
};

const struct mapped_kind writelog_kind = {
	.target = "forebay-wlog",
	.noun = "writelog",
	.what = "write log",
	.options = writelog_options,
	.devices = 2,
	.amounts = 2,
	.final_message = "cleaner",	/* after "flush", the log may hold what was written since */
	.below = "origin",
	.rest = "log; nothing is lost. dmesg says more.",
};

static const struct target_option transit_options[] = {
	{ "cache_size", false, "in bytes, or with a suffix such as M, at most half of the memory; 512M, or\n"
	  "                      a sixteenth of the memory if that is less" },
	{ "block_size", false, "what is cached at a time, and the smallest write: 512, 1024, 2048 or 4096;\n"
	  "                      default: the device's physical block size" },
	{ "workers", true, "threads that write to the device, 1 to 64; default: the number of\n"
	  "                      processors" },
	{ "policy", false, "transit (the default), pmbd, pmbd70, lru, coactive or none" },
	{ "eager_eviction", true, "on (the default): what is written goes to the device at once; off" },
	{ "bypass", true, "on (the default): if the cache is full writers write to the device; off" },
	{ }
};

const struct mapped_kind transit_kind = {
	.target = "forebay-transit",
	.noun = "transit",
	.what = "transit cache",
	.options = transit_options,
	.devices = 1,
	.amounts = 1,
	.final_message = "flush",
	.below = "device",
	.rest = "cache, and tried again; a power cut takes that. dmesg says more.",
};
