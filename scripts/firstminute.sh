#!/usr/bin/env bash
# Measures the first minute: the time from a fresh clone of the last commit, with an empty build cache, to the demo's last line.
#
#   scripts/firstminute.sh                  with the modules that this machine already has
#   scripts/firstminute.sh --cold-modules   also downloads them
#   scripts/firstminute.sh --release FILE   from a release's binary or archive, without Go
#
# The figures are valid only on a machine without other work. Processor time depends less on that than wall time, but a busy machine inflates it as well.
set -euo pipefail
cd "$(dirname "$0")/.."

cold= release=
while (($#)); do
	case $1 in
	--cold-modules) cold=yes ;;
	--release)
		release=$(realpath "${2:?--release wants a file}")
		shift
		;;
	*)
		sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
	shift
done

dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT # the module cache is not writable
TIMEFORMAT='%R %U %S'

# phase NAME COMMAND... runs the command, with its output on the terminal, and adds a line to the table.
phase() {
	local name=$1
	shift
	exec 3>&1 4>&2
	if ! { time "$@" >&3 2>&4; } 2>"$dir/time"; then
		echo "firstminute: $name failed" >&2
		exit 1
	fi
	awk -v name="$name" '{ printf "%-28s %6.1f s %8.1f s\n", name, $1, $2 + $3 }' "$dir/time" >>"$dir/table"
	awk '{ print $1, $2 + $3 }' "$dir/time" >>"$dir/all"
}

export DEMO_FLAGS="--exit --listen 127.0.0.1:${PORT:-18080}" GOCACHE=$dir/cache
if [[ -n $cold ]]; then export GOMODCACHE=$dir/modules; fi
if [[ -n $release ]]; then
	export MUSTER_RELEASE=$release
	phase demo scripts/run.sh
else
	phase clone git clone --quiet --no-local . "$dir/muster"
	cd "$dir/muster"
	phase compile scripts/run.sh --compile
	# shellcheck disable=SC2086
	phase demo bin/quick/muster demo $DEMO_FLAGS # as run.sh continues; run.sh itself would check again what to compile
fi

echo
echo "                               wall   processor"
cat "$dir/table"
awk '{ wall += $1; processor += $2 } END { printf "%-28s %6.1f s %8.1f s\n", "all", wall, processor }' "$dir/all"
echo "on $(getconf _NPROCESSORS_ONLN) processors, load $(cut -d' ' -f1 /proc/loadavg 2>/dev/null || uptime | sed 's/.*: //')"
