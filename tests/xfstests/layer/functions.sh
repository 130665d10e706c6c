# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Appended to the suite's common/rc in the test machine: what can't be told by programs on PATH.

# xfs's online check goes to a file of the mount, and is the lower file system's.
_supports_xfs_scrub()
{
	return 1
}
