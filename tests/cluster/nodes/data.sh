# SPDX-License-Identifier: GPL-2.0-only
# Sourced by the scripts of a node: makes and mounts the file system for data at /srv/data, on one of SYSTEMS.

data=/srv/data ssd=/dev/nvme0n1 SYSTEMS='forebay, forebay-names, ext4, writelog or tmpfs'
PATH=$PATH:/usr/sbin:/sbin:$PWD/build/tools

make_file_systems() {
	case $1 in
	forebay | forebay-names)
		modprobe forebay
		[ "$1" = forebay ] || names='--names auto'
		forebay format ${names-} /dev/pmem0
		mkfs.ext4 -q $ssd
		;;
	ext4) mkfs.ext4 -q $ssd ;;
	writelog)
		forebay writelog format /dev/pmem0
		create_writelog
		mkfs.ext4 -q /dev/mapper/fast
		;;
	esac
}

create_writelog() {
	modprobe dm-forebay-writelog
	[ -e /dev/mapper/fast ] || forebay writelog create --option block_size=4096 fast $ssd /dev/pmem0
}

mount_data() {
	mkdir -p /srv/ssd $data
	case $1 in
	forebay | forebay-names)
		modprobe forebay
		mount $ssd /srv/ssd
		mount -t forebay -o cache=/dev/pmem0 /srv/ssd $data
		;;
	ext4) mount $ssd $data ;;
	writelog)
		create_writelog
		mount /dev/mapper/fast $data
		;;
	tmpfs) mount -t tmpfs data $data ;;
	*)
		echo "no system '$1': $SYSTEMS" >&2
		exit 2
		;;
	esac
}

# Devices as a replaced node has them: nothing of before can be found.
wipe() {
	for device in /dev/pmem0 $ssd; do
		dd if=/dev/zero of=$device bs=1M count=4 conv=fsync status=none
	done
}

# One of the node's own SSDs. With several, nvme0n1 may be any, after a boot another one than before.
own_ssd() {
	for block in /sys/block/nvme*n1; do
		! grep -q "forebay-nvme$1 *$" "$block/device/serial" || echo "/dev/${block##*/}"
	done
}
