#!/usr/bin/env bash
# Uses the packages old.deb and new.deb, which are beside this file as the program game is, as an operator does. It is started by a real systemd in a container of its own, whose file system is thrown away.
set -euo pipefail
exec >/out/log 2>&1
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 SYSTEMD_PAGER='' MUSTER_CONFIG=/etc/muster/muster.json
say() { echo "-- $*"; }
has() { grep "$@" >/dev/null; } # grep -q would end before the program that writes
fail() { echo "FAILED: $*"; journalctl --no-pager -n 40 -u muster -u muster-agent -o cat | cut -c1-300; exit 1; }
eventually() { # DESCRIPTION COMMAND…: the bound is for a service that hangs
	local what=$1 end=$((SECONDS + 120))
	shift
	until "$@"; do
		((SECONDS < end)) || fail "not within two minutes: $what"
		sleep 0.1
	done
}
pid() { systemctl show -P MainPID "$1"; }
runs_anew() { # UNIT PID: another process than this one serves
	systemctl is-active -q "$1" && [ "$(pid "$1")" != "$2" ]
}
drop_in() { # UNIT LINE…
	mkdir -p "/run/systemd/system/$1.service.d"
	{ echo '[Service]'; printf '%s\n' "${@:2}"; } >"/run/systemd/system/$1.service.d/test.conf"
	systemctl daemon-reload
}
settings() { sed -i "$1" /etc/muster/muster.json; }
has_key() { muster keys list | has "$1" || fail "the key $1 is lost"; }
examine() { muster doctor >/tmp/doctor || { cat /tmp/doctor; fail "the doctor finds failures: $*"; }; grep -q '^ok *secret: ' /tmp/doctor || { cat /tmp/doctor; fail "the doctor does not ask the service: $*"; }; }

systemctl --version | head -1
echo 127.0.0.1 localhost >/etc/hosts

say install
dpkg -i old.deb
[ "$(systemctl is-enabled muster)" = disabled ] || fail 'the service is enabled without being asked for'
muster keys create --role admin --name early >/dev/null # root, before the first start
systemctl enable --now muster
[ "$(systemctl show -P ActiveState muster)" = active ] || fail 'not active'
journalctl -u muster -o cat | has msg=listening || fail 'the journal has no logs'
has_key early
examine 'a new service'
muster console | has 'http://127.0.0.1:8080/console/link#' || fail 'no link to sign in with'

say rights
systemd-analyze verify --man=no muster.service muster-agent.service
systemd-analyze security --threshold=20 muster.service >/tmp/security || { cat /tmp/security; fail 'the service has more rights than before'; }
systemd-analyze security --threshold=50 muster-agent.service >/tmp/security || { cat /tmp/security; fail 'the agent has more rights than before'; }

say backup
for to in /root/one /tmp/one /root/many/; do
	muster backup --to $to >/dev/null || fail "no backup to $to"
	muster restore --verify $to | has 'The backup is intact' || fail "the backup in $to is not whole"
done

say restore
systemctl stop muster
rm -r /var/lib/muster/*
muster restore /root/one --data /var/lib/muster >/dev/null || fail 'no restore to the directory of the package'
systemctl start muster || fail 'the service does not start with what was restored'
has_key early

say kill
before=$(pid muster)
kill -KILL "$before"
eventually 'another process after SIGKILL' runs_anew muster "$before"
has_key early

say watchdog
drop_in muster WatchdogSec=2s
systemctl restart muster
before=$(pid muster)
kill -STOP "$before"
eventually 'another process after the watchdog' runs_anew muster "$before"
journalctl -u muster | has 'Watchdog timeout' || fail 'it was not the watchdog'
journalctl -u muster -o cat | has '^goroutine ' || fail 'the journal has no stacks'
has_key early
rm -r /run/systemd/system/muster.service.d
systemctl daemon-reload

say journal
before=$(pid muster)
systemctl stop systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket systemd-journald 2>/dev/null
muster reload >/dev/null || fail 'a reload without the journal fails'
systemctl start systemd-journald
[ "$(pid muster)" = "$before" ] || fail 'the end of the journal ended the service'
has_key early

say credentials
mkdir -p -m 700 /etc/credstore
muster secret-key create /etc/credstore/muster.secret.key >/dev/null
install -m 600 tls.key /etc/credstore/muster.tls.key
cp tls.crt /etc/muster/
export SSL_CERT_FILE=/etc/muster/tls.crt # for commands, whose system does not know the certificate
settings 's#"listen".*#"listen": ":443", "public-url": "https://localhost", "tls-cert": "/etc/muster/tls.crt", "tls-key": "/run/credentials/muster.service/muster.tls.key", "secret-key-file": "/run/credentials/muster.service/muster.secret.key",#'
systemctl restart muster
has_key early
muster keys list --secret-key-file '' 2>/dev/null && fail 'the secret is not encrypted'
examine 'with credentials'
muster backup --to /root/two >/dev/null
muster restore --verify /root/two --secret-key-file /etc/credstore/muster.secret.key | has 'The backup is intact' || fail 'the backup is not whole'

say reload
settings 's/"log-format": "text"/"log-format": "json"/'
systemctl reload muster || fail 'a reload fails'
journalctl -u muster -o cat | has '^{.*"settings reloaded"' || fail 'the reload did not change the log'
settings 's/"log-format": "json"/"log-format": "jsonn"/'
systemctl reload muster 2>/dev/null && fail 'a reload with a mistake succeeds'
systemctl is-active -q muster || fail 'a mistake ended the service'
settings 's/jsonn/json/'
systemctl kill --kill-who=main -s HUP muster
eventually 'the reload by SIGHUP' sh -c "journalctl -u muster -o cat | grep -c '^{.*\"settings reloaded\"' | grep -q '[2-9]'"

say agent
mkdir /srv/game
cp game /srv/game/
echo '{"ServerProcesses": [{"LaunchPath": "game", "ConcurrentExecutions": 1}]}' >/srv/game/runtime.json
cat >>/etc/muster/agent.env <<-'SETTINGS'
	MUSTER_AGENT_ROOT=/srv/game
	MUSTER_AGENT_RUNTIME_CONFIG=/srv/game/runtime.json
SETTINGS
systemctl start muster-agent
game() { pgrep -u muster-game -x game; }
eventually 'a game server' game
first=$(game)
grep -q 'muster-agent.service/muster-' "/proc/$first/cgroup" || fail "the game server has no group of its own: $(cat "/proc/$first/cgroup")"
drop_in muster-agent WatchdogSec=2s
for event in restart watchdog; do
	before=$(pid muster-agent)
	if [ $event = restart ]; then systemctl restart muster-agent; else kill -STOP "$before"; fi
	eventually "another agent after $event" runs_anew muster-agent "$before"
	[ "$(game)" = "$first" ] || fail "the game server did not live through the $event of the agent"
done

say update
service=$(pid muster) agent=$(pid muster-agent)
dpkg -i --force-confold new.deb
{ runs_anew muster "$service" && runs_anew muster-agent "$agent"; } || fail 'the update did not restart what ran'
[ "$(game)" = "$first" ] || fail 'the game server did not live through the update'
has_key early
examine 'after the update'

say stop
systemctl stop muster
muster keys create --role admin --name stopped >/dev/null || fail 'no key while the service is stopped'
{ muster doctor 2>/dev/null || true; } | has '^ok *certificate: ' || fail 'the doctor does not find the key of the certificate while the service is stopped'
[ "$(systemctl show -P Result muster)" = success ] || fail "it stopped with $(systemctl show -P Result muster)"
journalctl -u muster -o cat | has '"msg":"stopped"' || fail 'it did not stop in order'
muster health 2>/dev/null && fail 'it answers after it has stopped'
dpkg -i --force-confold old.deb
systemctl is-active -q muster && fail 'an update started a service that was stopped'
systemctl start muster
has_key early
has_key stopped

say remove
dpkg -r muster
pgrep -x muster && fail 'a removal left the service running'
[ "$(game)" = "$first" ] || fail 'a removal ended the game server'
[ -e /etc/muster/muster.json ] || fail 'a removal took the settings'
say purge
dpkg -P muster | tee /tmp/purge
for dir in /var/lib/muster /var/lib/muster-agent; do
	grep -q "rm -r $dir\$" /tmp/purge || fail "purge does not say that $dir stays"
	[ -n "$(ls -A $dir)" ] || fail "purge took $dir"
done
[ ! -e /etc/muster/muster.json ] || fail 'purge left the settings'
say passed
