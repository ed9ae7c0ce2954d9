#!/usr/bin/env bash
# What CONTRIBUTING.md says of adding things is true: a provider, an engine, a verb, a manifest key and a metric are added to a
# copy of the sources by its recipes (steps.py), and the program that is built there has them. Usage: tests/contributing/run.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
scratch=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/contributing-$(printf %s "$root" | sha256sum | cut -c 1-12)
copy=$scratch/copy
mkdir -p "$scratch"
exec 9>"$scratch/lock"
flock 9
trap 'rm -rf "$copy"' EXIT

make_copy() {
	rm -rf "$copy"
	mkdir "$copy"
	git ls-files -z --cached --others --exclude-standard |
		while IFS= read -r -d '' path; do [ ! -f "$path" ] || printf '%s\0' "$path"; done |
		tar -c --null -T - | tar -x -C "$copy"
}

build() {
	local launcher=()
	if command -v ccache >/dev/null; then
		export CCACHE_DIR=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/preheat/ccache} CCACHE_BASEDIR=$copy
		launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
	fi
	cmake -G Ninja -S "$copy" -B "$copy/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O0 ${launcher[@]+"${launcher[@]}"} &&
		ninja -C "$copy/build" preheat
}

failed=0

# sees WHAT EXIT PATTERN COMMAND...: of its output.
sees() {
	local what=$1 exit=$2 pattern=$3 status=0
	shift 3
	"$@" >"$copy/output" 2>&1 || status=$?
	if [ $status -ne "$exit" ] || ! grep -qE -- "$pattern" "$copy/output"; then
		failed=1
		printf 'FAILED: %s: exit %d; no "%s" in:\n' "$what" $status "$pattern"
		head -20 "$copy/output"
	fi
}

make_copy
python3 -B tests/contributing/steps.py "$copy"
"$copy/tests/check_layers.sh" "$copy"
build >"$scratch/log" 2>&1 || { tail -40 "$scratch/log"; exit 1; }
preheat=$copy/build/preheat
sed 's/  headroom:/  signals: { engine: trot }\n  scaleDown: { grazeFor: 4m }\n  headroom:/
	s/provider: simulated/paddock: { group: meadow }/' examples/first-try/pool.yaml >"$copy/good.yaml"
cd "$copy"
sees 'the verb is listed' 0 '^ +neigh +Say that it is there' "$preheat" help
sees 'the verb runs' 0 '^neighs$' "$preheat" neigh
sees 'the verb has its help' 0 'preheat neigh' "$preheat" neigh --help
sees 'a manifest with all of them' 0 '^g5 +paddock' "$preheat" check good.yaml
sed 's/grazeFor: 4m/grazeFor: 4d/' good.yaml >key.yaml
sees 'a bad value of the key' 1 'key\.yaml:[0-9]+:[0-9]+: spec\.scaleDown\.grazeFor' "$preheat" check key.yaml
sed 's/group: meadow/group: -meadow/' good.yaml >block.yaml
sees "a bad value in the provider's block" 1 'block\.yaml:[0-9]+:[0-9]+: .*paddock\.group' "$preheat" check block.yaml
sed 's/engine: trot/engine: trott/' good.yaml >engine.yaml
sees 'an engine that nobody has' 1 'engine\.yaml:[0-9]+:[0-9]+: spec\.signals\.engine.*trot' "$preheat" check engine.yaml
sees 'the key in the reference' 0 'grazeFor.*3m' "$preheat" check --print-reference
sees 'the provider in the reference' 0 'Settings of provider paddock' "$preheat" check --print-reference
sees 'the engine in the schema' 0 '"trot"' "$preheat" check --print-schema
sees 'the key in the CRD' 0 'grazeFor:' "$preheat" crd
sees 'the metric in the reference' 0 'preheat_pool_graze_seconds.*gauge' "$preheat" run --print-metrics
[ $failed -eq 0 ] || exit 1
echo "CONTRIBUTING.md's recipes for a provider, an engine, a verb, a manifest key and a metric hold"
