// SPDX-License-Identifier: GPL-2.0-only
/*
 * What caches of any size would have held of the pages that sync calls made durable.
 *
 * The model's cache gives up the page whose sync is the longest ago. It still has a page if fewer other
 * pages were synced since than the cache has places. So the number of those pages, the page's distance,
 * answers for all sizes at once. Each sync of a page gets a place in one long row, and a page keeps only its
 * last one. The distance is the number of places in use behind the page's own. A Fenwick tree counts them.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

struct page {
	uint64_t file, index;
	size_t place;			/* of its last sync; 0: never synced */
	uint64_t window;		/* of its last sync */
	bool written;			/* since its last sync */
	struct page *next;		/* of the file's written pages */
};

struct file {
	uint64_t number;
	struct page *written;
	bool had_pages;
};

struct model {
	void *pages, *files;		/* trees */
	struct page **owner;		/* by place; NULL: not the page's last one */
	uint32_t *sums;			/* the Fenwick tree over the places in use */
	size_t nr_places, max_places, used;
	uint64_t window, in_window;
	struct model_result result;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_pages(const void *a, const void *b)
{
	const struct page *one = a, *other = b;

	return compare_numbers(one->file, other->file) ?: compare_numbers(one->index, other->index);
}

static int compare_files(const void *a, const void *b)
{
	return compare_numbers(((const struct file *)a)->number, ((const struct file *)b)->number);
}

/* Finds what is equal to @key, or adds a copy of it. NULL: no memory. */
static void *find_or_add(void **tree, const void *key, size_t size,
			 int (*compare)(const void *, const void *))
{
	void **node = tsearch(key, tree, compare);
	void *copy;

	if (!node || *node != key)
		return node ? *node : NULL;
	copy = malloc(size);
	if (!copy) {
		tdelete(key, tree, compare);
		return NULL;
	}
	*node = memcpy(copy, key, size);
	return copy;
}

static void add_to_sums(struct model *model, size_t place, int change)
{
	for (; place <= model->max_places; place += place & -place)
		model->sums[place] += change;
}

static uint64_t sum_up_to(const struct model *model, size_t place)
{
	uint64_t sum = 0;

	for (; place; place -= place & -place)
		sum += model->sums[place];
	return sum;
}

/* The row is full: places that are not in use go, and it becomes longer if most are. */
static bool make_places(struct model *model)
{
	size_t max = model->used >= model->max_places / 2 ? 2 * model->max_places : model->max_places;
	struct page **owner = calloc(max + 1, sizeof(*owner));
	uint32_t *sums = calloc(max + 1, sizeof(*sums));
	size_t nr = 0;

	if (!owner || !sums) {
		free(owner);
		free(sums);
		return false;
	}
	for (size_t place = 1; place <= model->nr_places; place++)
		if (model->owner[place]) {
			owner[++nr] = model->owner[place];
			owner[nr]->place = nr;
		}
	free(model->owner);
	free(model->sums);
	model->owner = owner;
	model->sums = sums;
	model->nr_places = nr;
	model->max_places = max;
	for (size_t place = 1; place <= nr; place++)
		add_to_sums(model, place, 1);
	return true;
}

/* How many bits a number has: a cache of 2^bits pages has a page at that distance. */
static unsigned int bits(uint64_t distance)
{
	return distance ? 64 - __builtin_clzll(distance) : 0;
}

static void leave_place(struct model *model, struct page *page)
{
	uint64_t distance = model->used - sum_up_to(model, page->place);
	unsigned int size = bits(distance);

	if (size < MODEL_SIZES)
		model->result.again[size]++;
	model->owner[page->place] = NULL;
	add_to_sums(model, page->place, -1);
	model->used--;
}

static void note_distinct(struct model *model, double now)
{
	uint64_t nr = ++model->result.distinct;

	if (!(nr & (nr - 1)))
		model->result.full[bits(nr) - 1] = now;
}

static bool sync_page(struct model *model, struct page *page, double now)
{
	if (model->nr_places == model->max_places && !make_places(model))
		return false;
	if (page->place)
		leave_place(model, page);
	else
		note_distinct(model, now);
	page->place = ++model->nr_places;
	model->owner[page->place] = page;
	add_to_sums(model, page->place, 1);
	model->used++;
	if (page->window != model->window) {
		page->window = model->window;
		if (++model->in_window > model->result.busiest)
			model->result.busiest = model->in_window;
	}
	return true;
}

/**
 * model_new - begin
 *
 * Return: the model, for model_free(); NULL: no memory.
 */
struct model *model_new(void)
{
	struct model *model = calloc(1, sizeof(*model));

	if (!model)
		return NULL;
	model->max_places = 1;
	model->window = 1;
	model->owner = calloc(2, sizeof(*model->owner));
	model->sums = calloc(2, sizeof(*model->sums));
	for (unsigned int i = 0; i < MODEL_SIZES; i++)
		model->result.full[i] = -1;
	if (model->owner && model->sums)
		return model;
	model_free(model);
	return NULL;
}

void model_free(struct model *model)
{
	tdestroy(model->pages, free);
	tdestroy(model->files, free);
	free(model->owner);
	free(model->sums);
	free(model);
}

/**
 * model_write - pages were written to
 * @model: model
 * @file: inode number
 * @first: page
 * @last: page
 *
 * Return: false: no memory.
 */
bool model_write(struct model *model, uint64_t file, uint64_t first, uint64_t last)
{
	struct file *its = find_or_add(&model->files, &(struct file){ .number = file }, sizeof(*its),
				       compare_files);

	for (uint64_t index = first; its && index <= last; index++) {
		struct page key = { .file = file, .index = index };
		struct page *page = find_or_add(&model->pages, &key, sizeof(key), compare_pages);

		if (!page)
			return false;
		if (page->written)
			continue;
		page->written = true;
		page->next = its->written;
		its->written = page;
	}
	return its;
}

/**
 * model_sync - a sync call: what was written to a file is made durable
 * @model: model
 * @file: inode number
 * @now: seconds since the start; never less than before
 * @pages: set to how many there were
 *
 * Return: false: no memory.
 */
bool model_sync(struct model *model, uint64_t file, double now, uint64_t *pages)
{
	struct file **found = tfind(&(struct file){ .number = file }, &model->files, compare_files);
	uint64_t window = 1 + (uint64_t)now / MODEL_WINDOW;
	struct page *page;

	if (window != model->window) {
		model->window = window;
		model->in_window = 0;
	}
	*pages = 0;
	model->result.calls++;
	while (found && (page = (*found)->written)) {
		if (!sync_page(model, page, now))
			return false;
		page->written = false;
		(*found)->written = page->next;
		++*pages;
	}
	model->result.pages += *pages;
	model->result.empty_calls += !*pages;
	if (*pages > model->result.largest)
		model->result.largest = *pages;
	if (*pages && !(*found)->had_pages) {
		(*found)->had_pages = true;
		model->result.files++;
	}
	return true;
}

/**
 * model_result - what was found until now
 * @model: model
 * @result: filled in
 */
void model_result(const struct model *model, struct model_result *result)
{
	*result = model->result;
	for (unsigned int i = 1; i < MODEL_SIZES; i++)
		result->again[i] += result->again[i - 1];
}
