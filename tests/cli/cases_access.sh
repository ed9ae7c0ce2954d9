# shellcheck shell=bash disable=SC2016
# Page and API are not served where they should not be.

refused 'run: a page for all without TLS' 2 '--web-listen: :8081 is not a loopback address: .*TLS; do: give --tls-cert-file' : \
	'preheat run --watch-pools --web-listen :8081'
refused 'run: of one address without TLS' 2 '--web-listen: 192.0.2.1:8081 is not a loopback address' : \
	'preheat run --watch-pools --web-listen 192.0.2.1:8081'
refused 'run: a certificate without a key' 2 'belong together; do: give both' : \
	'preheat run --watch-pools --web-listen :8081 --tls-cert-file a.crt'
refused 'run: a key without a certificate' 2 'belong together' : \
	'preheat run --watch-pools --tls-private-key-file a.key'
refused 'run: TLS of no page' 2 'which is off; do: leave them out' : \
	'preheat run --watch-pools --web-listen off --tls-cert-file a.crt --tls-private-key-file a.key'
refused 'run: the page at no address' 2 "--web-listen: 'here' is not a valid listen address" : 'preheat run --watch-pools --web-listen here'
refused 'view: for all' 2 'is not a loopback address.*do: listen on 127.0.0.1:PORT' 'cp -r "$example" e' \
	'preheat view --listen 0.0.0.0:8081'
refused 'view: nowhere' 2 "'here:80' is not a valid listen address; use HOST:PORT" : 'preheat view --listen here:80'

a_cluster='printf "%s\n" "apiVersion: v1" "kind: Config" "current-context: x" "contexts: [{ name: x, context: { cluster: c, user: u } }]" \
	"clusters: [{ name: c, cluster: { server: http://127.0.0.1:9 } }]" "users: [{ name: u, user: {} }]" >config'
found 'run: a certificate that is not there' '2|3' '--web-listen: a.crt: cannot open' "$a_cluster" \
	'preheat run --watch-pools --dry-run --kubeconfig config --listen 127.0.0.1:0 --web-listen 127.0.0.1:0 --tls-cert-file a.crt \
		--tls-private-key-file a.key 2>&1'
found 'run: a certificate that is none' 2 '--web-listen: serving on :0: the TLS certificate and its key: ' \
	"$a_cluster; echo none >a.crt; echo none >a.key" \
	'preheat run --watch-pools --dry-run --kubeconfig config --listen 127.0.0.1:0 --web-listen :0 --tls-cert-file a.crt \
		--tls-private-key-file a.key 2>&1'
