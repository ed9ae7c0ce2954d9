#!/usr/bin/env bash
# The Debian package is built in a root of its own, installed, used and removed in a clean one, and leaves nothing there.
# What was built stays in OUT. Skips (77) without root, debootstrap or mounts; with CI=true that is a failure.
# Usage: tests/package/deb.sh OUT
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/package/roots.sh
. tests/package/roots.sh

build_there() {
	over "$roots/build" "$FOLDER/build"
	sources "$FOLDER/build/srv/some where/preheat"
	within "$FOLDER/build" env PREHEAT_COMMIT="$PREHEAT_COMMIT" SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" \
		"/srv/some where/preheat/packaging/deb.sh" /srv/out >"$FOLDER/build.log" 2>&1 ||
		{ tail -n 40 "$FOLDER/build.log"; echo "FAILED: the package cannot be built"; exit 1; }
	rm -rf "$out"
	mkdir -p "$out"
	cp "$FOLDER"/build/srv/out/*.{deb,json} "$out"
}

# Everything but what apt and dpkg note of each call.
listing() {
	(cd "$1" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./var/cache/apt -o -path ./var/log -o -path ./srv/out \) -prune \
		-o ! -path './var/lib/dpkg/*-old' ! -path './var/lib/apt/*' ! -path ./var/cache/ldconfig/aux-cache \
		\( -type d -printf '%p %M %u\n' -o -printf '%p %M %u %s\n' \) | LC_ALL=C sort)
}

use() {
	within "$FOLDER/clean" chroot --userspec=65534:65534 / bash -ec "$1"
}

say() {
	printf -- '-- %s\n' "$*"
}

inside() {
	local clean=$FOLDER/clean docs=/usr/share/doc/preheat
	build_there
	over "$roots/clean" "$clean"
	apt "$clean" update >"$FOLDER/apt.log"
	listing "$clean" >"$FOLDER/before"
	mkdir "$clean/srv/out"
	cp "$out"/preheat_*.deb "$clean/srv/out"
	say install
	apt "$clean" install -y --no-install-recommends "/srv/out/$(cd "$clean/srv/out" && ls)" >>"$FOLDER/apt.log" 2>&1 ||
		{ tail -n 20 "$FOLDER/apt.log"; exit 1; }
	say use
	use 'preheat version' | tee "$FOLDER/version"
	grep -qF "(commit ${PREHEAT_COMMIT%-modified}" "$FOLDER/version"
	use "cd /tmp; preheat check $docs/examples/first-try/pool.yaml"
	use "cd /tmp; preheat simulate -f $docs/examples/first-try/pool.yaml --trace $docs/examples/first-try/requests.csv.gz \
		--world $docs/examples/first-try/world.yaml --out first && preheat replay --db first/history.db" | tail -n 1 | tee "$FOLDER/replay"
	grep -q ' 0 differ' "$FOLDER/replay"
	use 'kubectl-preheat version >/dev/null && rm -r /tmp/first'
	within "$clean" test -s /usr/share/man/man1/preheat.1.gz -a -s $docs/preheat.spdx.json -a -s $docs/changelog.Debian.gz \
		-a -s $docs/copyright -a -d /usr/share/preheat/deploy/base
	say remove
	apt "$clean" purge -y --autoremove preheat >>"$FOLDER/apt.log" 2>&1
	listing "$clean" >"$FOLDER/after"
	diff "$FOLDER/before" "$FOLDER/after" || { echo 'FAILED: removed, it leaves this behind'; exit 1; }
	say 'nothing is left'
}

if [ "${1:-}" = --inside ]; then
	out=$2
	inside
	exit
fi
[ $# -eq 1 ] || { echo "usage: tests/package/deb.sh OUT" >&2; exit 2; }
needs_roots cmake
mkdir -p "$1"
has_root clean
has_root build
tell_commit
apart tests/package/deb.sh --inside "$(cd "$1" && pwd)/deb"
