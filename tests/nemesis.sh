#!/usr/bin/env bash
# Worlds with a nemesis, in parallel by ranges of seeds; at the end how many broke which law, and the first of each again
# with only the faults that it needs. Usage: tests/nemesis.sh PROGRAM [COUNT [-w] [FIRST]]; -w: what owners of node groups
# and workloads do by themselves; FIRST: the seed to begin with.
set -euo pipefail
program=$1 count=${2:-300} flags='' part=25
[ "${3:-}" != -w ] || { flags=-w && shift; }
seed=${3:-1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
begun=$(date +%s)
# shellcheck disable=SC2016  # the inner shell's own
seq "$seed" "$part" "$((seed + count - 1))" | xargs -P "$(nproc)" -I FIRST bash -c '
	first=$1 left=$(($2 - $1 + 1)) part=$3 dir=$4
	"$5" -q ${6:+"$6"} "$first" $((left < part ? left : part)) >"$dir/$first" 2>"$dir/$first.err"
	status=$?
	[ "$status" -le 1 ] || echo "broken world_ended seed $first and after, status $status" >>"$dir/$first"
	exit 0' world FIRST "$((seed + count - 1))" "$part" "$dir" "$program" "$flags"
sort -k2,2 -k4,4n "$dir"/*[0-9] | grep '^broken' >"$dir/broken" || true
printf '%s worlds, %s broke a law, %s s\n' "$count" "$(wc -l <"$dir/broken")" "$(($(date +%s) - begun))"
awk '{ count[$2]++ } END { for (law in count) printf "  %-24s %d\n", law, count[law] }' "$dir/broken" | sort
awk '!seen[$2]++ && $2 != "world_ended" { print $4 }' "$dir/broken" | while read -r seed; do
	"$program" ${flags:+"$flags"} "$seed" 1 || true
done
[ ! -s "$dir/broken" ]
