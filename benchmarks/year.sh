# shellcheck shell=bash
# A year of history at 15 s, made once: four quarters of traffic through the modelled cluster.

# year_of_history PREHEAT FOLDER: FOLDER/out/history.db
year_of_history() {
	local preheat=$1 folder=$2 quarter
	[ ! -f "$folder/out/history.db" ] || return 0
	mkdir -p "$folder"
	for quarter in 0 1 2 3; do
		"$preheat" generate --shape diurnal:1.8,bursts:3:3h:8m --length 91d --rate 60 --weekend 0.5 --bin 15s \
			--seed $((quarter + 1)) --out - 2>/dev/null |
			awk -F, -v OFS=, -v from=$((quarter * 91 * 86400)) \
				'NR == 1 { if (!from) print; next } { $1 += from; print }'
	done >"$folder/trace.csv"
	pool_manifest 60 380 650 10 >"$folder/pool.yaml"
	"$preheat" simulate --draws 1 -f "$folder/pool.yaml" --trace "$folder/trace.csv" --out "$folder/out" --force >/dev/null 2>&1
	rm "$folder/trace.csv"
}
