# shellcheck shell=bash
# The components of a rig as processes: what they are called with, starting, health, stopping. Sourced by rig.sh, which
# gives dir (absolute), rooms, say, wished_port and node_grace. Each component has run/NAME.args, .port and .pid in dir.
# shellcheck disable=SC2154

patience=${RIG_PATIENCE:-180} # seconds that a component may take until it is ready

parts_here() {
	local part
	for part in etcd kube-apiserver kube-controller-manager kube-scheduler; do
		[ ! -e "$dir/run/$part.args" ] || echo $part
	done
}

port_of() { cat "$dir/run/$1.port"; }
pid_of() { cat "$dir/run/$1.pid" 2>/dev/null; }

# A number may have gone to another process since: ours has the folder on its command line.
alive() {
	local pid
	pid=$(pid_of "$1") && [ -n "$pid" ] && [ -d "/proc/$pid" ] &&
		tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$dir/"
}

any_alive() {
	local part
	for part in $(parts_here); do
		! alive "$part" || return 0
	done
	return 1
}

all_well() {
	local part found=
	for part in $(parts_here); do
		alive "$part" && is_well "$part" || return 1
		found=yes
	done
	[ -n "$found" ]
}

is_well() {
	local port
	port=$(port_of "$1")
	case $1 in
	etcd) asks "http://127.0.0.1:$port/health" ;;
	kube-apiserver) asks --cacert "$dir/pki/ca.crt" "https://127.0.0.1:$port/readyz" ;;
	*) asks --insecure "https://127.0.0.1:$port/healthz" ;;
	esac
}

asks() { curl -sf --max-time 5 -o /dev/null "$@"; }

# free_ports: the first of ten ports that nobody listens on. Rigs that start at once have different process numbers.
free_ports() {
	local base=$((20000 + $$ % 1200 * 10)) tries port
	for tries in {1..1200}; do
		for port in $(seq $base $((base + 9))) none; do
			if [ "$port" = none ]; then
				echo $base
				return
			fi
			! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
		done
		base=$((20000 + ($$ + tries) % 1200 * 10))
	done
	say 'no ten free ports in a row between 20000 and 32000'
	return 1
}

# arguments NAME PORT ARGUMENT...: what NAME is started with, now and when it is started again
arguments() {
	local part=$1
	echo "$2" >"$dir/run/$part.port"
	shift 2
	printf '%s\0' "$@" >"$dir/run/$part.args"
}

# prepare PROGRAMS: everything that the components need on disk
prepare() {
	local programs=$1 first api
	mkdir -p "$dir/run" "$dir/log" "$dir/pki" || return 1
	rm -f "$dir"/log/* "$dir"/audit*.log # of the one before
	ln -sfn "$programs" "$dir/bin"
	first=$(free_ports) || return 1
	api=${wished_port:-$((first + 2))}
	(cd "$dir/pki" && { [ -e service-accounts.pub ] || certificates; }) ||
		{ say "openssl: $(cat "$dir/pki/openssl.log")"; exit 3; }
	local server=https://127.0.0.1:$api user
	(
		umask 077
		certificate_kubeconfig "$server" "$dir/pki" admin >"$dir/kubeconfig"
		for user in kube-scheduler kube-controller-manager; do
			certificate_kubeconfig "$server" "$dir/pki" $user >"$dir/pki/$user.kubeconfig"
		done
	)
	etcd_arguments "$first" $((first + 1))
	apiserver_arguments "$api" "http://127.0.0.1:$first"
	[ ! -e "$dir/bin/kube-controller-manager" ] || controllers_arguments $((first + 3))
	[ ! -e "$dir/bin/kube-scheduler" ] || scheduler_arguments $((first + 4))
}

etcd_arguments() {
	local clients=http://127.0.0.1:$1 peers=http://127.0.0.1:$2
	arguments etcd "$1" --name rig --data-dir "$dir/etcd" --unsafe-no-fsync --quota-backend-bytes 4294967296 \
		--listen-client-urls "$clients" --advertise-client-urls "$clients" --listen-peer-urls "$peers" \
		--initial-advertise-peer-urls "$peers" --initial-cluster "rig=$peers" --log-level warn
}

apiserver_arguments() {
	local pki=$dir/pki without=()
	cat >"$dir/audit-policy.yaml" <<-'END'
		apiVersion: audit.k8s.io/v1
		kind: Policy
		omitStages: [RequestReceived]
		rules:
		- level: Metadata
	END
	# Without the controllers nobody makes the service account of a namespace, or takes a new node's taint off.
	[ -e "$dir/bin/kube-controller-manager" ] || without=(--disable-admission-plugins "ServiceAccount,TaintNodesByCondition")
	arguments kube-apiserver "$1" --etcd-servers "$2" --bind-address 127.0.0.1 --advertise-address 127.0.0.1 \
		--secure-port "$1" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
		--client-ca-file "$pki/ca.crt" --service-account-issuer https://kubernetes.default.svc.cluster.local \
		--service-account-key-file "$pki/service-accounts.pub" --service-account-signing-key-file "$pki/service-accounts.key" \
		--authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 --endpoint-reconciler-type none \
		--allow-privileged --audit-policy-file "$dir/audit-policy.yaml" --audit-log-path "$dir/audit.log" \
		--audit-log-maxsize 8192 ${without[@]+"${without[@]}"}
}

controllers_arguments() {
	local pki=$dir/pki own=$dir/pki/kube-controller-manager.kubeconfig
	arguments kube-controller-manager "$1" --kubeconfig "$own" --authentication-kubeconfig "$own" --authentication-skip-lookup \
		--authorization-kubeconfig "$own" --bind-address 127.0.0.1 --secure-port "$1" --cert-dir "$dir/run" \
		--leader-elect=false --use-service-account-credentials --root-ca-file "$pki/ca.crt" \
		--service-account-private-key-file "$pki/service-accounts.key" --kube-api-qps 200 --kube-api-burst 400 \
		--node-monitor-grace-period "$node_grace" --node-monitor-period 2s --controllers "$(controllers)"
}

# What a cluster does to nodes, workloads, budgets and quotas; nothing of addresses and certificates, and of volumes
# only that claims can be deleted.
controllers() {
	local name list=''
	for name in serviceaccount serviceaccount-token namespace root-ca-certificate-publisher clusterrole-aggregation \
		node-lifecycle taint-eviction pod-garbage-collector garbage-collector resourcequota disruption \
		deployment replicaset statefulset daemonset job cronjob horizontal-pod-autoscaler ttl-after-finished \
		persistentvolumeclaim-protection resourceclaim; do
		list+=,$name-controller
	done
	echo "${list#,}"
}

# Back-off of unschedulable pods is short, since the machines' time passes faster than the scheduler's.
scheduler_arguments() {
	local own=$dir/pki/kube-scheduler.kubeconfig
	cat >"$dir/scheduler.yaml" <<-END
		apiVersion: kubescheduler.config.k8s.io/v1
		kind: KubeSchedulerConfiguration
		clientConnection: { kubeconfig: "$own", qps: 200, burst: 400 }
		leaderElection: { leaderElect: false }
		podInitialBackoffSeconds: 1
		podMaxBackoffSeconds: 2
	END
	arguments kube-scheduler "$1" --config "$dir/scheduler.yaml" --authentication-kubeconfig "$own" --authentication-skip-lookup \
		--authorization-kubeconfig "$own" --bind-address 127.0.0.1 --secure-port "$1" --cert-dir "$dir/run"
}

start() {
	local part=$1 words
	mapfile -d '' words <"$dir/run/$part.args"
	setsid "$dir/bin/$part" "${words[@]}" >>"$dir/log/$part.log" 2>&1 </dev/null 7>&- 8>&- 9>&- &
	echo $! >"$dir/run/$part.pid"
}

# await NAME: until it is well; when it ends before or takes too long, its last words, and exit 3
await() {
	local part=$1 start=$SECONDS told=$SECONDS
	until is_well "$part"; do
		if ! kill -0 "$(pid_of "$part")" 2>/dev/null; then
			failed "$part" 'ended by itself'
		elif [ $((SECONDS - start)) -ge "$patience" ]; then
			failed "$part" "was not ready within $patience s (RIG_PATIENCE)"
		elif [ $((SECONDS - told)) -ge 10 ]; then
			told=$SECONDS
			say "waiting for $part: $((SECONDS - start)) s"
		fi
		sleep 0.2
	done
	say "$part: ready after $((SECONDS - start)) s, port $(port_of "$part")"
}

failed() {
	say "$1 $2; the end of $dir/log/$1.log:"
	tail -n 15 "$dir/log/$1.log" | cut -c 1-400 | sed 's/^/  /' >&2
	exit 3
}

# What a pod in the namespace default needs before it can be made.
first_objects() {
	local start=$SECONDS kubectl=$dir/bin/kubectl
	[ -e "$dir/bin/kube-controller-manager" ] || return 0
	[ -x "$kubectl" ] || kubectl=kubectl
	until "$kubectl" --kubeconfig "$dir/kubeconfig" get serviceaccount default >/dev/null 2>&1; do
		[ $((SECONDS - start)) -lt "$patience" ] || failed kube-controller-manager "made no service account within $patience s"
		sleep 0.2
	done
}

kill_part() {
	local pid
	alive "$1" || return 0
	pid=$(pid_of "$1")
	kill -KILL "$pid"
	gone "$pid" 30
}

# stop_part NAME: asks it to end, and makes it after ten seconds
stop_part() {
	local pid
	alive "$1" || return 0
	pid=$(pid_of "$1")
	kill -TERM "$pid" 2>/dev/null || true
	gone "$pid" 10 || kill_part "$1"
}

# A zombie whose other threads have not ended yet holds its sockets still.
is_over() {
	local threads=("/proc/$1/task"/*)
	[ ! -d "/proc/$1" ] || { [ ${#threads[@]} -le 1 ] && grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }
}

# gone PID SECONDS: waits until the process is no more
gone() {
	local start=$SECONDS
	until is_over "$1"; do
		[ $((SECONDS - start)) -lt "$2" ] || return 1
		sleep 0.1
	done
}
