#!/usr/bin/env bash
# Many models on few GPUs: recorded clients as models, each alone and together on slots, under both objectives.
# Usage: benchmarks/share.sh [PATTERN]: the cases whose name matches. COMPARE=no leaves the rivals out, STANDBY=yes gives
# both sides stopped machines that wake in 90 s, WITHIN="2s" leaves one objective out.
set -euo pipefail
preheat=${PREHEAT:-build/release/preheat} pattern=${1:-.}
standby=
[ -z "${STANDBY:-}" ] || standby=', standby: { max: 400, priceShare: 2%, leadTime: { p50: 90s, p95: 150s } }'
traces=${PREHEAT_SHARED:-../shared}/traces
out=build/bench/share
mkdir -p "$out"

# clients TRACE DAYS MODELS [MEAN SERVICE [BUSIER]]: the busiest clients of so many days as models, but for so many that are
# busier; with MEAN each client's requests are copied with a jitter of 300 s until they keep that many engines of 8 sequences
# busy, at SERVICE seconds a request.
clients() {
	zcat "$traces/$1" | awk -F, -v days="$2" -v models="$3" -v mean="${4:-0}" -v service="${5:-0}" -v busier="${6:-0}" '
		NR == 1 || $1 >= days * 86400 { next }
		{ row[++rows] = $0; busy[$4] += $2 * 8 / 25000 + $3 * .03; requests[$4]++; last = $1 }
		function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand()) }
		END {
			srand(1)
			for (n = 0; n < models + busier; n++) {
				best = ""
				for (c in busy) if (!(c in copies) && (best == "" || busy[c] > busy[best])) best = c
				if (best == "") break
				copies[best] = n < busier ? 0 : mean ? mean * 8 * last / (requests[best] * service) : 1
			}
			for (i = 1; i <= rows; i++) {
				split(row[i], f, ",")
				if (!(f[4] in copies)) continue
				tokens = f[3]
				if (mean) {
					tokens = (f[2] * 8 / 25000 + f[3] * .03) * service * requests[f[4]] / busy[f[4]] / .03
					f[2] = 0
				}
				for (k = int(copies[f[4]] + rand()); k > 0; k--) {
					t = f[1] + (mean ? 300 * normal() : 0)
					if (t >= 0 && t < last) printf "%.3f,%d,%d,%s\n", t, f[2], tokens, f[4]
				}
			}
		}' | sort -t, -k1,1n -s | { echo arrival_s,prompt_tokens,output_tokens,class; cat; } | gzip -1
}

# pool SEQUENCES WAIT: one engine on one GPU, at any number of which the objective is kept
pool() {
	cat <<-END
		apiVersion: preheat.dev/v1alpha1
		kind: WarmPool
		metadata: { name: model }
		spec:
		  mode: act
		  class: interactive
		  objective: { queueWait: $2, attainment: 99% }
		  workload: { gpusPerReplica: 1, maxSequences: $1, prefillTokensPerSecond: 25000, interTokenLatency: 30ms }
		  nodeGroups:
		    - { name: gpu, provider: simulated, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 0,
		        max: 400$standby }
		  leadTime: { total: { p50: 380s, p95: 650s } }
	END
}

# run NAME SEQUENCES ENGINE-MEMORY WARM-UP CLIENTS...
run() {
	local wait wake compare=(--compare)
	[[ $1 =~ $pattern ]] || return 0
	[ "${COMPARE:-yes}" = yes ] || compare=()
	[ -s "$out/$1.csv.gz" ] || clients "${@:5}" >"$out/$1.csv.gz"
	for wait in ${WITHIN:-2s 10s}; do
		wake=$([ "$wait" = 2s ] && echo 1.5s || echo 5s)
		pool "$2" "$wait" >"$out/$1.yaml"
		"$preheat" share -f "$out/$1.yaml" --trace "$out/$1.csv.gz" --warm-up "$4" --engine-memory "$3" --wake "$wake" \
			--timeline "$out/$1-$wait${standby:+-standby}-timeline.csv" ${compare[@]+"${compare[@]}"} -o csv >"$out/$1-$wait${standby:+-standby}.csv"
		awk -F, -v name="$1" -v wait="$wait" '
			function share(ppm) { return sprintf("%.3g%%", ppm / 10000) }
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			$1 ~ /^(share|alone) / { next }
			$1 == "each alone" { alone = $at["gpu_hours"] }
			{ printf "| %s | %s | %s | %s | %.1f | %s | %.3f | %s | %s |\n", name, wait, $1, $at["models"], $at["slots_mean"],
				$at["gpu_hours"], $at["gpu_hours"] / alone, share($at["late_ppm"]), $at["models_met"] }' \
			"$out/$1-$wait${standby:+-standby}.csv"
	done
}

echo '| case | within | who | models | GPUs, mean | GPU h | / each alone | late | kept by |'
echo '|---|---|---|---|---|---|---|---|---|'
image=servegen_image_1d.csv.gz large=servegen_large_d1.3-5.7.csv.gz small=servegen_small_d2.9-9.csv.gz
run longtail-image 105 60Gi 6h $image 1 35
run longtail-image-4 105 18Gi 6h $image 1 35
run longtail-large 105 60Gi 1d $large 3 60
run longtail-large-4 105 18Gi 1d $large 3 60
run dozen-1 8 60Gi 1d $small 2 12 1 30
run dozen-1-4 8 18Gi 1d $small 2 12 1 30
run dozen-4 8 60Gi 1d $small 2 12 4 30
run dozen-15 8 60Gi 1d $small 2 12 15 60
run twelve 105 60Gi 1d $large 3 12 0 0 18 # the picture in README.md: docs/images/draw.py
run large-60 8 60Gi 1d $small 2 4 60 60
