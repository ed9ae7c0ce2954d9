#!/usr/bin/env bash
# Builds KEDA's operator and metrics server from their Go module once, kept outside the checkout, about ten minutes of two
# cores, and prints the folder: keda-operator, keda-adapter, crds/. Exit 77, with the reason, where there is no Go that can.
set -euo pipefail
cd "$(dirname "$0")/keda"
export GOTOOLCHAIN=${GOTOOLCHAIN:-local} CGO_ENABLED=0
module=github.com/kedacore/keda/v2

skip() {
	echo "SKIPPED: KEDA cannot be built: $*" >&2
	exit 77
}

command -v go >/dev/null || skip 'there is no Go'
said=$(go list -m 2>&1) || skip "$(go version) does not do: $(tail -n 1 <<<"$said")"
sum=$(cat go.mod go.sum | sha256sum)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/rig folder=$cache/keda-${sum:0:16}
mkdir -p "$cache"
exec 8>"$cache/keda.lock"
flock 8
if [ ! -d "$folder" ]; then
	echo "building KEDA from its Go module, once; ten minutes on two cores" >&2
	rm -rf "$folder.part"
	mkdir -p "$folder.part"
	for part in operator adapter; do
		go build -buildvcs=false -trimpath -ldflags '-s -w' -o "$folder.part/keda-$part" $module/cmd/$part ||
			{ echo 'KEDA cannot be built' >&2; exit 3; }
	done
	cp -r "$(go list -m -f '{{.Dir}}' $module)/config/crd/bases" "$folder.part/crds"
	chmod -R u+w "$folder.part"
	mv -T "$folder.part" "$folder"
fi
echo "$folder"
