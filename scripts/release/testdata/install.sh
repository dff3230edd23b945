#!/usr/bin/env bash
# Installs, updates, removes and purges the package on this machine's system, in a layer above it that is thrown away: install.sh OLD.deb NEW.deb DIR, an empty directory
# To be run as root, by unshare --mount --net --pid --fork.
set -euo pipefail

work=$3
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
cp "$1" "$work/root/old.deb"
cp "$2" "$work/root/new.deb"
mount --rbind /dev "$work/root/dev"
mount -t proc proc "$work/root/proc"
mount -t tmpfs tmpfs "$work/root/run"
mount -t tmpfs tmpfs "$work/root/tmp"
ip link set lo up
cat >"$work/root/inside.sh" <<'INSIDE'
set -euo pipefail
say() { echo "-- $*"; }
fail() { echo "FAILED: $*"; exit 1; }
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
rm -rf /var/lib/muster /etc/muster

say install
dpkg --path-include='*' -i /old.deb # images of containers leave manual pages out
[ "$(stat -c '%U:%G %a' /var/lib/muster)" = 'muster:muster 700' ] || fail "data directory: $(stat -c '%U:%G %a' /var/lib/muster)"
[ "$(stat -c '%U:%G %a' /etc/muster/muster.json)" = 'root:muster 640' ] || fail "settings: $(stat -c '%U:%G %a' /etc/muster/muster.json)"
getent passwd muster-game >/dev/null || fail 'no user for game servers'
[ -z "$(dpkg --verify muster)" ] || fail "files differ from the package's: $(dpkg --verify muster)"
[ -e /usr/share/man/man1/muster-serve.1.gz ] || fail 'no manual page'

if command -v systemd-analyze >/dev/null; then
	say units
	systemd-analyze verify --man=no muster.service muster-agent.service
	systemd-analyze security --offline=true --threshold=20 muster.service >/tmp/security || { cat /tmp/security; fail 'the service has more rights than before'; }
	systemd-analyze security --offline=true --threshold=50 muster-agent.service >/tmp/security || { cat /tmp/security; fail 'the agent has more rights than before'; }
fi

say run
as_service=(setpriv --reuid muster --regid muster --clear-groups --no-new-privs --bounding-set=-all) # no function: its process would be that of a shell
"${as_service[@]}" /usr/bin/muster serve --config /etc/muster/muster.json 2>/tmp/log &
service=$!
until muster health --config /etc/muster/muster.json 2>/dev/null; do kill -0 $service || { cat /tmp/log; fail 'the service ended'; }; sleep 0.1; done
muster keys create --config /etc/muster/muster.json --role admin --name kept >/dev/null
sed -i 's/"text"/"json"/' /etc/muster/muster.json

say update
dpkg --path-include='*' -i --force-confold /new.deb
kill $service; wait $service || fail "the service ended with $?"
"${as_service[@]}" /usr/bin/muster serve --config /etc/muster/muster.json 2>/tmp/log &
service=$!
until muster health --config /etc/muster/muster.json 2>/dev/null; do kill -0 $service || { cat /tmp/log; fail 'the service ended'; }; sleep 0.1; done
muster keys list --config /etc/muster/muster.json | grep -q kept || fail 'the update lost the key'
head -1 /tmp/log | grep -q '^{' || fail 'the update lost the changed settings'
kill $service; wait $service || fail "the service ended with $?"

say remove
dpkg -r muster
[ ! -e /usr/bin/muster ] || fail 'the binary is still there'
[ -e /etc/muster/muster.json ] || fail 'a removal took the settings'
say purge
dpkg -P muster | tee /tmp/purge
grep -q 'rm -r /var/lib/muster' /tmp/purge || fail 'purge does not say that the data stay'
[ ! -e /etc/muster/muster.json ] || fail 'purge left the settings'
[ -n "$(ls -A /var/lib/muster)" ] || fail 'purge took the data'
INSIDE
chroot "$work/root" /bin/bash /inside.sh
