#!/usr/bin/env bash
# The lines of each parser that its fuzzer covers, with its seeds and with what it found in build/fuzz/corpus.
# Usage: tests/fuzz_coverage.sh BUILD [FUZZER...]
set -euo pipefail
build=$1
shift
# FUZZER SOURCE...
parsers() {
	cat <<-'END'
		api_fuzz controller/web/api.c controller/web/api_call.c controller/web/what_if.c
		aws_fuzz providers/aws/service.c providers/aws/sign.c
		azure_fuzz providers/azure/answer.c providers/azure/place.c providers/azure/token.c
		contract_fuzz controller/contract/objects.c controller/contract/rule_pods.c controller/contract/rule_serving.c
		cron_fuzz controller/manifest/cron.c base/schedule.c
		custom_fuzz signals/engine_metrics.c signals/exposition.c
		decode_fuzz base/decode.c
		eks_fuzz providers/eks_wire.c providers/eks_group.c
		external_queue_fuzz signals/external_queue.c
		gzip_fuzz base/gzip.c
		import_fuzz controller/traces/import.c
		json_fuzz base/json.c
		json_number_fuzz base/json.c
		kubeconfig_fuzz controller/cluster/kubeconfig.c
		lease_fuzz controller/cluster/lease.c
		manifest_fuzz controller/manifest/load.c controller/manifest/check.c controller/manifest/warm_pool.c
		model_fuzz controller/cluster/node.c controller/cluster/pod.c controller/cluster/gang.c controller/cluster/pending.c
		objects_fuzz controller/loop/objects.c
		origin_fuzz controller/web/site.c
		page_fuzz signals/exposition.c signals/engine_metrics.c
		prometheus_answer_fuzz signals/prometheus.c signals/device.c
		quantity_fuzz base/quantity.c
		record_fuzz state/record.c
		replica_fuzz state/replica.c
		retry_fuzz base/net/retry.c
		simulated_fuzz providers/simulated.c
		trace_read_fuzz controller/traces/trace.c
		verbs_fuzz controller/cluster/verbs.c
		watch_fuzz controller/cluster/watch.c
		world_file_fuzz controller/simulation/files/world_file.c
		xml_fuzz base/xml.c
		yaml_fuzz base/yaml.c
	END
}
cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DPREHEAT_FUZZ=ON \
	-DCMAKE_C_FLAGS="-O1 -fprofile-instr-generate -fcoverage-mapping -fsanitize=fuzzer-no-link" >"$build.log"
[ $# -gt 0 ] || mapfile -t -O 0 chosen < <(parsers | cut -d' ' -f1)
[ $# -eq 0 ] || chosen=("$@")
printf '%-26s %-48s %8s %8s %7s\n' fuzzer source lines covered share
for fuzzer in "${chosen[@]}"; do
	ninja -C "$build" "$fuzzer" >>"$build.log" 2>&1
	read -r -a row < <(parsers | grep "^$fuzzer ")
	inputs=()
	for folder in tests/fuzz/*/"$fuzzer" build/fuzz/corpus/"$fuzzer"; do
		[ ! -d "$folder" ] || inputs+=("$folder")
	done
	[ ${#inputs[@]} -gt 0 ] || inputs=(/dev/null)
	LLVM_PROFILE_FILE=$build/$fuzzer.profraw "$build/$fuzzer" -runs=0 "${inputs[@]}" >>"$build.log" 2>&1
	llvm-profdata-14 merge -o "$build/$fuzzer.profdata" "$build/$fuzzer.profraw"
	for source in "${row[@]:1}"; do
		[ -f "$source" ] || continue
		llvm-cov-14 export -summary-only -instr-profile="$build/$fuzzer.profdata" "$build/$fuzzer" "$PWD/$source" |
			jq -r --arg fuzzer "$fuzzer" --arg source "$source" '.data[0].totals.lines | [$fuzzer, $source, .count,
				.covered, (.percent | floor)] | @tsv' |
			while IFS=$'\t' read -r name file lines covered share; do
				printf '%-26s %-48s %8s %8s %6s%%\n' "$name" "$file" "$lines" "$covered" "$share"
			done
	done
done
