# shellcheck shell=bash disable=SC2016
# Recorded traffic that is damaged, wrong or enormous.

# A trace of the given rows behind the usual header.
rows() {
	printf 'arrival_s,prompt_tokens,output_tokens\n'
	[ $# -eq 0 ] || printf '%s\n' "$@"
}

bins() {
	printf 't_s,n_req,prompt_tokens,output_tokens\n'
	printf '%s\n' "$@"
}

# bad_trace NAME PATTERN PREPARE: simulate refuses what PREPARE writes to t.csv (or t.csv.gz)
bad_trace() {
	refused "$1" 2 "$2" "$3" \
		'preheat simulate -f "$example/pool.yaml" --trace t.csv* --out out'
}

bad_trace 'truncated .gz' 't\.csv\.gz.*(truncated|ends|cut)' \
	'head -c 3000 "$example/requests.csv.gz" >t.csv.gz'
bad_trace 'corrupt .gz' 't\.csv\.gz.*(corrupt|damaged|checksum|invalid)' \
	'cp "$example/requests.csv.gz" t.csv.gz; chmod u+w t.csv.gz
	printf "\377\377\377\377\377\377\377\377" | dd of=t.csv.gz bs=1 seek=20000 conv=notrunc status=none'
bad_trace '.gz in name only' 't\.csv\.gz' 'printf "\037\213garbage that is no gzip stream" >t.csv.gz'
bad_trace 'empty file' 't\.csv.*empty' ': >t.csv'
bad_trace 'header only' 't\.csv' 'rows >t.csv'
bad_trace 'wrong columns' 't\.csv:1.*arrival_s' 'printf "time,tokens\n1,2\n" >t.csv'
bad_trace 'missing column in a row' 't\.csv:3' 'rows 1,10,10 2,10 >t.csv'
bad_trace 'too many columns in a row' 't\.csv:2' 'rows 1,10,10,a,b >t.csv'
bad_trace 'no header' 't\.csv:1' 'printf "1,10,10\n2,10,10\n" >t.csv'
bad_trace 'unsorted' 't\.csv:3.*sort' 'rows 5,10,10 4,10,10 >t.csv'
bad_trace 'negative time' 't\.csv:2.*arrival_s' 'rows -1,10,10 >t.csv'
bad_trace 'negative tokens' 't\.csv:2.*prompt_tokens' 'rows 1,-10,10 >t.csv'
bad_trace 'NaN' 't\.csv:3.*output_tokens' 'rows 1,10,10 2,10,NaN >t.csv'
bad_trace 'infinite' 't\.csv:2.*arrival_s' 'rows inf,10,10 >t.csv'
bad_trace 'huge time' 't\.csv:2.*arrival_s' 'rows 1e300,10,10 >t.csv'
bad_trace 'huge tokens' 't\.csv:2.*prompt_tokens' 'rows 1,99999999999999999999,10 >t.csv'
bad_trace 'text for a number' 't\.csv:2.*prompt_tokens' 'rows 1,many,10 >t.csv'
bad_trace 'empty field' 't\.csv:2.*output_tokens' 'rows 1,10, >t.csv'
bad_trace 'binary' 't\.csv:1' 'head -c 5000 /dev/urandom >t.csv'
bad_trace 'bins unsorted' 't\.csv:3' 'bins 10,1,10,10 0,1,10,10 >t.csv'
bad_trace 'bins negative' 't\.csv:2.*n_req' 'bins 0,-1,10,10 >t.csv'
bad_trace 'bins huge' 't\.csv:2.*n_req' 'bins 0,1000000000000000000000,10,10 >t.csv'
refused 'no such trace' 2 'nowhere\.csv.*[Nn]o such file' '' \
	'preheat simulate -f "$example/pool.yaml" --trace nowhere.csv --out out'
refused 'a folder as trace' 2 'folder|directory' 'mkdir t.csv' \
	'preheat simulate -f "$example/pool.yaml" --trace t.csv --out out'
refused 'an endless line from a pipe' 2 'line 1|:1' '' \
	'head -c 200M /dev/zero | tr "\0" a | preheat simulate -f "$example/pool.yaml" --trace - --out out'
refused 'an endless line behind a header from a pipe' 2 ':2' '' \
	'{ rows; head -c 200M /dev/zero | tr "\0" 1; } | preheat simulate -f "$example/pool.yaml" --trace - --out out'
found 'a pipe of .gz' 0 'chat|pool|POOL' '' \
	'cat "$example/requests.csv.gz" | preheat simulate -f "$example/pool.yaml" --trace - --out out'

# bad_import FORMAT NAME PATTERN PREPARE
bad_import() {
	refused "import $1: $2" 2 "$3" "$4" "preheat import --format $1 in --out out.csv"
}

bad_import azure 'empty' 'empty' ': >in'
bad_import azure 'wrong columns' 'in:1.*TIMESTAMP' 'printf "a,b,c\n1,2,3\n" >in'
bad_import azure 'bad time' 'in:2.*TIMESTAMP' 'printf "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,2,3\n" >in'
bad_import azure 'bad tokens' 'in:2.*ContextTokens' \
	'printf "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,-2,3\n" >in'
bad_import burstgpt 'wrong columns' 'in:1' 'printf "a,b,c\n1,2,3\n" >in'
bad_import mooncake 'no JSON' 'in:1' 'printf "hello\n" >in'
bad_import mooncake 'cut off' 'in:2' 'printf "{\"timestamp\":0,\"input_length\":1,\"output_length\":2}\n{\"timestamp\":3" >in'
bad_import prometheus 'no JSON' 'in' 'printf "<html>" >in'
bad_import prometheus 'deep' 'in.*(deep|depth|nest)' 'printf "[%.0s" $(seq 100000) >in'
bad_import auto 'unknown format' 'in' 'printf "what,is,this\n1,2,3\n" >in'
ours='printf "t_s,n_req,prompt_tokens,output_tokens\n0,1,10,10\n" >in'
refused 'import: bins of ours' 2 'in: found a trace in bins; .*do: give it as it is: preheat simulate --trace FILE' "$ours" 'preheat import in --out out.csv'
refused 'import: a manifest' 2 'pool.yaml: found a manifest; .*preheat simulate -f FILE' '' 'preheat import "$example/pool.yaml" --out out.csv'
refused 'import: a world' 2 'world.yaml: found a world file; .*--world FILE' '' 'preheat import "$example/world.yaml" --out out.csv'
refused 'import: a history, a timeline and a summary' 2 'history.db: found a history or a recording; .*do: give it as it is: preheat simulate --recording FILE' \
	'preheat simulate -f "$example/pool.yaml" --trace "$example/requests.csv.gz" --out o >/dev/null 2>&1' \
	'preheat import o/timeline.csv 2>&1 | grep -q "found the timeline of a simulation" || exit 9
	preheat import o/summary.json 2>&1 | grep -q "found the summary of a simulation" || exit 9
	preheat import o/history.db --out out.csv'
refused 'import: unknown format name' 2 'azure' ': >in' 'preheat import --format azur in --out out.csv'
refused 'import: cannot write' '2|3' 'missing/out\.csv' \
	'printf "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,2,3\n" >in' \
	'preheat import --format azure in --out missing/out.csv'
refused 'generate: bad shape' 2 'diurnal' '' 'preheat generate --shape round --out out.csv'
refused 'generate: bad length' 2 'length' '' 'preheat generate --length never --out out.csv'
refused 'generate: endless' 2 '' '' 'preheat generate --length 100000d --rate 1000000 --out out.csv'

# What a server would be asked for is checked before it is asked: nobody listens at port 1.
two_pools='for name in chat embed; do sed "s/name: chat/name: $name/" "$example/pool.yaml"; echo ---; done | sed "\$d" >two.yaml'
refused 'import --prometheus: recording is there' 2 'a\.db: already there' ': >a.db' \
	'preheat import --prometheus http://127.0.0.1:1 -f "$example/pool.yaml" --out a.db'
refused 'import --prometheus: no such folder' 2 'nowhere/a\.db: cannot be written' : \
	'preheat import --prometheus http://127.0.0.1:1 -f "$example/pool.yaml" --out nowhere/a.db'
refused 'import --prometheus: nobody listens' 3 'pool chat.*127\.0\.0\.1:1' : \
	'preheat import --prometheus http://127.0.0.1:1 -f "$example/pool.yaml" --out a.db'
refused 'import --prometheus: no manifest there' 2 'none\.yaml' : \
	'preheat import --prometheus http://127.0.0.1:1 -f none.yaml --out a.db'
refused 'import --prometheus: two pools of one namespace' 2 'chat and embed.*series apart.*labels' "$two_pools" \
	'preheat import --prometheus http://127.0.0.1:1 -f two.yaml --out a.db'
refused 'run --signals-from on a real cloud' 2 '--signals-from: node group g5-.* has provider eks.*--dry-run' : \
	'preheat run -f "$example/../eks/pool.yaml" --signals-from a.db'
refused 'run --signals-from on watched pools' 2 '--signals-from: .*watched.*--dry-run' : 'preheat run --watch-pools --signals-from a.db'
refused 'run --pool-selector with no pools watched' 2 "--pool-selector team=chat: found without --watch-pools; do: give both" : \
	'preheat run -f "$example/pool.yaml" --pool-selector team=chat'
refused 'run --signals-from its own history' 2 'a\.db.*--signals-from' ': >a.db' \
	'preheat run -f "$example/pool.yaml" --signals-from a.db --db ./a.db'

# One draw of chance says missed where most say met: the verdict is of their mean, and says how far they are apart.
drawn='sed "s/attainment: 99%/attainment: 99.15%/" "$example/pool.yaml" >p.yaml'
draws='preheat simulate -f p.yaml --trace "$example/requests.csv.gz" --world "$example/world.yaml" --seed 13'
found 'simulate: one draw misses' 0 '^chat .* - +NO ' "$drawn" "$draws --draws 1"
found 'simulate: the mean of the draws meets' 0 '^chat .* 0\.53-1\.04 % +yes, 7/8 ' "$drawn" "$draws"
found 'simulate: which is said in a sentence' 0 '^chat met its objective in 7 of 8 draws, and on their mean\.$' "$drawn" "$draws"
found 'simulate: the same for programs' 0 '^true$' "$drawn" "$draws -o json | jq '.pools.chat
	| .draws == 8 and .draws_met == 7 and .late_share < .0085 and .late_share_least < .late_share
	and .late_share_most > .01 and .first_draw.late_share == .late_share_most'"
refused 'simulate: too many draws' 2 '--draws: found 101; allowed: 1 to 100' "$drawn" "$draws --draws 101"
refused 'simulate: no draw' 2 '--draws: found 0; allowed: 1 to 100' "$drawn" "$draws --draws 0"

# A recording of replicas that hold 40 sequences where the manifest says 105 is simulated with 40.
measured_world='printf "apiVersion: preheat.dev/v1alpha1\nkind: World\npools: [ { name: chat, maxSequences: 40, interTokenLatency: 40ms } ]\n" >w.yaml
	preheat generate --shape diurnal:2,bursts:3:2h:10m --length 12h --rate 4 --seed 3 --out t.csv.gz
	preheat simulate -f "$example/pool.yaml" --trace t.csv.gz --world w.yaml --policy static:replicas=2 --out out >/dev/null 2>&1'
found 'simulate: what the recording measured' 0 'Measured, pool chat: 40 sequences a replica \(manifest: 105\)' "$measured_world" \
	'preheat simulate --recording out/history.db'
found 'simulate: the fleet that was there' 0 '^40 fits$' "$measured_world" \
	'preheat simulate --recording out/history.db --out again >/dev/null 2>&1
	grep -q "\"model_fits\": true" again/summary.json && echo "$(grep -oE "\"slots\": [0-9]+" again/summary.json | grep -oE "[0-9]+") fits"'
# Requests of many lengths on two replicas that are seldom full: what is late then is late by chance, of the long ones too.
found 'simulate: lengths differ, as they did' 0 '^true$' \
	'sed "s/maxSequences: 105/maxSequences: 16/; s/^      min: 1/      min: 2/; s/^      max: 20/      max: 2/; s/standby: { max: 10,/standby: { max: 0,/; s/^  headroom: .*//" "$example/pool.yaml" >p.yaml
	preheat generate --shape constant --length 8h --rate 4 --prompt-tokens 200 --output-tokens 200 --seed 3 --out t.csv
	preheat simulate -f p.yaml --trace t.csv --out out >/dev/null 2>&1' \
	'preheat simulate --recording out/history.db --out again >/dev/null 2>&1
	jq ".recorded.chat | .late_share > .003 and .model_late_share > .66 * .late_share and .model_fits" again/summary.json'
found 'simulate: a model that does not fit gives no verdict' 0 'does not fit pool chat: .* late where .* No verdict' "$measured_world" \
	'printf "apiVersion: preheat.dev/v1alpha1\nkind: World\npools: [ { name: chat, maxSequences: 200 } ]\n" >other.yaml
	preheat simulate --recording out/history.db --world other.yaml --compare --rivals static'
