# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# preheat provider check, asked wrongly and without a cloud; tests/clouds/check_*.sh ask the clouds.

pool='apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: chat }\nspec:\n  objective: { queueWait: 2s, attainment: 99%% }\n  nodeGroups: [ %s ]\n'

found 'provider: its verbs' 0 '^  check +Show caller identity' '' 'preheat provider'
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
answer_busy=${answer/'"exposed":0'/'"busy_with":"an update goes on","exposed":2'}
acts=${watched/'>p.yaml'/'| sed "s/^spec:/spec:\n  mode: act/" >p.yaml'}
found 'provider check: what it would do while an owner is at work' 0 'would +change nothing until that is over' '' \
	'pool=$pool preheat_path=$preheat_path python3 -B "$OLDPWD/tests/cli/one_answer.py" "$answer_busy" sh -c "$acts"'
found 'provider check: nor does it protect' 0 '^0$' '' \
	'pool=$pool preheat_path=$preheat_path python3 -B "$OLDPWD/tests/cli/one_answer.py" "$answer_busy" sh -c "$acts" | grep -c "protect 2 machines"; true'

account='printf "$pool" "{ name: g5, eks: { cluster: c, nodegroup: gpu, region: eu-west-1 } }, { name: t4, aks: { subscription: \"0b1f6471-1bf0-4dda-aec3-cb9272f09590\", resourceGroup: rg, cluster: c, pool: t4 } }" >p.yaml'
found 'provider prove: the questions, nothing answered' 0 '--nodegroup-name gpu' "$account" 'preheat provider check -f p.yaml --prove </dev/null'
found 'provider prove: nothing is written then' 0 'Nothing was answered, and nothing written' "$account" 'preheat provider check -f p.yaml --prove </dev/null'
found 'provider prove: of the group named' 0 '--cluster-name c --nodepool-name t4 --machine-names' "$account" 'preheat provider check -f p.yaml --prove -g t4 </dev/null'
own=${account/'nodegroup: gpu,'/'nodegroup: gpu, autoScalingGroup: gpu-asg,'} tagged=${account/'nodegroup: gpu,'/'nodegroup: gpu, tags: \"pool=chat\",'}
found 'provider prove: of an Auto Scaling group of ones own' 0 "ASG='gpu-asg'" "$own" 'preheat provider check -f p.yaml --prove </dev/null'
found 'provider prove: EKS, which knows nothing of it, is not asked' 0 '^0$' "$own" 'preheat provider check -f p.yaml --prove </dev/null | grep -c "aws eks "; true'
found 'provider prove: of a group by its tags' 0 '1 of 11: Which Auto Scaling group has all of the tags' "$tagged" 'preheat provider check -f p.yaml --prove </dev/null'
found 'provider prove: the answers are kept' 0 '1 of 14 answers are in a.json' "$account" 'printf "arn 123456789012\none\nskip\n" | preheat provider check -f p.yaml --prove --out a.json'
found 'provider prove: without account, subscription and keys' 0 '"answer":"yes","output":"arn:111122223333 REDACTED REDACTED 00000000-0000-0000-0000-000000000000' "$account" \
	'printf "skip\nskip\nskip\narn:123456789012 AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY 0b1f6471-1bf0-4dda-aec3-cb9272f09590\nyes\n" | preheat provider check -f p.yaml --prove >out; cat g5.proof.json'
refused 'provider prove: words that are no answer do not ask for ever' 2 'question auto-scaling-group: 1048576 bytes and no answer among them' "$account" 'yes maybe | preheat provider check -f p.yaml --prove'
refused 'provider prove: nor does one line without an end' 2 'question auto-scaling-group: 1048576 bytes and no answer' "$account" 'preheat provider check -f p.yaml --prove </dev/zero'
found 'provider prove: what was answered before is kept' 0 '"id":"auto-scaling-group".*"answer":"one"' "$account" '{ echo one; yes maybe; } | preheat provider check -f p.yaml --prove >out 2>&1; grep -q "^preheat provider check: 1 answers are in g5.proof.json: question" out && cat g5.proof.json'
found 'provider prove: a word that is no answer is told' 0 'Kept as output. The answer is one of: one several none skip' "$account" 'printf "One\none\n" | preheat provider check -f p.yaml --prove'
found 'provider prove: nor keys within other text' 0 '"output":"Credential=REDACTED/20261127/eu key REDACTED\. and REDACTED\. of 111122223333.*%3A111122223333%3A .*u0022REDACTED' "$account" \
	'{ echo "Credential=AKIAIOSFODNN7EXAMPLE/20261127/eu key wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY. and AKIAIOSFODNN7EXAMPLE. of 1234-5678-9012"; printf "%%3A123456789012%%3A \\\\u0022AKIAIOSFODNN7EXAMPLE\n"; echo one; } | preheat provider check -f p.yaml --prove >out; cat g5.proof.json'
found 'provider prove: a zero byte is a space' 0 '1 of 14 answers' "$account" 'printf "w\0x\none\n" | preheat provider check -f p.yaml --prove'
refused 'provider prove: answers and manifest from one place' 2 'prove: -f - is standard input, where the answers come from; do: name a file' "$account" 'preheat provider check -f - --prove <p.yaml'
refused 'provider prove: several groups' 2 'prove: found 2 times --group; allowed: one' "$account" 'preheat provider check -f p.yaml --prove -g g5 -g t4 </dev/null'
refused 'provider prove: for programs' 2 'prove: found -o json; allowed: none' "$account" 'preheat provider check -f p.yaml --prove -o json </dev/null'
found 'provider prove: without a session token and a private key' 0 '"output":"token REDACTED\\nREDACTED\\n/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/MC_rg_c_westeurope/providers' "$account" \
	'{ echo "token IQoJb3JpZ2luX2VjEBYaCWV1LXdlc3QtMSJHMEUCIQDs7k0aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcd/+Zz=="; echo MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj; echo /subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/MC_rg_c_westeurope/providers/Microsoft.Compute; echo one; } | preheat provider check -f p.yaml --prove >out; cat g5.proof.json'
refused 'provider prove: a file that is there' 2 'a.json: is there already; do: name another file with --out' "$account; echo x >a.json" 'preheat provider check -f p.yaml --prove --out a.json </dev/null'
refused 'provider prove: a provider without questions' 2 'provider simulated, which leaves no question open' 'printf "$pool" "{ name: g5 }" >p.yaml' 'preheat provider check -f p.yaml --prove'

# The file of a whole sitting, as it is kept, and read back. Answers are skipped, typed wrongly, and cut off at the end.
proof=$PWD/tests/cli/proof
said='sed "s/\"version\":.*\"at\":\"[^\"]*\"/\"version\":\"V\",\"at\":\"T\"/"'
prove='preheat provider check -f p.yaml --prove --out a.json'
found 'provider prove: a sitting over EKS' 0 '^same$' "$account" "$prove -g g5 <'$proof/eks.answers' >out; $said a.json | diff '$proof/eks.json' - && echo same"
found 'provider prove: a sitting over AKS' 0 '^same$' "$account" "$prove -g t4 <'$proof/aks.answers' >out; $said a.json | diff '$proof/aks.json' - && echo same"
found 'provider prove: a paste without an answer is told' 0 '^Not kept: what was pasted to question block-schedule, as no answer came behind it' "$account" "$prove -g g5 <'$proof/eks.answers'"
back='here=$PWD; cd "$OLDPWD"; python3 -B tests/cli/proof.py "$here/kept.json"'
found 'provider prove: read back' 0 'kept.json: 11 of 14 questions answered; open: describe-lag, ended-twice, block-schedule' "sed '' '$proof/eks.json' >kept.json" "$back"
found 'provider prove: read back, of a group of ones own' 0 'kept.json: 1 of 11 questions answered; open: suspended-processes' "$own" "printf 'own\n' | preheat provider check -f p.yaml --prove --out kept.json >out; $back"
found 'provider prove: read back, all of it' 0 'kept.json: 10 of 10 questions answered; open: none' "sed '' '$proof/aks.json' >kept.json" "$back"
refused 'provider prove: what the rig does not play' 1 'kept.json: delete-stopped: found both; the rig plays: first-only' "sed s/first-only/both/ '$proof/aks.json' >kept.json" "$back"
refused 'provider prove: cut in two' 2 'kept.json: found no JSON: .*; allowed: a whole file' "sed '5,\$d' '$proof/aks.json' >kept.json" "$back"
refused 'provider prove: a question that is none' 2 'answers.5..id: found "put-limits"; allowed: pool, delete-deallocates' "sed s/put-limit/put-limits/ '$proof/aks.json' >kept.json" "$back"
refused 'provider prove: a question answered twice' 2 'answers.5..id: found "pool"; allowed: each question once' "sed s/put-limit/pool/ '$proof/aks.json' >kept.json" "$back"
refused 'provider prove: an answer that is none' 2 'answers.7..answer: found "perhaps"; allowed: same, different' "sed 's/:.same./:\"perhaps\"/' '$proof/aks.json' >kept.json" "$back"
refused 'provider prove: an account number that a hand put back' 2 'found 1234...; allowed: no account number' "sed s/111122223333/123456789012/ '$proof/eks.json' >kept.json" "$back"
