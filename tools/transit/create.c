// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay transit create: puts a transit cache over a block device, as a mapped device.
 *
 * transit/ has the verbs of transit caches that write logs do differently. It uses base/ and mapped/.
 */
#include <stdio.h>
#include <sys/sysmacros.h>

#include "base/message.h"
#include "mapped/options.h"

enum { OPT_OPTION = 1 };

static const struct option options[] = {
	{ "option", required_argument, NULL, OPT_OPTION },
	OPTION_HELP,
	{ }
};

#define LENGTH_UNIT	8U		/* sectors */

static enum exit_status create(const struct verb *verb, int argc, char **argv)
{
	const char *name, *device;
	char parameters[MAPPED_TEXT];
	struct pairs pairs = { };
	unsigned int left_out;
	uint64_t sectors;
	dev_t rdev;

	while (next_option(verb, argc, argv) != -1)
		if (!pairs_take(verb, &pairs, optarg))
			return USAGE;
	if (argc - optind != 2)
		return usage_problem(verb, "expected a name and a device");
	name = mapped_name(argv[optind]);
	device = argv[optind + 1];
	if (!mapped_may_create(name) || !mapped_below(device, "below a cache", &sectors, &rdev))
		return FAILED;
	/*
	 * The device number, since the path may lead to another device by now than the one checked above.
	 */
	snprintf(parameters, sizeof(parameters), "%u:%u %u%s", major(rdev), minor(rdev), pairs.words,
		 pairs.text);
	/* The length must be whole blocks of the largest block size. */
	if (!mapped_create(name, sectors & ~(LENGTH_UNIT - 1ULL), &transit_kind, parameters))
		return FAILED;
	printf("/dev/mapper/%s: %s below a transit cache\n", name, device);
	left_out = sectors % LENGTH_UNIT;
	if (left_out)
		printf("    Its last %u sector%s left out: the length is a multiple of 4096 bytes.\n",
		       left_out, left_out == 1 ? " is" : "s are");
	return DONE;
}

const struct verb verb_transit_create = {
	.name = "transit create",
	.arguments = "[--option KEY=VALUE]... NAME DEVICE",
	.summary = "put a transit cache over a block device",
	.help = "Makes /dev/mapper/NAME: the block device DEVICE below a cache in DRAM, through which\n"
		"writes pass. Like a disk's own cache it loses on a power cut what was not flushed.\n"
		"\n"
		"  --option KEY=VALUE  an option of the target; may be repeated\n",
	.options = options,
	.kind = &transit_kind,
	.keys = KEYS_ALL,
	.run = create,
};
