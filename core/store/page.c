// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of pages: how each is prepared, committed, changed and freed.
 *
 * Invariants (docs/formats.md argues them):
 *   - what a commit word vouches for is durable before the word is stored;
 *   - a page record whose commit word is not 0 never gets another check word,
 *     so no half-made record can pass for a whole one;
 *   - in a line that the medium has lost no record is made or changed, and the
 *     caller is told: nothing here knows the line's other three records.
 *
 * file.c has the records of files. super.c has the superblock and opens a store. check.c reads all records
 * and compares them. Nothing here sleeps, locks or allocates.
 */
#include "layout.h"

static_assert(sizeof(struct ps_page_onmedia) == 16);
static_assert(PS_LINE_RECORDS * sizeof(struct ps_page_onmedia) == PS_LINE);

/**
 * ps_fence - make all earlier stores durable before all later ones
 * @ps: store
 *
 * Context: Any.
 */
void ps_fence(struct ps *ps)
{
	(void)ps;
	pm_fence();
}

/**
 * ps_page_addr - address of a page's data
 * @ps: store
 * @page: page number, below nr_pages
 *
 * Context: Any.
 * Return: address of PS_PAGE_SIZE bytes, aligned to that.
 */
void *ps_page_addr(const struct ps *ps, u32 page)
{
	return ps->data + ((u64)page << PS_PAGE_SHIFT);
}

/**
 * ps_page_write - write into a page's data
 * @ps: store
 * @page: page number; free, stale, or out-of-sync
 * @offset: bytes from the start of the page
 * @src: source
 * @len: bytes; stays within the page
 *
 * Durable after ps_fence(). Before that any mix of old and new bytes may survive.
 *
 * Context: Any.
 */
void ps_page_write(struct ps *ps, u32 page, u32 offset, const void *src, u32 len)
{
	pm_copy((u8 *)ps_page_addr(ps, page) + offset, src, len);
}

/**
 * ps_page_zero - write zeros into a page's data
 * @ps: store
 * @page: page number; free, stale, or out-of-sync
 * @offset: bytes from the start of the page
 * @len: bytes; stays within the page
 *
 * As ps_page_write().
 *
 * Context: Any.
 */
void ps_page_zero(struct ps *ps, u32 page, u32 offset, u32 len)
{
	pm_zero((u8 *)ps_page_addr(ps, page) + offset, len);
}

/**
 * ps_page_flush - write back a page's bytes that were stored by other means
 * @ps: store
 * @page: page number
 * @offset: bytes from the start of the page
 * @len: bytes; stays within the page
 *
 * Durable after ps_fence().
 *
 * Context: Any.
 */
void ps_page_flush(struct ps *ps, u32 page, u32 offset, u32 len)
{
	ps_flush(ps, (u8 *)ps_page_addr(ps, page) + offset, len);
}

static u64 page_commit_word(u32 file, u64 index, enum ps_page_state state)
{
	return index << PS_PAGE_INDEX_SHIFT | (u64)file << PS_PAGE_FILE_SHIFT | state;
}

static u64 page_check_word(u32 page, u64 commit, u32 generation)
{
	struct {
		__le64 commit;
		__le32 generation;
		__le32 page;
	} covered = {
		.commit = cpu_to_le64(commit & ~PS_PAGE_STATE_MASK),
		.generation = cpu_to_le32(generation),
		.page = cpu_to_le32(page),
	};

	return (u64)~crc32c(~0u, &covered, sizeof(covered)) << 32 | generation;
}

/**
 * ps_page_prepare - record the owner of a page, without effect yet
 * @ps: store
 * @page: page number, durably free or stale
 * @file: file record, not free
 * @index: page of the file, below PS_MAX_INDEX
 *
 * Durable after ps_fence(), which is needed between this and ps_page_commit().
 *
 * A page record whose line is lost can't be healed here: the other three records of the line may be in use,
 * and may be changed at this moment. The processor needs both lines for the stores, so reading them first
 * costs little.
 *
 * Context: Any; the caller excludes others from this record.
 * Return: 0; -EIO: the medium has lost the page's record, so that the page can't be used; -EUCLEAN: it has
 * lost the file's, which ps_file_rewrite() heals. After an error nothing was stored.
 */
int ps_page_prepare(struct ps *ps, u32 page, u32 file, u64 index)
{
	u64 commit = page_commit_word(file, index, PS_PAGE_FREE);
	struct ps_page_onmedia *to = &ps->pages[page], rec;
	u32 generation;

	if (!ps_page_load(ps, page, &rec))
		return -EIO;
	if (!ps_file_generation(ps, file, &generation))
		return -EUCLEAN;
	/*
	 * A stale commit word may name the same file and index; the new check
	 * word would make it valid before the data is durable.
	 */
	if (rec.commit) {
		ps_store(ps, &to->commit, 0);
		ps_fence(ps);
	}
	ps_store(ps, &to->check, page_check_word(page, commit, generation));
	return 0;
}

/**
 * ps_page_commit - make a prepared page valid
 * @ps: store
 * @page: page number, prepared for @file and @index, and fenced with its data
 * @file: as in ps_page_prepare()
 * @index: as in ps_page_prepare()
 * @state: PS_PAGE_OUT_OF_SYNC or PS_PAGE_CLEAN
 *
 * Durable after ps_fence(). ps_page_prepare() has read the record's line a moment ago. A line that is lost
 * since then is like one that is lost after the commit.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_page_commit(struct ps *ps, u32 page, u32 file, u64 index, enum ps_page_state state)
{
	ps_store(ps, &ps->pages[page].commit, page_commit_word(file, index, state));
}

/**
 * ps_page_set_state - mark a page clean, or out-of-sync
 * @ps: store
 * @page: page number, valid
 * @state: PS_PAGE_OUT_OF_SYNC or PS_PAGE_CLEAN
 *
 * Durable after ps_fence(). Before a clean page is written in place, its state out-of-sync must be
 * durable. Before a page is set clean, the lower file's copy must be durable.
 *
 * Context: Any; the caller excludes others from this record.
 * Return: 0; -EIO: the medium has lost the record, and nothing was stored. Then a clean page must not be
 * changed: a crash would lose the change. A page that becomes clean is lost with its record, and harms none.
 */
int ps_page_set_state(struct ps *ps, u32 page, enum ps_page_state state)
{
	struct ps_page_onmedia rec;

	if (!ps_page_load(ps, page, &rec))
		return -EIO;
	ps_store(ps, &ps->pages[page].commit, (le64_to_cpu(rec.commit) & ~PS_PAGE_STATE_MASK) | state);
	return 0;
}

/**
 * ps_page_free - free a page record
 * @ps: store
 * @page: page number
 *
 * Durable after ps_fence(); before that the page's bytes must not change. If the medium has lost the
 * record's line the store changes nothing: such a record counts as damaged, and is never valid again.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_page_free(struct ps *ps, u32 page)
{
	ps_store(ps, &ps->pages[page].commit, 0);
}

/**
 * ps_page_read - read and verify a page record
 * @ps: store
 * @page: page number, below nr_pages
 * @info: filled in if 0 is returned; of a free page only the state
 *
 * Context: Any.
 * Return: 0; -ESTALE: its file record has been freed since, so the page is free; -EUCLEAN: this record
 * or its file's record is damaged.
 */
int ps_page_read(const struct ps *ps, u32 page, struct ps_page_info *info)
{
	struct ps_page_onmedia rec;
	struct ps_file_info file;
	u64 commit, check;

	memset(info, 0, sizeof(*info));
	if (!ps_page_load(ps, page, &rec))
		return -EUCLEAN;
	commit = le64_to_cpu(rec.commit);
	check = le64_to_cpu(rec.check);
	if (!commit)
		return 0;
	info->state = commit & PS_PAGE_STATE_MASK;
	info->file = ps_page_word_file(commit);
	info->index = commit >> PS_PAGE_INDEX_SHIFT;
	if (info->state == PS_PAGE_FREE || info->state > PS_PAGE_CLEAN)
		return -EUCLEAN;
	if (info->file >= ps->nr_files || check != page_check_word(page, commit, (u32)check))
		return -EUCLEAN;
	if (ps_file_read(ps, info->file, &file))
		return -EUCLEAN;
	if (file.state == PS_FILE_FREE || file.generation != (u32)check)
		return -ESTALE;
	return 0;
}

/**
 * ps_pages_commit - make prepared pages valid, durably
 * @ps: store
 * @moves: the pages; data written and flushed, records prepared, nothing fenced yet
 * @n: number of pages
 * @state: PS_PAGE_OUT_OF_SYNC or PS_PAGE_CLEAN
 *
 * After a power cut during this function, each page is valid and complete, or free.
 *
 * Context: Any; the caller excludes others from these records.
 */
void ps_pages_commit(struct ps *ps, const struct ps_move *moves, u32 n, enum ps_page_state state)
{
	const struct ps_move *move;

	if (!BREAK_DATA_FENCE)
		ps_fence(ps);
	for (move = moves; move < moves + n; move++)
		ps_page_commit(ps, move->page, move->file, move->index, state);
	ps_fence(ps);
}

/**
 * ps_pages_free - free page records, durably; the pages can be reused
 * @ps: store
 * @pages: their numbers
 * @n: number of pages
 *
 * Context: Any; the caller excludes others from these records.
 */
void ps_pages_free(struct ps *ps, const u32 *pages, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		ps_page_free(ps, pages[i]);
	if (!BREAK_FREE_FENCE)
		ps_fence(ps);
}
