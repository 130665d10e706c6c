// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which of the processes that share a log by fork(2) has it.
 */
#include "claim.h"

#include <errno.h>
#include <unistd.h>

#include "real.h"
#include "settings.h"

/*
 * Whether the parent that has claimed the log still has it. A parent that was killed, or called _exit(2),
 * could not leave the entry. The kernel has released its lock then, and the processes that are left write by
 * themselves: at the end of the log, where the parent's position was.
 */
static bool parent_has(struct entry *entry)
{
	off_t end = entry->inherited ? table_recover(entry->fd) : -1;

	if (end < 0)
		return true;
	if (!entry->appends)
		REAL(lseek)(entry->fd, end, SEEK_SET);
	__atomic_store_n(entry->claim, PLAIN, __ATOMIC_SEQ_CST);
	return false;
}

/**
 * entry_claim - take the log for this process, if it may append
 * @entry: not left
 *
 * Processes that share a descriptor by fork(2) agree at the first write. If the process that opened the file
 * writes first, it has the log until it leaves the entry or ends. If a child does, all of them write by
 * themselves.
 * Context: holds the entry's mutex.
 * Return: true if it may; false with errno, which is 0 if it is to write by itself, and the entry is left.
 */
bool entry_claim(struct entry *entry)
{
	bool ours = !entry->inherited;
	unsigned int before = FREE;

	if (entry->claimed)
		return true;
	if (__atomic_compare_exchange_n(entry->claim, &before, ours ? TAKEN : PLAIN, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST) && ours) {
		entry->claimed = true;
		return true;
	}
	if (before == TAKEN && parent_has(entry)) {
		settings_say("a child of fork", "can't write to the log of its parent");
		errno = EIO;
		return false;
	}
	errno = 0;
	entry_leave(entry);
	return false;
}

/**
 * entry_is_parents - whether a parent of this process has the log, and goes on with it
 * @entry: any
 *
 * If the parent has not written yet, or has ended, it doesn't.
 * Context: holds the entry's mutex.
 * Return: true if so: then this process must neither write to the file nor truncate it.
 */
bool entry_is_parents(struct entry *entry)
{
	unsigned int before = FREE;

	return entry->inherited &&
	       !__atomic_compare_exchange_n(entry->claim, &before, PLAIN, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST) &&
	       before == TAKEN && parent_has(entry);
}
