# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by the programs in this folder, which stand before the system's own on PATH while the suite runs. They stack
# forebay on every file system that the suite mounts at TEST_DIR or SCRATCH_MNT:
#
#	DEVICE		on /mnt/scratch, type ext4	(what the suite asked for, and what it finds by DEVICE)
#	/mnt/scratch	on /mnt/scratch, type forebay	(over it; what every path leads to)
#
# So the suite believes that it tests the lower file system, makes and checks that one, and asks it what it can do.
#
# FOREBAY_LAYER: this folder; FOREBAY_TEST_CACHE, FOREBAY_SCRATCH_CACHE: cache devices; FOREBAY_STATE: a folder for what is kept

PATH=${PATH#*xfstests/layer:}

# The cache of the mount point $1; fails if nothing is stacked there.
cache_of()
{
	case $1 in
	"$TEST_DIR") echo "$FOREBAY_TEST_CACHE" ;;
	"$SCRATCH_MNT") echo "$FOREBAY_SCRATCH_CACHE" ;;
	*) return 1 ;;
	esac
}

# Sets target, device and type for the mount point or device $1, if forebay lies on it.
find_stack()
{
	local from at kind rest on='' below='' below_type='' top=''

	while read -r from at kind rest; do
		[ "$from" = "$1" ] || [ "$at" = "$1" ] || continue
		cache_of "$at" >/dev/null && on=$at
	done </proc/self/mounts
	[ -n "$on" ] || return 1
	while read -r from at kind rest; do
		[ "$at" = "$on" ] || continue
		[ "$kind" = forebay ] || { below=$from; below_type=$kind; }
		top=$kind
	done </proc/self/mounts
	[ "$top" = forebay ] || return 1
	target=$on device=$below type=$below_type
}

uuid_of()
{
	blkid -p -s UUID -o value "$1"
}

# Copies the cache $1 into the file $2, at one instant: until two copies are the same.
save_cache()
{
	local tries

	for tries in 1 2 3 4 5; do
		dd if="$1" of="$2" bs=1M iflag=direct conv=sparse status=none
		dd if="$1" bs=1M iflag=direct status=none | cmp -s - "$2" && return
	done
	echo "forebay's cache did not stand still: $1" >/dev/kmsg
}
