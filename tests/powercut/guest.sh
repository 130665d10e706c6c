# SPDX-License-Identifier: GPL-2.0-only
# In the guest, from boot to cut: recover, tell what is there, make it new if asked to, let the writers write.
#
# Settings come from the environment (boot.py). What we are doing is said on standard output, a word a line:
# mounting, mounted, dumped, drained, running (said by the writer).

set -e
lower=/mnt/lower
top=$lower
cache=/dev/pmem0
device=/dev/vda
[ "$SYSTEM" = forebay ] && top=/mnt/forebay
case $SYSTEM in writelog | transit) device=/dev/mapper/log ;; esac

fail() { echo "failed: $*"; exit 1; }

# The one that is built, or a broken one (broken.py) that modprobe doesn't know.
load_forebay() {
	if [ -z "$MODULE" ]; then
		modprobe forebay
		return
	fi
	for needed in $(modinfo -F depends "$MODULE" | tr , ' '); do modprobe "$needed"; done
	insmod "$MODULE"
}

ready() {
	modprobe virtio_blk
	modprobe "$LOWER_TYPE"
	mkdir -p /mnt/lower /mnt/forebay
	until [ -b /dev/vda ]; do sleep 0.02; done
	case $SYSTEM in
	forebay) load_forebay ;;
	writelog | transit) modprobe "dm-forebay-$SYSTEM" ;;
	esac
	if [ "$CACHE_BYTES" != 0 ]; then
		# A namespace can't be that small. The partition isn't on the device: each boot adds it.
		addpart /dev/pmem0 1 0 $((CACHE_BYTES / 512))
		cache=/dev/pmem0p1
		until [ -b $cache ]; do sleep 0.02; done
	fi
}

make() {
	[ ! -b /dev/mapper/log ] || dmsetup remove log
	[ "$SYSTEM" != writelog ] || forebay writelog format --force $cache >/dev/null || fail "forebay writelog format"
	map
	case $LOWER_TYPE in
	ext4) mkfs.ext4 -q -F -b 4096 $device ;;
	*) "mkfs.$LOWER_TYPE" -q -f $device ;;
	esac
	# shellcheck disable=SC2086 # none, or two words
	[ "$SYSTEM" != forebay ] || forebay format --force $FORMAT_OPTIONS $cache >/dev/null || fail "forebay format"
}

# Maps the write log or the transit cache. Small marks make a small log write back again and again.
map() {
	case $SYSTEM in
	writelog) target="forebay-wlog /dev/vda $cache 4 high_mark 30 low_mark 10" ;;
	transit) target="forebay-transit /dev/vda 6 cache_size 2M block_size 4096 $TRANSIT_OPTION" ;;
	*) return 0 ;;
	esac
	[ -b $device ] || dmsetup create log --table "0 $(blockdev --getsz /dev/vda) $target" || fail "dmsetup create"
}

attach() {
	map
	mount -t "$LOWER_TYPE" -o "$LOWER_OPTIONS" $device $lower || fail "mount $LOWER_TYPE"
	[ "$SYSTEM" != forebay ] || mount -t forebay -o "cache=$cache,writeback_age=$WRITEBACK_AGE" $lower $top || fail "mount forebay"
}

# A campaign about names whose log is not in use would show nothing.
tell_replayed() {
	[ -n "$FORMAT_OPTIONS" ] || return 0
	case $(cat /sys/fs/forebay/*/names_state) in
	on | off) echo "replayed $(cat /sys/fs/forebay/*/names_replayed)" ;;
	*) fail "the name log is not in use: $(cat /sys/fs/forebay/*/names_state)" ;;
	esac
}

dump() {
	ls -A "$1" | grep -q "^\.forebay-replay" && fail "replay left its folder in $1"
	"$BIN/$DUMP" "$@" "$WRITERS" $DUMP_HOW || fail "dump"
}

check() {
	case $LOWER_TYPE in
	ext4) e2fsck -fn "$1" >/tmp/fsck 2>&1 || { cat /tmp/fsck; fail "e2fsck $1"; } ;;
	xfs) xfs_repair -n "$1" >/tmp/fsck 2>&1 || { cat /tmp/fsck; fail "xfs_repair $1"; } ;;
	btrfs) btrfs check "$1" >/tmp/fsck 2>&1 || { cat /tmp/fsck; fail "btrfs check $1"; } ;;
	esac
}

# Everything must be in the lower file system after unmount, and both must be in order; for the write log, on the SSD.
drain() {
	if [ "$SYSTEM" = forebay ]; then
		umount $top || fail "umount forebay"
		dump $lower "$CHECK/drained"
	fi
	umount $lower || fail "umount $LOWER_TYPE"
	check $device
	if [ "$SYSTEM" = forebay ]; then
		forebay check $cache >/tmp/check 2>&1 || { cat /tmp/check; fail "forebay check"; }
	fi
	if [ "$device" = /dev/mapper/log ]; then
		dmsetup message log 0 flush || fail "flush"
		dmsetup remove log || fail "dmsetup remove"
		if [ "$SYSTEM" = writelog ]; then
			forebay writelog check $cache >/tmp/check 2>&1 || { cat /tmp/check; fail "forebay writelog check"; }
		fi
		mount -t "$LOWER_TYPE" -o "$LOWER_OPTIONS" /dev/vda $lower || fail "mount $LOWER_TYPE without the log"
		dump $lower "$CHECK/drained"
		umount $lower
		check /dev/vda
	fi
	echo drained
}

disturb() {
	echo "$WRITEBACK_CENTISECONDS" >/proc/sys/vm/dirty_writeback_centisecs
	echo $((2 * WRITEBACK_CENTISECONDS)) >/proc/sys/vm/dirty_expire_centisecs
	if [ "$DROP_CACHES" = 1 ]; then
		while sleep 0.3; do echo 3 >/proc/sys/vm/drop_caches; done &
	fi
	case $SYSTEM in
	forebay) while sleep 0.2; do echo "free $(cat /sys/fs/forebay/*/pages_free)"; done & ;;
	writelog) while sleep 0.2; do echo "free $(dmsetup status log | awk '{ split($6, n, "/"); print n[2] - n[1] }')"; done & ;;
	esac
}

ready
if [ -n "$CHECK" ]; then
	echo mounting
	attach
	echo mounted
	tell_replayed
	dump $top "$CHECK/found"
	echo dumped
	[ "$FRESH" = 0 ] && [ -n "$RUN" ] || drain
fi
[ -n "$RUN" ] || exit 0
if [ "$FRESH" = 1 ]; then
	make
	attach
	for writer in $(seq 0 $((WRITERS - 1))); do mkdir -m 777 "$top/d$writer"; done
	sync
fi
disturb
[ "$CACHE_BYTES" = 0 ] || "$BIN/filler" $top/filler $((CACHE_BYTES * 5 / 4))
"$BIN/$WRITER" $top "$RUN" "$NOISE" "$WRITERS"
