// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay emu cut: copies what a power cut would leave of emulated devices into other ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/message.h"
#include "base/size.h"
#include "base/verb.h"
#include "emu.h"

enum { OPT_SEED = 1 };

static const struct option options[] = {
	{ "seed", required_argument, NULL, OPT_SEED },
	OPTION_HELP,
	{ }
};

/* "FROM:TO" */
static enum exit_status parse_pair(const struct verb *verb, char *text, struct forebay_emu_cut *cut)
{
	char *colon = strchr(text, ':');

	if (!colon || cut->nr == FOREBAY_EMU_CUTS)
		return usage_problem(verb, colon ? "%s: at most %d pairs of devices can be cut at a time" :
				     "%s: expected FROM:TO, two devices", text, FOREBAY_EMU_CUTS);
	*colon = '\0';
	if (!emu_index(text, &cut->pairs[cut->nr].from) || !emu_index(colon + 1, &cut->pairs[cut->nr].to))
		return FAILED;
	cut->nr++;
	return DONE;
}

static enum exit_status say_failed(int err)
{
	switch (err) {
	case ENODEV:
		problem("one of the devices doesn't exist");
		advice("`forebay emu list` shows what there is.");
		break;
	case EINVAL:
		problem("the two devices of a pair must be tracked, and of one size");
		advice("Make them with `forebay emu create --track --size SIZE`.");
		break;
	case EBUSY:
		problem("a device that would be overwritten is in use");
		break;
	default:
		if (err > 0)
			problem("cannot cut the power: %s", strerror(err));
	}
	return FAILED;
}

static enum exit_status cut_verb(const struct verb *verb, int argc, char **argv)
{
	struct forebay_emu_cut cut = { .size = sizeof(cut) };
	enum exit_status status = DONE;
	int err;

	if (getrandom(&cut.seed, sizeof(cut.seed), 0) != sizeof(cut.seed))
		cut.seed = 0;
	while (next_option(verb, argc, argv) != -1)
		if (!size_parse(optarg, &cut.seed))
			return usage_problem(verb, "--seed %s: not a number", optarg);
	if (optind == argc)
		return usage_problem(verb, "expected one or more pairs of devices");
	for (int i = optind; i < argc && !status; i++)
		status = parse_pair(verb, argv[i], &cut);
	if (status)
		return status;
	err = emu_control(FOREBAY_EMU_CUT, &cut);
	if (err)
		return say_failed(err);
	printf("seed %llu\n", (unsigned long long)cut.seed);
	return DONE;
}

const struct verb verb_emu_cut = {
	.name = "emu cut",
	.arguments = "[--seed N] FROM:TO...",
	.summary = "put what a power cut would leave into other devices",
	.help = "At one moment for all of them, puts into each device TO what a power cut would leave\n"
		"of FROM: all that was made durable, and a random part of the rest. Programs may go on\n"
		"using FROM; TO can be mounted beside it. The devices need `emu create --track`.\n"
		"\n"
		"  --seed N            repeat the random choice of an earlier run, which printed N\n",
	.options = options,
	.destroys = true,
	.run = cut_verb,
};
