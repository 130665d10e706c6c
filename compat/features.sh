#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Looks into a kernel's headers for what the headers of compat/ have to know, and writes it down.
#
#   compat/features.sh INCLUDE OUTPUT
#
# INCLUDE is the kernel's include/linux, OUTPUT a header that gets a line `#define COMPAT_HAS_...` for each feature. It is
# written only if it changes, so that a second build has nothing to do. Kbuild runs this.
set -eu
include=$1
output=$2

# has NAME FILE PATTERN: the feature is there if a line of the header matches the extended regular expression.
has() {
	if grep -qsE "$3" "$include/$2"; then echo "#define COMPAT_HAS_$1 1"; fi
}

features() {
	echo '/* Written by compat/features.sh. */'
	# A task's credentials are overridden and reverted without references.
	has CAPABLE_NOAUDIT capability.h 'bool capable_noaudit\(int'
	has PLAIN_CREDS cred.h 'struct cred \*revert_creds\('
	# Names below are changed between start_creating() and its like and end_dirop().
	has START_CREATING namei.h '^struct dentry \*start_creating\('
	has START_RENAMING namei.h '^int start_renaming\('
	has QSTR_LOOKUP namei.h '^struct dentry \*lookup_one\(struct mnt_idmap \*, struct qstr \*'
	has DELEGATED_CREATE fs.h '^int vfs_create\(struct mnt_idmap \*, struct dentry \*'
	if sed -n '/(\*create)/{N;p;}' "$include/fs.h" 2>/dev/null | grep -q bool; then echo '#define COMPAT_HAS_CREATE_EXCL 1'; fi
	has MKDIR_DENTRY fs.h '^struct dentry \*vfs_mkdir\('
	has REVALIDATE_NAME dcache.h 'd_revalidate\)\(struct inode \*'
	has DEFAULT_D_OP dcache.h 'set_default_d_op\('
	# File attributes, inode state, set-ID bits, ctime as it is given.
	has FILE_KATTR fileattr.h '^struct file_kattr '
	has INODE_STATE fs.h 'inode_state_read_once\('
	has REMOVE_PRIVS_FLAGS fs.h 'file_remove_privs_flags\('
	has ACL_XATTR_ALLOC posix_acl_xattr.h 'void \*posix_acl_to_xattr\('
	has CTIME_SET fs.h 'define[[:space:]]+ATTR_CTIME_SET'
	has UPDATE_TIME_TYPE fs.h '^enum fs_update_time'
	# Backing files are told the user's kiocb.
	has BACKING_KIOCB backing-file.h 'end_write\)\(struct kiocb'
	has MMAP_PREPARE fs.h 'compat_set_desc_from_vma\('
	# A page table entry of a DAX page holds a reference on the page.
	has PFN_T pfn_t.h 'pfn_t_to_pfn\('
	# A look-up of what maps a device's pages takes the last answer, as a hint.
	if sed -n '/^struct dev_pagemap \*get_dev_pagemap(/{N;p;}' "$include/memremap.h" 2>/dev/null | grep -q 'pgmap)'; then
		echo '#define COMPAT_HAS_PAGEMAP_HINT 1'
	fi
	has ZEROES_UNMAP blkdev.h 'max_hw_wzeroes_unmap_sectors;'
	has FOLIO_BATCH folio_batch.h '^struct folio_batch'
	has COUNTED_DAX mm.h 'vmf_insert_page_mkwrite\('
	has FOLIO_INDEX mm_types.h '__folio_index;'
	has STATIC_CRC32C crc32.h '__crc32c_le\('
	has TRACE_SUFFIX tracepoint.h 'define[[:space:]]+DECLARE_TRACE_EVENT\('
	if sed -n '/^ITSTATIC ITSTRUCT/{n;p;}' "$include/interval_tree_generic.h" 2>/dev/null | grep -q _subtree_search; then
		echo '#define COMPAT_HAS_GLOBAL_SUBTREE_SEARCH 1'
	fi
}

if [ "$(features)" != "$(cat "$output" 2>/dev/null || true)" ]; then features >"$output"; fi
