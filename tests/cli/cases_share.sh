# shellcheck shell=bash disable=SC2016,SC2154
# Models on the same GPUs: proposed from recorded requests, and asked wrongly.

# Three models, each busy in its own hour of three: a request every 5 s.
turns='awk "BEGIN { print \"arrival_s,prompt_tokens,output_tokens,class\"
	for (t = 0; t < 43200; t += 5) printf \"%d.000,100,200,%s\n\", t, substr(\"abc\", 1 + int(t / 3600) % 3, 1) }" >turns.csv'
share='preheat share -f "$example/pool.yaml" --trace turns.csv --warm-up 3h'

found 'share: who is busy in turn needs one slot and not three' 0 '^true$' "$turns" \
	"$share -o json | jq 'map(select(.proposal == \"one share\"))[0] | .models == 3 and .slots_mean < 2.1 and .saving_ppm > 300000 and .models_met == 3'"
found 'share: each alone is the first row, and saves nothing' 0 '^true$' "$turns" \
	"$share -o json | jq '.[0] | .proposal == \"each alone\" and .saving_ppm == 0 and .models == 3'"
found 'share: a sentence at the end' 0 '^Of those that keep the objectives, "one share" needs least: [0-9.]+ % fewer GPU hours' "$turns" "$share"
found 'share: the same again' 0 '^same$' "$turns" "$share -o csv >a; $share -o csv >b; cmp a b && echo same"
found 'share: memory for one engine a slot leaves next to nothing to share' 0 '^true$' "$turns" \
	"$share --host-memory 16Gi -o json | jq 'all(.[]; .saving_ppm < 20000)'"
found 'share: several awake on a GPU need fewer slots than one' 0 '^true$' "$turns" \
	"one=\$($share -o json | jq '.[1].gpu_hours'); all=\$($share --engine-memory 20Gi -o json | jq '.[1].gpu_hours'); jq -n \"\$all <= \$one\""
found 'share: wakes that fail make requests late' 0 '^true$' "$turns" \
	"$share --failed-wakes 40% -o json | jq '.[1].late_ppm > 1000'"
# A slot's engine of a model is in one state after the other, and one awake on a GPU of that size.
found 'share: when which engine was awake' 0 '^3 models, 0 gaps, 0 at once, 0 left$' "$turns; $share --timeline spans.csv >/dev/null" \
	'awk -F, "NR == 1 { if (\$0 != \"from_s,until_s,slot,model,state\") exit 1; next }
		{ k = \$3 FS \$4; gaps += (k in end) && end[k] > \$1; end[k] = \$2; models[\$4]; if (\$2 > last) last = \$2 }
		\$5 == \"awake\" { at_once += \$1 < awake[\$3]; awake[\$3] = \$2 }
		END { printf \"%d models, %d gaps, %d at once, %d left\\n\", length(models), gaps, at_once, last != 43196 }" spans.csv'
refused 'share: a timeline that cannot be written' 2 'none/spans.csv' "$turns" "$share --timeline none/spans.csv"
found 'share: beside others' 0 '^threshold .*idle=' "$turns" "$share --compare"
found 'share: pools of several manifests' 0 '^true$' "$turns
	grep -E 'arrival|,a' turns.csv | cut -d, -f1-3 >a.csv; grep -E 'arrival|,b' turns.csv | cut -d, -f1-3 >b.csv
	sed 's/name: chat,/name: other,/; s/name: g5/name: g6/' \"\$example/pool.yaml\" >other.yaml" \
	'preheat share -f "$example/pool.yaml" -f other.yaml --trace chat=a.csv --trace other=b.csv -o json | jq ".[1].models == 2 and .[1].members == \"chat, other\""'

refused 'share: no manifest' 2 'no pool: name its manifest' "$turns" 'preheat share --trace turns.csv'
refused 'share: no traffic' 2 'no traffic: name a trace' '' 'preheat share -f "$example/pool.yaml"'
refused 'share: no class column' 2 'has no class column' "$turns; cut -d, -f1-3 turns.csv >plain.csv" 'preheat share -f "$example/pool.yaml" --trace plain.csv'
refused 'share: a request without a class' 2 'request 2 has no class' "$turns; sed '3s/a\$//' turns.csv >gap.csv" 'preheat share -f "$example/pool.yaml" --trace gap.csv'
refused 'share: counts per bin' 2 'counts per bin.*give the requests' 'preheat generate --length 1h --bin 10s --out bins.csv 2>/dev/null' 'preheat share -f "$example/pool.yaml" --trace bins.csv'
refused 'share: one model' 2 'found 1 models; allowed: 2 to' "$turns; grep -E 'arrival|,a' turns.csv >one.csv" 'preheat share -f "$example/pool.yaml" --trace one.csv'
refused 'share: an engine that no GPU holds' 2 'engine awake takes 90Gi' "$turns" "$share --engine-memory 90Gi"
refused 'share: weights that no host holds' 2 'one engine asleep takes 1Ti' "$turns" "$share --weights 1Ti"
refused 'share: memory without a number' 2 '--gpu-memory: found .lots.; allowed: bytes' "$turns" "$share --gpu-memory lots"
refused 'share: nothing to score' 2 '--warm-up: .* leave nothing to score' "$turns" 'preheat share -f "$example/pool.yaml" --trace turns.csv --warm-up 2d'
refused 'share: an argument' 2 'unexpected .day.csv.' '' 'preheat share day.csv'
refused 'share: wakes that all fail' 2 '--failed-wakes: found .100%.; allowed: 0% to 90%' "$turns" "$share --failed-wakes 100%"
