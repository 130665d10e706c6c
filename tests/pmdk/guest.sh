# SPDX-License-Identifier: GPL-2.0-only
# In the guest: guest.sh LOAD ACK_PERSIST ACK_POOL [last]. Mounts, looks for what was acknowledged, goes on until the power goes.
set -e
lower=/mnt/lower top=/mnt/forebay
modprobe virtio_blk
modprobe ext4
modprobe forebay
mkdir -p $lower $top
until [ -b /dev/vda ]; do sleep 0.02; done
if [ "$2" = 0 ]; then
	mkfs.ext4 -q -F -b 4096 /dev/vda
	forebay format --force /dev/pmem0 >/dev/null
fi
mount /dev/vda $lower
mount -t forebay -o cache=/dev/pmem0 $lower $top
if [ "$2" = 0 ]; then
	sync
else
	pmempool check $top/pool || { echo "failed: pmempool check"; exit 1; }
fi
if [ -n "$4" ]; then
	for one in "persist $2" "pool $3"; do
		set -- "$1" $one
		timeout 300 "$1" "$2" $top/"$2" "$3" | grep -m1 found || { echo "failed: last check of $2"; exit 1; }
	done
	umount $top
	umount $lower
	e2fsck -fn /dev/vda >/dev/null || { echo "failed: e2fsck"; exit 1; }
	exit 0
fi
"$1" persist $top/persist "$2" | sed -u 's/^/persist /' &
"$1" pool $top/pool "$3" | sed -u 's/^/pool /' &
wait
echo "failed: both have ended"
