#!/usr/bin/env bash
# Tests the package on a real systemd: boots Debian in a container and uses the .deb there as an operator does. On this machine's own system, it only installs missing tools.
# SUITE=trixie selects another Debian release. Its root file system is made once, in bin/systemd-SUITE.
set -euo pipefail
cd "$(dirname "$0")/.."

((EUID == 0)) || { echo "make systemd boots a container, which requires root: sudo make systemd"; exit 1; }
missing=()
for program in systemd-nspawn debootstrap openssl; do
	[[ -x $(command -v "$program") ]] || missing+=("${program/nspawn/container}")
done
if ((${#missing[@]})); then
	scripts/install.sh "${missing[@]}" || { echo "make systemd requires systemd-nspawn, debootstrap and openssl"; exit 1; }
fi

suite=${SUITE:-bookworm}
root=$PWD/bin/systemd-$suite
if [[ ! -e $root ]]; then
	echo "making Debian $suite in $root, which takes minutes"
	rm -rf "$root.partial"
	mkdir -p bin
	if ! debootstrap --variant=minbase --include=systemd-sysv,dbus,procps "$suite" "$root.partial" ${MIRROR:+"$MIRROR"} >bin/debootstrap.log; then
		tail -n 20 bin/debootstrap.log
		exit 1
	fi
	rm -rf "$root.partial"/var/cache/apt/archives/*.deb
	mv "$root.partial" "$root"
fi
cd scripts/release
GOWORK=off SYSTEMD_ROOT=$root go test -count=1 -timeout=20m -v -run '^TestSystemd$' .
