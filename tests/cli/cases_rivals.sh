# shellcheck shell=bash disable=SC2016,SC2154
# Other autoscalers: named, set and compared from outside.

day='preheat generate --shape diurnal --length 4h --rate 40 --bin 10s --seed 1 -o day.csv 2>/dev/null'
run='preheat simulate --pool "$example/pool.yaml" --trace day.csv --warm-up 1h'

refused 'rival with an unknown setting' 2 'traget.*did you mean target' "$day" "$run --policy hpa:traget=0.8"
refused 'rival with a setting out of range' 2 'target=9.*from 0.05 to 2' "$day" "$run --policy hpa:target=9"
refused 'rival with a setting that is no number' 2 'target=nan.*number' "$day" "$run --policy kpa:target=nan"
refused 'rival with a bad pool' 2 'static:N or total:N' "$day" "$run --policy hpa:pool=12"
refused 'unknown rival' 2 'hpq.*static, hpa, kpa' "$day" "$run --compare --rivals hpq"
refused 'rivals without --compare' 2 'add --compare' "$day" "$run --rivals hpa"
found 'a single rival' 0 '"policy": "hpa"' "$day" "$run --policy hpa:target=0.9,window=120 --output json"
found 'comparison' 0 'hpa +default.*target=0.8' "$day" "$run --compare --rivals hpa,static --out out"
found 'comparison is written, a row per setting' 0 '^50$' "$day" \
	"$run --compare --rivals static --out out >/dev/null 2>&1; grep -c '\"policy\": ' out/compare.json"
found 'comparison again gives the same bytes' 0 '^same$' "$day" \
	"for i in 1 2; do $run --compare --rivals static --out out\$i >/dev/null 2>&1; done; cmp out1/compare.json out2/compare.json && echo same"
