// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay check --repair: sets aside the damaged records that check has found, so that the rest can be
 * mounted.
 *
 * Such a record can't be attributed to a file or page, or contradicts another record. No other record is
 * changed. check.c lists the records, and the user confirms, before anything is written. core/store/repair.c
 * writes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../core/pm/host.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/shell.h"
#include "device/fitness.h"
#include "repair.h"

/**
 * damage_begin - allocate lists for all records of a store
 * @damage: filled in; the caller calls damage_end()
 * @ps: the store
 *
 * Return: false, after a message, without memory.
 */
bool damage_begin(struct damage *damage, const struct ps *ps)
{
	*damage = (struct damage){
		.files = calloc(ps->nr_files, sizeof(*damage->files)),
		.pages = calloc(ps->nr_pages, sizeof(*damage->pages)),
	};
	if (damage->files && damage->pages)
		return true;
	problem("not enough memory to repair %u pages", ps->nr_pages);
	damage_end(damage);
	return false;
}

/**
 * damage_note - remember a finding
 * @damage: from damage_begin(); no record is found twice
 * @what: the kind of record, or "page": one that is lost
 * @number: its number
 */
void damage_note(struct damage *damage, const char *what, u64 number)
{
	if (!strcmp(what, "file record"))
		damage->files[damage->nr_files++] = number;
	else if (!strcmp(what, "page record"))
		damage->pages[damage->nr_pages++] = number;
	else if (!strcmp(what, "page"))
		damage->lost++;
	else
		damage->supers++;
}

/**
 * damage_end - free the lists
 * @damage: from damage_begin()
 */
void damage_end(struct damage *damage)
{
	free(damage->files);
	free(damage->pages);
}

static bool user_agrees(const struct damage *damage, const struct device *dev, bool yes)
{
	char answer[16];

	print_of(dev->path,
		 "%u file record%s with all their pages, and %u page record%s, will be set aside.\n"
		 "  What they hold never reaches the lower file system. Everything else stays.\n",
		 damage->nr_files, PLURAL(damage->nr_files), damage->nr_pages, PLURAL(damage->nr_pages));
	if (yes)
		return true;
	if (!isatty(STDIN_FILENO)) {
		problem("%s: nothing was changed: this must be confirmed", dev->path);
		advice("Copy the device first (dd). Then: forebay check --repair --yes %s",
		       in_shell(dev->path));
		return false;
	}
	printf("Copy the device first (dd). Set them aside now? [y/N] ");
	fflush(stdout);
	if (fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y'))
		return true;
	print_of(dev->path, "nothing was changed\n");
	return false;
}

static void found_again(void *arg, const char *what, u64 number, const char *why)
{
	(void)arg;
	progress_pause();
	printf("  %s %llu %s\n", what, (unsigned long long)number, why);
	progress_go_on();
}

/* Makes records in bad blocks accessible; they stay damaged until they are freed. */
static bool heal(const struct damage *damage, const struct ps *ps)
{
	for (u32 i = 0; i < damage->nr_files; i++)
		if (!pm_host_heal(&ps->files[damage->files[i]], sizeof(*ps->files)))
			return false;
	for (u32 i = 0; i < damage->nr_pages; i++)
		if (!pm_host_heal(&ps->pages[damage->pages[i]], sizeof(*ps->pages)))
			return false;
	return true;
}

/* Writes to the device. Returns how many findings ps_check() still has, or -1 if writing failed. */
static long long set_aside(struct damage *damage, const struct device *dev)
{
	long long left;
	u32 *scratch;
	struct ps ps;

	if (ps_open(&ps, dev->base, dev->size, 0) || !heal(damage, &ps))
		return -1;
	for (u32 i = 0; i < damage->nr_files; i++)
		ps_file_purge(&ps, damage->files[i]);
	ps_pages_free(&ps, damage->pages, damage->nr_pages);
	if (pm_host_error())
		return -1;
	scratch = malloc(sizeof(*scratch) * max_t(u64, ps.nr_pages, ps.nr_files));
	if (!scratch)
		return -1;
	left = ps_check(&ps, scratch, found_again, NULL);
	free(scratch);
	return left;
}

/**
 * damage_repair - set the records aside, if the user agrees
 * @damage: what check has found; not empty
 * @dev: the device, writable
 * @yes: don't ask
 *
 * Return: how the command ends.
 */
enum exit_status damage_repair(struct damage *damage, const struct device *dev, bool yes)
{
	struct progress progress;
	long long left;

	if (!user_agrees(damage, dev, yes))
		return LEFT;
	fflush(stdout);
	progress_begin(&progress, dev->path, "being repaired");
	left = set_aside(damage, dev);
	progress_end(&progress);
	if (left < 0) {
		if (pm_host_error())
			device_write_failed(dev);
		else
			problem("%s: not enough memory for another check", dev->path);
		return FAILED;
	}
	if (left) {
		problem("%s: the damage could not be repaired", dev->path);
		return LEFT;
	}
	print_of(dev->path, "%srepaired%s: set aside %u file record%s and %u page record%s%s\n",
		 style(stdout, GREEN), plain(stdout), damage->nr_files, PLURAL(damage->nr_files),
		 damage->nr_pages, PLURAL(damage->nr_pages),
		 damage->supers ? ", rewrote a superblock" : "");
	return REPAIRED;
}
