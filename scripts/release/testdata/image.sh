#!/usr/bin/env bash
# Runs the root file system of an image as a container does, read-only and as its user, with a volume: image.sh ROOT
# To be run as root, by unshare --mount --net --pid --fork.
set -euo pipefail

root=$1
fail() { echo "FAILED: $*"; exit 1; }
ip link set lo up
mount --bind "$root" "$root"
mount -o remount,bind,ro,nosuid,nodev "$root"
mount -t tmpfs -o uid=65532,gid=65532,mode=0700 tmpfs "$root/var/lib/muster"
inside=(env -i PATH=/usr/bin MUSTER_DATA=/var/lib/muster MUSTER_LISTEN=:8080 "$(command -v chroot)" --userspec=65532:65532 "$root" /usr/bin/muster)

touch "$root/usr/x" 2>/dev/null && fail 'the root is not read-only'
"${inside[@]}" health 2>/dev/null && fail 'healthy before it runs'
"${inside[@]}" serve &
service=$!
until "${inside[@]}" health 2>/dev/null; do
	kill -0 $service || fail 'the service ended'
	sleep 0.1
done
"${inside[@]}" keys create --role admin >/dev/null
[ "$(stat -c %u:%a "$root/var/lib/muster/cell.secret")" = 65532:600 ] || fail "cell.secret: $(stat -c %u:%a "$root/var/lib/muster/cell.secret")"
kill $service
wait $service || fail "the service ended with $?"
echo stopped in order
