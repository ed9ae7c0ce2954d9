#!/usr/bin/env bash
# The servers of the rig: prints the folder that holds etcd, kube-apiserver, kubectl and, where they can be had,
# kube-scheduler and kube-controller-manager.
# KUBEBUILDER_ASSETS is used when set; otherwise they are built once from their published Go modules, about a quarter
# of an hour of two cores, and kept outside the checkout. Exit 77, with the reason, where neither is possible.
# Usage: tests/rig/binaries.sh [--if-built]; the latter builds nothing, and prints nothing unless all is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
module=$here/control-plane
cache=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/rig
export GOTOOLCHAIN=${GOTOOLCHAIN:-local} CGO_ENABLED=0
go_parts=(etcd kube-apiserver kube-scheduler kube-controller-manager kubectl)

skip() {
	printf 'SKIPPED: %s\n' "$*" >&2
	exit 77
}

# why_no_go: the reason why Go cannot build the servers here; empty when it can
why_no_go() {
	local said
	if ! command -v go >/dev/null; then
		echo 'there is no Go'
	elif ! said=$(cd "$module" && go list -m 2>&1); then
		echo "$(go version) does not do: $(tail -n 1 <<<"$said")"
	fi
}

built_folder() {
	local sum
	sum=$(cat "$module"/go.mod "$module"/go.sum "$module"/*.go | sha256sum)
	echo "$cache/$(uname -m)-${sum:0:16}"
}

# The version that the servers tell.
stamp() {
	local version key=k8s.io/component-base/version
	version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\)$|\1|p' "$module/go.mod")
	local numbers=${version#v}
	printf -- '-s -w -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s' "$key" "$version" \
		"$key" "${numbers%%.*}" "$key" "$(cut -d. -f2 <<<"$numbers")"
}

# Says every half minute how far the build is.
progress() {
	local log=$1 start=$SECONDS
	exec 7<> <(:) 8>&- # waiting without a child that would outlive it
	while kill -0 $$ 2>/dev/null && ! read -r -t 30 -u 7; do
		printf "building the rig's servers: %d packages, %d s\n" "$(wc -l <"$log")" $((SECONDS - start)) >&2
	done
}

build() {
	local folder=$1 log=$1.log watcher status=0
	echo "building the rig's servers from their Go modules, once; a quarter of an hour on two cores" >&2
	progress "$log" &
	watcher=$!
	(cd "$module" && go build -v -buildvcs=false -trimpath -ldflags "$(stamp)" -o "$folder.part/control-plane" .) \
		>"$log" 2>&1 || status=$?
	kill $watcher
	wait $watcher 2>/dev/null || true
	if [ $status -ne 0 ]; then
		tail -n 20 "$log" >&2
		echo "the rig's servers cannot be built (all that go said: $log)" >&2
		exit 3
	fi
	for part in "${go_parts[@]}"; do
		ln -sf control-plane "$folder.part/$part"
	done
	mv -T "$folder.part" "$folder"
}

# from_go: the folder of what was built; builds when need be, one at a time
from_go() {
	local folder
	folder=$(built_folder)
	if [ ! -d "$folder" ]; then
		mkdir -p "$cache"
		exec 8>"$cache/lock"
		flock 8
		[ -d "$folder" ] || build "$folder"
		exec 8>&-
	fi
	echo "$folder"
}

# from_assets: a folder of links to what KUBEBUILDER_ASSETS holds and what Go adds
from_assets() {
	local folder part extra=''
	for part in etcd kube-apiserver; do
		[ -x "$KUBEBUILDER_ASSETS/$part" ] || skip "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS holds no program $part"
	done
	if [ -z "$(why_no_go)" ]; then
		extra=$(from_go)
	else
		echo "no kube-scheduler and no kube-controller-manager beside KUBEBUILDER_ASSETS: $(why_no_go)" >&2
	fi
	folder=$cache/assets-$(realpath "$KUBEBUILDER_ASSETS" | cat - <(echo "$extra") | sha256sum | cut -c 1-16)
	mkdir -p "$folder"
	for part in "${go_parts[@]}"; do
		if [ -x "$KUBEBUILDER_ASSETS/$part" ]; then
			ln -sfn "$(realpath "$KUBEBUILDER_ASSETS")/$part" "$folder/$part"
		elif [ -n "$extra" ]; then
			ln -sfn "$extra/$part" "$folder/$part"
		fi
	done
	[ -x "$folder/kubectl" ] || command -v kubectl >/dev/null || skip "KUBEBUILDER_ASSETS holds no kubectl, and PATH neither"
	echo "$folder"
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	from_assets
elif [ "${1:-}" = --if-built ]; then
	[ ! -d "$(built_folder)" ] || built_folder
else
	reason=$(why_no_go)
	[ -z "$reason" ] || skip "the rig's servers cannot be had: KUBEBUILDER_ASSETS is not set (see setup-envtest), and $reason"
	from_go
fi
