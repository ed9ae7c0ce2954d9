# shellcheck shell=bash disable=SC2016
# Manifests that are wrong, empty or enormous. `check` prints its findings on standard output.

found 'check: the example' 0 '' '' 'preheat check "$example/pool.yaml"'
found 'check: a mistake names file, line and column' 1 \
	'p\.yaml:[0-9]+:[0-9]+: spec\.objective\.attainment.*101%.*' \
	'sed "s/attainment: [0-9.]*%/attainment: 101%/" "$example/pool.yaml" >p.yaml' 'preheat check p.yaml'
found 'check: an unknown key is told, with the nearest' 1 'p\.yaml:[0-9]+:[0-9]+: .*objectiv.*objective' \
	'sed "s/objective:/objectiv:/" "$example/pool.yaml" >p.yaml' 'preheat check p.yaml'
found 'check: two mistakes are both told' 1 '2 mistakes in 1 file' \
	'sed "s/attainment: [0-9.]*%/attainment: 101%/; s/maxSequences: .*/maxSequences: none/" "$example/pool.yaml" >p.yaml' \
	'preheat check p.yaml'
reservation='sed "s/^    - name: .*/&\n      capacityType: reserved\n      reservedUntil: \"$until\"/" "$example/pool.yaml" >p.yaml'
found 'check: a reservation that ended is told' 0 'reserved, ended 2021-01-31T11:30:00Z' "until=2021-01-31T11:30:00Z; $reservation" 'preheat check p.yaml'
found 'check: and is a warning of its own' 1 'warning +reservation-over: .* g5 ended at 2021-01-31T11:30:00Z: nothing starts there' \
	"until=2021-01-31T11:30:00Z; $reservation" 'preheat check --strict p.yaml'
found 'check: and one that has not' 0 'reserved until 2999-01-31T11:30:00Z' "until=2999-01-31T11:30:00Z; $reservation" 'preheat check p.yaml'
found 'check: as JSON' 1 '"line": *9' \
	'sed "s/attainment: [0-9.]*%/attainment: 101%/" "$example/pool.yaml" >p.yaml' 'preheat check p.yaml --output json'
found 'check: from a pipe' 1 'kind: found .Pool.' '' 'printf "apiVersion: preheat.dev/v1alpha1\nkind: Pool\n" | preheat check -'
# As the server shows it: several in a List, each with what the server and the controller added.
listed='{ printf "apiVersion: v1\nkind: List\nmetadata: { resourceVersion: \"\" }\nitems:\n"
	sed "s/^/  /; 1s/^  /- /; /^  spec:/i \  status: { hot: 2, conditions: [ { type: Ready } ] }" "$example/pool.yaml" |
		sed "s/metadata: { /metadata: { uid: u, resourceVersion: \"5\", generation: 2, managedFields: [ { manager: kubectl } ], /"; } >p.yaml'
found 'check: from the server' 0 '^chat +interactive' "$listed" 'preheat check - <p.yaml'
found 'check: a mistake in a list from the server' 1 'items\[0\]\.spec\.objective\.attainment' \
	"$listed; sed -i 's/attainment: [0-9.]*%/attainment: 101%/' p.yaml" 'preheat check - <p.yaml'
found 'check: an empty list' 1 'at least one WarmPool' '' 'printf "apiVersion: v1\nkind: List\nitems: []\n" | preheat check -'
found 'check: a key of the server at a wrong place' 1 'spec\.uid: found an unknown key' \
	'sed "s/^spec:/spec:\n  uid: u/" "$example/pool.yaml" >p.yaml' 'preheat check p.yaml'
refused 'check: no file' 2 'name a file' '' 'preheat check'
refused 'check: no such file' 2 'nowhere\.yaml' '' 'preheat check nowhere.yaml'

# bad_pool NAME PATTERN PREPARE: check tells it, simulate refuses p.yaml with one message
bad_pool() {
	found "check: $1" '1|2' '' "$3" 'preheat check p.yaml 2>&1 | head -20 | grep -E "'"$2"'"; exit "${PIPESTATUS[0]}"'
	refused "simulate: manifest: $1" 2 "$2" "$3" 'preheat simulate -f p.yaml --trace "$example/requests.csv.gz" --out out'
}

bad_pool 'empty' 'p\.yaml' ': >p.yaml'
bad_pool 'nothing in it' 'p\.yaml' 'printf "%s\n" "---" "# nothing" >p.yaml'
bad_pool 'not YAML' 'p\.yaml:' 'printf "a: [1, 2\nb: }\n" >p.yaml'
bad_pool 'binary' 'p\.yaml' 'head -c 4000 /dev/urandom >p.yaml'
bad_pool 'another kind' 'p\.yaml:[0-9]+.*WarmPool' 'printf "apiVersion: preheat.dev/v1alpha1\nkind: Pod\nmetadata: { name: x }\n" >p.yaml'
bad_pool 'a list' 'p\.yaml:1' 'printf "%s\n" "- a" "- b" >p.yaml'
bad_pool 'two million keys' 'p\.yaml.*larger' 'seq -f "key%.0f: 1" 2000000 >p.yaml'
bad_pool 'a million keys in one pool' 'p\.yaml' '{ cat "$example/pool.yaml"; echo; seq -f "  key%.0f: 1" 1000000; } >p.yaml'
bad_pool 'a hundred thousand keys' 'p\.yaml' 'seq -f "%.0f: 1" 100000 >p.yaml'
bad_pool 'a thousand documents of nothing' 'p\.yaml' 'printf -- "---\n%.0s" $(seq 1000) >p.yaml'
bad_pool 'deep' 'p\.yaml' '{ printf "a: "; printf "[%.0s" $(seq 100000); } >p.yaml'
bad_pool 'aliases that multiply' 'p\.yaml' 'printf "%s\n" "a: &a [x,x,x,x]" "b: &b [*a,*a,*a]" "c: [*b,*b,*b]" >p.yaml'
bad_pool 'a line of 200 MB' 'p\.yaml' '{ printf "a: "; head -c 200M /dev/zero | tr "\0" x; } >p.yaml'
bad_pool 'missing' 'p\.yaml.*[Nn]o such file' ':'
