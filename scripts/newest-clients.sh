#!/usr/bin/env bash
# Fetches the AWS CLI and botocore from Debian's unstable branch into bin/newest-clients, for the tests of sign-ins with the newest clients. It installs nothing and needs no privileges.
# They come with their own Python and C library, so they run on any Linux with the same processor architecture. The script uses this machine's Debian mirror.
# Without them the tests are skipped: bin/newest-clients/missing has the reason. A copy that is younger than a week is kept; FRESH=1 fetches it again.
set -euo pipefail
cd "$(dirname "$0")/.."

into=$PWD/bin/newest-clients
packages=(awscli python3-botocore)

missing() {
	mkdir -p "$into"
	echo "$1" >"$into/missing"
	echo "the newest AWS clients cannot be fetched, and their tests are skipped: $1" >&2
	exit 0
}

if [[ -z ${FRESH:-} && -n $(find "$into/versions" -mtime -7 2>/dev/null) ]]; then
	exit 0
fi
rm -rf "$into"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || missing "this machine has no apt-get"
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null || true; } | grep -v '^ *#' | grep -oE -m1 'https?://[^ ]+/debian/?( |$)') || missing "no source of packages on this machine is a mirror of Debian"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -e $keys ]] || missing "$keys does not exist"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial
touch "$work/status"
echo "deb [signed-by=$keys] $mirror sid main" >"$work/sources.list"
apt() {
	timeout --kill-after=5 "$1" apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$work" \
		-o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work" -o Dir::Cache::archives="$work/archives" -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o APT::Install-Recommends=false "${@:2}"
}
apt 120 update >"$work/log" 2>&1 || missing "apt-get update of Debian's unstable branch: $(tail -1 "$work/log")"
apt 180 install --download-only -y "${packages[@]}" >"$work/log" 2>&1 || missing "the packages ${packages[*]}: $(tail -1 "$work/log")"

mkdir -p "$into/root"
for package in "$work"/archives/*.deb; do
	dpkg-deb --extract "$package" "$into/root"
done
for program in aws python; do
	cat >"$into/$program" <<'WRAPPER'
#!/bin/sh
# Use the loader from the packages: this machine's C library may be too old for them.
here=$(dirname "$(readlink -f "$0")")
root=$here/root
PYTHONHOME=$root/usr
export PYTHONHOME
set -- PROGRAM "$@"
for loader in "$root"/usr/lib64/ld-linux-* "$root"/usr/lib/ld-linux-*; do
	[ -x "$loader" ] && break
done
exec "$loader" --library-path "$(echo "$root"/usr/lib/*-linux-gnu)" "$root/usr/bin/python3" "$@"
WRAPPER
	chmod +x "$into/$program"
done
sed -i 's|^set -- PROGRAM |set -- "$root/usr/bin/aws" |' "$into/aws"
sed -i '/^set -- PROGRAM /d' "$into/python"
version=$(timeout 60 "$into/aws" --version 2>&1) || missing "the AWS CLI of the unstable branch does not run here: $version"
(cd "$work/archives" && printf '%s\n' *.deb) >"$into/versions"
echo "$version"
