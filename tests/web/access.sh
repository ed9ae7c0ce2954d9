#!/usr/bin/env bash
# Who reaches the page and the API of a controller, with the tokens and roles of a real API server, and TLS from files.
# Usage: tests/web/access.sh PREHEAT. Exit code 77 with the reason where no servers can be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
preheat=$(realpath "$1")
[ -n "${RIG_DIR:-}" ] || exec "$root/tests/rig/with_rig.sh" "$here/access.sh" "$preheat"

scratch=$(mktemp -d)
pids=()
# shellcheck disable=SC2317  # called on exit
clean_up() {
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$scratch"
}
trap clean_up EXIT
# shellcheck source=tests/deploy/verdicts.sh
. "$root/tests/deploy/verdicts.sh"

# until_true COMMAND...: false after two minutes
until_true() {
	local left
	for ((left = 1200; left > 0; left--)); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

# pair NAME: a key, and a certificate of that name
pair() {
	mkdir -p "$scratch/$1"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
		-addext subjectAltName=IP:127.0.0.1 -keyout "$scratch/$1/tls.key" -out "$scratch/$1/tls.crt" 2>/dev/null
}

# controller LOG OPTION...: runs one, and waits until it tells where its page is; the port is in $port
controller() {
	local log=$scratch/$1
	shift
	"$preheat" run --watch-pools --dry-run --kubeconfig "$scratch/account" --db "$log.db" --listen 127.0.0.1:0 \
		--log-format json "$@" >"$log" 2>&1 &
	pids+=($!)
	until_true grep -qs page-served "$log" || { cat "$log"; exit 1; }
	port=$(grep -o '"port":[0-9]*' "$log" | cut -d: -f2)
}

# ask WHO PATH OPTION...: the status; what was answered is in $scratch/answer, its header in $scratch/header
ask() {
	local who=$1 path=$2 headers=()
	shift 2
	[ "$who" = nobody ] || headers=(-H "Authorization: Bearer $(cat "$scratch/$who.token")")
	curl -s -o "$scratch/answer" -D "$scratch/header" -w '%{http_code}' --cacert "$trusted" --max-time 60 \
		"${headers[@]}" "$@" "$scheme://127.0.0.1:$port$path" || :
}

people() {
	local name
	kubectl apply --server-side -f "$root/deploy/base/crd.yaml" -f "$root/deploy/base/namespace.yaml" \
		-f "$root/deploy/base/rbac.yaml" >/dev/null
	"$root/tests/rig/kubeconfig_for.sh" preheat preheat >"$scratch/account"
	for name in viewer asker stranger gone; do
		kubectl create serviceaccount "$name" >/dev/null
		kubectl create token "$name" >"$scratch/$name.token"
	done
	kubectl create token viewer --audience=another >"$scratch/elsewhere.token"
	echo not.a.token >"$scratch/nonsense.token"
}

may() { kubectl auth can-i "$2" "$3" --as "system:serviceaccount:$1" >/dev/null 2>&1; }

tokens() {
	scheme=https trusted=$scratch/first/tls.crt
	ln -s first "$scratch/now"
	controller tokens.log --web-listen :0 --tls-cert-file "$scratch/now/tls.crt" --tls-private-key-file "$scratch/now/tls.key"
	is 'who says nothing' 401 "$(ask nobody /)"
	has 'how to ask' 'WWW-Authenticate: Bearer' "$(cat "$scratch/header")"
	has 'in the form of the API' '{"error":{"code":401,"reason":"Unauthorized","message":"' "$(cat "$scratch/answer")"
	is 'Preheat may not ask the API server' 503 "$(ask viewer /)"
	kubectl apply -f "$root/deploy/components/web/rbac.yaml" >/dev/null
	kubectl create clusterrolebinding viewers --clusterrole=preheat-viewer --serviceaccount=default:viewer \
		--serviceaccount=default:asker --serviceaccount=default:gone >/dev/null
	kubectl create clusterrolebinding askers --clusterrole=preheat-what-if --serviceaccount=default:asker >/dev/null
	until_true may preheat:preheat create subjectaccessreviews.authorization.k8s.io
	until_true may default:viewer get /api/v1
	until_true may default:asker post /api/v1/what-if
	kubectl delete serviceaccount gone >/dev/null

	is 'the page' 200 "$(ask viewer /)"
	is 'the API' 200 "$(ask viewer /api/v1)"
	is 'again' 200 "$(ask viewer /api/v1)"
	is 'HEAD' 200 "$(ask viewer /api/v1 --head)"
	is 'a path that is none' 404 "$(ask viewer /api/v1/none)"
	is 'looking is not asking' no "$(heard viewer)"
	has 'what is missing' 'may not post /api/v1/what-if' "$(cat "$scratch/answer")"
	is 'who may ask is heard' yes "$(heard asker)"
	is 'without a role' 403 "$(ask stranger /)"
	is 'metrics are elsewhere' 403 "$(ask viewer /metrics)"
	is 'a token that is none' 401 "$(ask nonsense /)"
	is 'a token for others' 401 "$(ask elsewhere /)"
	is 'a token of somebody who is no more' 401 "$(ask gone /)"
	is 'not in the query' 401 "$(ask nobody "/?access_token=$(cat "$scratch/viewer.token")")"
	is 'without TLS' 000 "$(scheme=http ask viewer /)"
	is 'but for another path' yes "$([ "$(reviews_for viewer /api/v1/pools)" -gt 0 ] && echo yes)"
	is 'what was asked is not asked again' 0 "$(until_true is_known viewer /api/v1/pools; echo $?)"
	is 'no token is written down' 0 "$(grep -c -F -f <(cut -d. -f3 "$scratch/viewer.token") "$scratch/tokens.log" || :)"
	is 'what failed is told once' 1 "$(grep -c review-failed "$scratch/tokens.log")"
}

# reviews_for WHO PATH: how many questions to the API server that takes
reviews_for() {
	local before after
	before=$(grep -c 'reviews"' "$RIG_DIR/audit.log")
	ask "$1" "$2" >/dev/null
	after=$(grep -c 'reviews"' "$RIG_DIR/audit.log")
	echo $((after - before))
}

is_known() { [ "$(reviews_for "$@")" -eq 0 ]; }

# heard WHO OPTION...: yes, unless whoever asks what-if is turned away
heard() {
	local who=$1
	shift
	case $(ask "$who" /api/v1/what-if -X POST -d '{' -H 'Content-Type: application/json' "$@") in
	401 | 403 | 000) echo no ;;
	*) echo yes ;;
	esac
}

headers() {
	local name
	ask viewer / >/dev/null
	for name in "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';" \
		"frame-ancestors 'none'" 'X-Content-Type-Options: nosniff' 'Referrer-Policy: no-referrer' 'Permissions-Policy: ' \
		'Cross-Origin-Opener-Policy: same-origin' 'Cross-Origin-Resource-Policy: same-origin' 'Strict-Transport-Security: '; do
		has "header $name" "$name" "$(cat "$scratch/header")"
	done
	is 'nothing for all' 0 "$(grep -c "unsafe\|\*" "$scratch/header" || :)"
	ask viewer /api/v1 >/dev/null
	has 'answers are not kept' 'Cache-Control: no-store' "$(cat "$scratch/header")"
}

served_is() {
	openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null | grep -q "subject=CN = $1"
}

# A folder is swapped, as a kubelet and cert-manager do it; a connection from before goes on.
renewed() {
	# One that is used all the while.
	python3 -B "$here/stay.py" "$port" "$trusted" "$scratch/viewer.token" "$scratch/stop" >"$scratch/stayed" 2>&1 &
	local stayer=$! status=0
	swap() { ln -s "$1" "$scratch/next" && mv -T "$scratch/next" "$scratch/now"; }
	mkdir "$scratch/torn"
	cp "$scratch/second/tls.crt" "$scratch/first/tls.key" "$scratch/torn"
	swap torn
	is 'what is no pair is told' 0 "$(until_true grep -q tls-not-renewed "$scratch/tokens.log"; echo $?)"
	is 'and the one before stays' 0 "$(served_is first; echo $?)"
	swap second
	is 'a new pair is taken' 0 "$(until_true served_is second; echo $?)"
	has 'it is told' tls-renewed "$(cat "$scratch/tokens.log")"
	is 'trouble was told once' 1 "$(grep -c tls-not-renewed "$scratch/tokens.log")"
	touch "$scratch/stop"
	wait $stayer || status=$?
	is 'who was there noticed nothing' '0, one connection' "$status, $(cat "$scratch/stayed")"
	trusted=$scratch/second/tls.crt
	is 'who comes trusts the new one' 200 "$(ask viewer /)"
}

loopback() {
	scheme=http
	controller loopback.log --web-listen 127.0.0.1:0
	is 'who is here is let in' 200 "$(ask nobody /)"
	is 'kubectl port-forward' 200 "$(ask nobody /api/v1 -H 'Host: localhost:12345')"
	is 'a name that was made to point here' 403 "$(ask nobody /api/v1 -H 'Host: evil.example')"
	is 'the page of another site' no "$(heard nobody -H 'Origin: https://evil.example')"
	is 'its images, too' 403 "$(ask nobody /api/v1 -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: no-cors')"
	is 'our own page is heard' yes "$(heard nobody -H "Origin: http://127.0.0.1:$port")"
	is 'a header without an end' 431 "$(ask nobody /api/v1 -H "X: $(head -c 60000 /dev/zero | tr '\0' x)")"
	is 'a body too long' 413 "$(ask nobody /api/v1/what-if -X POST --data-binary @<(head -c 100000 /dev/zero))"
	is 'no promise of TLS' 0 "$(ask nobody / >/dev/null; grep -ci strict-transport "$scratch/header" || :)"
}

# While the API server is away nobody is let in whom it did not know.
away() {
	scheme=https port=$(grep -o '"port":[0-9]*' "$scratch/tokens.log" | cut -d: -f2)
	kubectl create token stranger >"$scratch/later.token"
	"$root/tests/rig/rig.sh" down >/dev/null 2>&1
	is 'nobody can be asked' 503 "$(ask later /)"
	has 'it says so' 'the API server cannot be asked' "$(cat "$scratch/answer")"
}

pair first
pair second
people
tokens
headers
renewed
loopback
away
ended
