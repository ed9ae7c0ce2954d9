#!/usr/bin/env bash
# Builds controllers that own what Preheat changes from their Go modules once, kept outside the checkout, and prints the folder:
# the programs, crds/. Exit 77, with the reason, where there is no Go that can.
# Usage: tests/rig/build_owner.sh keda|karpenter|cluster-api
set -euo pipefail
owner=${1:-}
# Each program is NAME=PACKAGE, each folder of definitions a path, both within the module.
case $owner in
keda)
	module=github.com/kedacore/keda/v2 minutes=ten
	programs=(keda-operator=cmd/operator keda-adapter=cmd/adapter) crds=(config/crd/bases)
	;;
karpenter) # with its provider kwok, whose machines are Node objects
	module=sigs.k8s.io/karpenter minutes=five
	programs=(karpenter=kwok) crds=(pkg/apis/crds kwok/apis/crds)
	;;
cluster-api)
	module=sigs.k8s.io/cluster-api minutes=five
	programs=(cluster-api=core) crds=(core/config/crd/bases)
	;;
*)
	echo "usage: tests/rig/build_owner.sh keda|karpenter|cluster-api" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/$owner"
export GOTOOLCHAIN=${GOTOOLCHAIN:-local} CGO_ENABLED=0

skip() {
	echo "SKIPPED: $owner cannot be built: $*" >&2
	exit 77
}

command -v go >/dev/null || skip 'there is no Go'
said=$(go list -m 2>&1) || skip "$(go version) does not do: $(tail -n 1 <<<"$said")"
sum=$(cat go.mod go.sum | sha256sum)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/rig folder=$cache/$owner-${sum:0:16}
mkdir -p "$cache"
exec 8>"$cache/$owner.lock"
flock 8
if [ ! -d "$folder" ]; then
	echo "building $owner from its Go module, once; $minutes minutes on two cores" >&2
	rm -rf "$folder.part"
	mkdir -p "$folder.part/crds"
	for program in "${programs[@]}"; do
		go build -buildvcs=false -trimpath -ldflags '-s -w' -o "$folder.part/${program%=*}" "$module/${program#*=}" ||
			{ echo "$owner cannot be built" >&2; exit 3; }
	done
	source=$(go list -m -f '{{.Dir}}' "$module")
	for from in "${crds[@]}"; do
		cp "$source/$from"/*.yaml "$folder.part/crds"
	done
	chmod -R u+w "$folder.part"
	mv -T "$folder.part" "$folder"
fi
echo "$folder"
