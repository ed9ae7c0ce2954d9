# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# preheat provider check, asked wrongly and without a cloud; tests/clouds/check_*.sh ask the clouds.

pool='apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: chat }\nspec:\n  objective: { queueWait: 2s, attainment: 99%% }\n  nodeGroups: [ %s ]\n'

found 'provider: its verbs' 0 '^  check +Tell who we are' '' 'preheat provider'
found 'provider: help' 0 '^  check +' '' 'preheat help provider'
refused 'provider: an unknown verb' 2 "unknown verb 'chek'; did you mean 'check'" '' 'preheat provider chek'
found 'provider check: help' 0 'Nothing is changed' '' 'preheat provider check --help'
refused 'provider check: no manifest' 2 'name its manifest with -f FILE' '' 'preheat provider check'
refused 'provider check: an argument too many' 2 "found 'pool.yaml'.*-f FILE" '' 'preheat provider check pool.yaml'
refused 'provider check: a file that is not there' 2 'nowhere.yaml' '' 'preheat provider check -f nowhere.yaml'
refused 'provider check: a group that is not there' 2 "no node group is called 'g6'; did you mean 'g5'" \
	'printf "$pool" "{ name: g5 }" >p.yaml' 'preheat provider check -f p.yaml --group g6'
refused 'provider check: no time' 2 "--timeout: found '0s'" '' 'preheat provider check --timeout 0s'
refused 'provider check: an output that is none' 2 '--output: found .xml.' '' 'preheat provider check -o xml'
found 'provider check: nothing to ask' 1 'refused +no cloud is named: add eks:' 'printf "$pool" "{ name: g5 }" >p.yaml' \
	'preheat provider check -f p.yaml'
found 'provider check: nobody there' 3 '^1 node group: 0 fine, 0 refused, 1 unanswered' \
	'printf "$pool" "{ name: g5, simulated: { endpoint: http://127.0.0.1:1 } }" >p.yaml' 'preheat provider check -f p.yaml'
found 'provider check: no cluster' 3 'unanswered' 'printf "$pool" "{ name: g5, karpenter: { nodePool: gpu } }" >p.yaml' \
	'HOME=/nowhere KUBECONFIG= preheat provider check -f p.yaml -o json'
found 'provider check: no credentials' 1 'refused.*credentials' \
	'printf "$pool" "{ name: g5, eks: { cluster: c, nodegroup: g5, region: eu-west-1 } }" >p.yaml' \
	'env -i HOME=/nowhere AWS_EC2_METADATA_DISABLED=true "$preheat_path" provider check -f p.yaml'
answer='{"min":0,"max":5,"desired":2,"standby_desired":0,"protects":true,"exposed":0,"guarded":2,"machines":[{"id":"a","state":"running"},{"id":"b","state":"running"}]}'
watched='printf "$pool" "{ name: g5, max: 5, simulated: { endpoint: $ENDPOINT } }" >p.yaml; exec "$preheat_path" provider check -f p.yaml'
found 'provider check: protected, and nobody acts' 0 '2 of its machines are protected from scale-in, and no pool acts on it' '' \
	'pool=$pool preheat_path=$preheat_path python3 -B "$OLDPWD/tests/cli/one_answer.py" "$answer" sh -c "$watched"'
