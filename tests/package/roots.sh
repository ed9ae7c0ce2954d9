# shellcheck shell=bash
# Debian roots for tests/package, made once by debootstrap and kept outside the checkout: "clean" (what a minimal Debian
# brings) and "build" (with what the Dockerfile installs). Tests change only a layer over them, which goes with the test.
# Sourced from the root of the checkout.
# shellcheck source=tests/dev_tools.sh
. tests/dev_tools.sh
codename=bookworm
roots=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/debian-$codename

skip() {
	printf 'SKIPPED: %s\n' "$*"
	exit 77
}

# needs_roots [COMMAND...]: skips where roots cannot be made, or COMMAND is missing.
needs_roots() {
	local command
	[ "$(id -u)" -eq 0 ] || skip "needs root, for chroot and mounts"
	for command in debootstrap unshare git "$@"; do
		command -v "$command" >/dev/null || skip "no $command (apt-get install $command)"
	done
	unshare -m true 2>/dev/null || skip "this machine allows no mounts"
}

# The archives that this machine's apt uses, without its other sources: SITE RELEASE COMPONENT
archives() {
	# shellcheck disable=SC2016  # apt's own fields
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' | sort -u |
		grep -E " $codename(-updates|-security)? main$" || true
}

# within PLACE COMMAND...: runs it there, with what a container would have; only in a mount namespace of its own.
within() {
	local place=$1
	shift
	cp -L /etc/resolv.conf "$place/etc/resolv.conf"
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		${CI:+CI="$CI"} ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
		${no_proxy:+no_proxy="$no_proxy"} chroot "$place" "$@"
}

# apt PLACE ARGUMENTS...: the folder of archives is shared, and apt does not wait for another one.
apt() {
	local place=$1
	shift
	(
		flock 8
		within "$place" apt-get "$@"
	) 8>"$roots/archives.lock"
}

furnish() {
	mount -t proc proc "$1/proc"
	mount --rbind /dev "$1/dev"
	mkdir -p "$roots/archives/partial"
	mount --bind "$roots/archives" "$1/var/cache/apt/archives"
}

make_clean() {
	local site
	site=$(archives | awk -v release=$codename '$2 == release { print $1; exit }')
	[ -n "$site" ] || { echo "apt on this machine knows no archive of Debian $codename"; return 3; }
	debootstrap --variant=minbase $codename "$1" "$site"
	archives | sed 's/^/deb /' >"$1/etc/apt/sources.list"
	furnish "$1"
	apt "$1" update
}

make_build() {
	local entry packages=()
	cp -a "$roots/clean/." "$1"
	for entry in "${BUILD_NEEDS[@]}" "${PACKAGE_NEEDS[@]}"; do
		packages+=("${entry%%:*}")
	done
	furnish "$1"
	apt "$1" install -y --no-install-recommends "${packages[@]}"
}

key_of() {
	local names=$codename
	[ "$1" = clean ] || names+=" ${BUILD_NEEDS[*]} ${PACKAGE_NEEDS[*]}"
	sha256sum <<<"$names" | cut -c1-12
}

# has_root NAME: makes it when it is absent, or for other packages than those that are needed now.
has_root() {
	local name=$1 key
	key=$(key_of "$name")
	mkdir -p "$roots"
	(
		flock 9
		[ "$(cat "$roots/$name.key" 2>/dev/null)" != "$key" ] || exit 0
		echo "making the $name root, once" >&2
		rm -rf --one-file-system "${roots:?}/$name" "$roots/$name.part" "$roots/$name.key"
		mkdir "$roots/$name.part"
		export -f make_clean make_build archives apt within furnish
		export roots codename
		declare -p BUILD_NEEDS PACKAGE_NEEDS >"$roots/needs"
		unshare -m --propagation private bash -euo pipefail -c \
			". '$roots/needs'; make_$name '$roots/$name.part'" >"$roots/$name.log" 2>&1 ||
			{ tail -n 20 "$roots/$name.log"; echo "the $name root cannot be made (all that was said: $roots/$name.log)"; exit 3; }
		mv -T "$roots/$name.part" "$roots/$name"
		echo "$key" >"$roots/$name.key"
	) 9>"$roots/lock"
}

# over ROOT PLACE: at PLACE, ROOT with a layer in memory over it; only in a mount namespace of one's own.
over() {
	mkdir -p "$2" "$2.layer"
	mount -t tmpfs layer "$2.layer"
	mkdir "$2.layer/upper" "$2.layer/work"
	mount -t overlay overlay -o "lowerdir=$1,upperdir=$2.layer/upper,workdir=$2.layer/work" "$2"
	furnish "$2"
}

# sources PLACE: what git would commit now.
sources() {
	mkdir -p "$1"
	git ls-files -z --cached --others --exclude-standard |
		tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$1"
}

# What a copy without .git cannot tell.
tell_commit() {
	local header
	header=$(mktemp)
	cmake -D SOURCE="$PWD" -D OUT="$header.h" -P packaging/commit.cmake
	PREHEAT_COMMIT=$(sed -n 's/^#define PREHEAT_COMMIT "\(.*\)"/\1/p; s/^#define PREHEAT_MODIFIED 1/-modified/p' "$header.h" |
		tr -d '\n')
	SOURCE_DATE_EPOCH=$(packaging/date.sh)
	export PREHEAT_COMMIT SOURCE_DATE_EPOCH
	rm "$header" "$header.h"
}

# In a mount namespace of its own, which takes the mounts with it: a folder that they are in can be removed after it.
# Usage: apart SCRIPT ARGUMENTS...; the script sees FOLDER.
apart() {
	local status=0
	FOLDER=$(mktemp -d)
	export FOLDER
	unshare -m --propagation private bash -euo pipefail "$@" || status=$?
	rm -rf --one-file-system "$FOLDER"
	return $status
}
