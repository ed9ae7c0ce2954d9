# shellcheck shell=bash disable=SC2016,SC2154
# Where results go, and what becomes of them when something is in the way.

simulate='preheat simulate -f "$example/pool.yaml" --trace "$example/requests.csv.gz"'

refused 'output folder is not empty' 2 'out.*--force' 'mkdir out; echo mine >out/mine' "$simulate --out out"
found 'output folder is not empty, --force' 0 '' 'mkdir out; echo mine >out/mine' "$simulate --out out --force; grep mine out/mine"
refused 'output folder is a file' '2|3' 'out' 'echo mine >out' "$simulate --out out --force"
refused 'output folder below a file' '2|3' 'out' 'echo mine >out' "$simulate --out out/deeper"
refused 'no pool' 2 'pool' '' 'preheat simulate --trace "$example/requests.csv.gz" --out out'
refused 'no trace' 2 'trace' '' 'preheat simulate -f "$example/pool.yaml" --out out'
refused 'trace of an unknown pool' 2 'nobody' '' \
	'preheat simulate -f "$example/pool.yaml" --trace "nobody=$example/requests.csv.gz" --out out'
refused 'scale that is not a number' 2 'scale' '' "$simulate --out out --scale NaN"
refused 'scale of zero' 2 'scale' '' "$simulate --out out --scale 0"
refused 'scale too large' 2 'scale' '' "$simulate --out out --scale 1e12"
refused 'negative scale' 2 'scale' '' "$simulate --out out --scale -1"
refused 'warm-up longer than the trace' 2 'warm-up' '' "$simulate --out out --warm-up 900d"
refused 'unknown policy' 2 'hpa' '' "$simulate --out out --policy nobody"
refused 'bad world file' 2 'w\.yaml:[0-9]+' 'printf "stockout: maybe\nnonsense: [\n" >w.yaml' "$simulate --out out --world w.yaml"
refused 'world file with an unknown key' 2 'w\.yaml:1.*nonsense' 'echo "nonsense: 1" >w.yaml' "$simulate --out out --world w.yaml"

if [ "$(id -u)" -eq 0 ] && mkdir -p "$scratch/full" && mount -t tmpfs -o size=256k tmpfs "$scratch/full" 2>/dev/null; then
	refused 'output folder on a full disk' 3 'full|space' 'head -c 250k /dev/zero >"$scratch/full/filler"' \
		"$simulate --out \"\$scratch/full/out\""
	found 'nothing is left on a full disk' 0 '^0$' '' 'find "$scratch/full" -mindepth 1 -not -name filler | wc -l'
	umount "$scratch/full"
else
	skip 'output folder on a full disk' 'needs root and mount'
fi
if [ "$(id -u)" -ne 0 ]; then
	refused 'output folder may not be written' 3 'out' 'mkdir out; chmod 555 out' "$simulate --out out"
else
	refused 'output folder may not be written' '2|3' '/proc' '' "$simulate --out /proc/preheat"
fi


# Interrupted in the middle: what was simulated so far is kept, and says so.
found 'interrupted' 3 'interrupted.*kept in out' \
	'preheat generate --shape diurnal --length 92d --rate 0.01 --seed 1 --out long.csv 2>/dev/null' \
	'set -m
	"$preheat_path" simulate -f "$example/pool.yaml" --trace long.csv --interval 1s --out out 2>&1 >/dev/null &
	for _ in $(seq 600); do [ ! -s out/timeline.csv.partial ] || break; sleep 0.05; done
	kill -INT $!; wait $! || code=$?
	[ -s out/timeline.csv ] && "$preheat_path" explain --db out/history.db --largest >/dev/null &&
		grep -q "\"complete\": false" out/summary.json && ! ls out | grep partial; exit $code'
