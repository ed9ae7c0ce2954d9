# shellcheck shell=bash
# The one pool of a public case, as issue and field notes measure it: only the objective is set, nothing is tuned.

# pool_manifest MAX_NODES LEAD_P50 LEAD_P95 STANDBY_MAX [LENT]: on standard output; STANDBY_MAX 0 is hot only, LENT
# other than 0 lets the pool lend.
pool_manifest() {
	local standby='' lend=''
	[ "${5:-0}" -eq 0 ] || lend='lend: { to: [ batch ], yieldWithin: 30s }'
	[ "$4" -eq 0 ] || standby=", standby: { max: $4, priceShare: 2%, leadTime: { p50: 90s, p95: 150s } }"
	cat <<-END
		apiVersion: preheat.dev/v1alpha1
		kind: WarmPool
		metadata: { name: chat }
		spec:
		  mode: act
		  class: interactive
		  objective: { queueWait: 2s, attainment: 99% }
		  workload:
		    gpusPerReplica: 1
		    maxSequences: 105
		    tokensPerSecond: 3500
		    prefillTokensPerSecond: 25000
		    interTokenLatency: 30ms
		  nodeGroups:
		    - { name: gpu, provider: simulated, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21,
		        min: 0, max: $1$standby }
		  leadTime: { total: { p50: ${2}s, p95: ${3}s } }
		  $lend
	END
}

# world_file LENT_REPLICAS: on standard output
world_file() {
	[ "$1" -eq 0 ] || printf 'lendable: { pool: chat, replicas: %d, reclaim: { p50: 45s, p95: 75s } }\n' "$1"
}
