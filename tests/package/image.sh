#!/usr/bin/env bash
# The image is built twice from the Dockerfile, in different folders, by buildah on a base that debootstrap made: the digest
# is the same, and the program is the Debian package's to the byte. Then it is unpacked, measured and used as a cluster
# would: user 65532, read-only root. What was built stays in OUT. Skips (77) without root, buildah, debootstrap or mounts;
# with CI=true that is a failure.
# Usage: tests/package/image.sh OUT; OUT/deb holds what deb.sh built.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/package/roots.sh
. tests/package/roots.sh
limit=$((30 * 1000 * 1000))

fail() {
	printf 'FAILED: %s\n' "$*"
	exit 1
}

# Images of other programs on this machine are left alone.
own_storage() {
	export CONTAINERS_STORAGE_CONF=$FOLDER/storage.conf BUILDAH_ISOLATION=chroot TMPDIR=$FOLDER
	printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$roots/images" "$FOLDER/run" >"$CONTAINERS_STORAGE_CONF"
}

# has_base NAME: an image of the root in which the package is built; of former ones none is kept.
has_base() {
	local container
	! buildah inspect --type image "$1" >/dev/null 2>&1 || return 0
	rm -rf "$roots/images"
	container=$(buildah from scratch)
	tar -C "$roots/build" --exclude=./proc/* --exclude=./dev/* --exclude=./var/cache/apt/archives/* -cf "$FOLDER/root.tar" .
	buildah add -q "$container" "$FOLDER/root.tar" /
	buildah commit -q --rm "$container" "$1"
	rm "$FOLDER/root.tar"
}

# build FOLDER OUT
build() {
	sources "$1"
	"$1/packaging/image.sh" --base "$base" "$2" >"$2.log" 2>&1 || { tail -n 40 "$2.log"; fail "the image cannot be built"; }
	buildah rmi "$(awk 'END { print $2 }' "$2.log")" >/dev/null
	echo "-- built: $(cat "$2/digest")"
}


# use ARGUMENTS...: of the program, in the image
use() {
	env -i PATH="$PATH" chroot --userspec=65532:65532 --groups= "$image" /usr/bin/preheat "$@"
}

mounted() {
	image=$FOLDER/image
	mount --bind "$image" "$image"
	mount -t tmpfs -o uid=65532,gid=65532,mode=700 state "$image/var/lib/preheat"
	mkdir "$image/var/lib/preheat/first-try"
	cp examples/first-try/* "$image/var/lib/preheat/first-try"
	mount -t proc proc "$image/proc"
	mount -o remount,bind,ro "$image"
	! touch "$image/usr/bin/x" 2>/dev/null || fail "the root file system can be written to"
}

run_through() {
	local state=/var/lib/preheat
	use version | tee "$FOLDER/version"
	grep -qF "(commit ${PREHEAT_COMMIT%-modified}" "$FOLDER/version"
	use check $state/first-try/pool.yaml
	use simulate -f $state/first-try/pool.yaml --trace $state/first-try/requests.csv.gz \
		--world $state/first-try/world.yaml --out $state/out >/dev/null
	use replay --db $state/out/history.db | tee "$FOLDER/replay"
	grep -q ' 0 differ' "$FOLDER/replay"
	use history --db $state/out/history.db --number 3
	! use simulate -f $state/first-try/pool.yaml --trace $state/first-try/requests.csv.gz --out /out 2>"$FOLDER/refused" ||
		fail "it wrote into the root file system"
	grep -q '/out' "$FOLDER/refused"
}

# The controller on a control plane, until it has decided.
run_in_a_cluster() {
	local status=0
	tests/rig/with_rig.sh tests/package/run_image.sh "$image" || status=$?
	[ $status -ne 77 ] || [ "${CI:-}" = true ] || { echo "-- no rig: not run against an API server"; return 0; }
	return $status
}

inside() {
	own_storage
	has_base "$base"
	build "$FOLDER/a/preheat" "$FOLDER/first"
	(umask 077; build "$FOLDER/another place" "$FOLDER/second")
	cmp "$FOLDER/first/digest" "$FOLDER/second/digest" || fail "built again, it has another digest"
	rm -rf "$out"
	mkdir -p "$out"
	cp "$FOLDER/first"/{preheat-image.tar,digest} "$out"
	python3 -B tests/package/unpack_image.py "$out/preheat-image.tar" "$FOLDER/image" $limit
	dpkg-deb -x "$out"/../deb/preheat_*.deb "$FOLDER/deb"
	cmp "$FOLDER/deb/usr/bin/preheat" "$FOLDER/image/usr/bin/preheat" || fail "the program is not the Debian package's"
	cp "$FOLDER/first/preheat.spdx.json" "$out"
	cmp "$FOLDER/image/usr/share/doc/preheat/preheat.spdx.json" "$out/preheat.spdx.json" || fail "its bill of material is another"
	mounted
	run_through
	run_in_a_cluster
}

base=localhost/preheat-build:$(key_of build)
if [ "${1:-}" = --inside ]; then
	out=$2
	inside
	exit
fi
[ $# -eq 1 ] || { echo "usage: tests/package/image.sh OUT" >&2; exit 2; }
needs_roots buildah cmake python3 dpkg-deb
compgen -G "$1/deb/preheat_*.deb" >/dev/null || { echo "first: tests/package/deb.sh $1"; exit 3; }
has_root clean
has_root build
tell_commit
apart tests/package/image.sh --inside "$(cd "$1" && pwd)/image"
