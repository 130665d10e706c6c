// SPDX-License-Identifier: GPL-2.0-only
/* What calls must return, by the model: 0 or an errno. */
#include "chosen.h"

static bool empty(uint32_t folder)
{
	static const uint32_t none[NAMES];

	return !memcmp(model->entry[folder_at(folder)], none, sizeof(none));
}

/* Folders that lie in a top. */
unsigned int nr_folders(uint32_t top)
{
	unsigned int nr = 0;

	for (uint32_t name = 0; name < NAMES; name++)
		nr += kind_of(model->entry[top][name]) == IS_FOLDER;
	return nr;
}

int expected_of_remove(const struct names *names, bool folder)
{
	uint32_t object = names->object[0];

	if (!object)
		return ENOENT;
	if ((kind_of(object) == IS_FOLDER) != folder)
		return folder ? ENOTDIR : EISDIR;
	return folder && !empty(object) ? ENOTEMPTY : 0;
}

int expected_of_link(const struct names *names)
{
	if (!names->object[0])
		return ENOENT;
	if (names->object[1])
		return EEXIST;
	return kind_of(names->object[0]) == IS_FOLDER ? EPERM : 0;
}

/* The folder that a name lies in is the object. */
static bool lies_in(const struct names *names, unsigned int which, uint32_t object)
{
	return names->sub[which] != NAMES && kind_of(object) == IS_FOLDER &&
	       folder_at(object) == names->place[which].folder;
}

/* The order is that in which the kernel looks. */
int expected_of_rename(const struct names *names, unsigned int flags)
{
	uint32_t old = names->object[0], new = names->object[1];

	if (!old)
		return ENOENT;
	if (flags == NOREPLACE && new)
		return EEXIST;
	if (flags == EXCHANGE && !new)
		return ENOENT;
	if (lies_in(names, 1, old))
		return EINVAL;
	if (lies_in(names, 0, new))
		return flags == EXCHANGE ? EINVAL : ENOTEMPTY;
	if (old == new || !new || flags == EXCHANGE)
		return 0;
	if (kind_of(old) != kind_of(new))
		return kind_of(old) == IS_FOLDER ? ENOTDIR : EISDIR;
	return kind_of(new) == IS_FOLDER && !empty(new) ? ENOTEMPTY : 0;
}

/* No folder goes into one that isn't a top. */
bool too_deep(const struct names *names, unsigned int flags)
{
	return (kind_of(names->object[0]) == IS_FOLDER && names->sub[1] != NAMES) ||
	       (flags == EXCHANGE && kind_of(names->object[1]) == IS_FOLDER && names->sub[0] != NAMES);
}
