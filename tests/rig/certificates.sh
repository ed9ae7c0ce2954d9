# shellcheck shell=bash
# Keys, certificates and kubeconfigs of a rig, made on the spot. Sourced by rig.sh.

# certificate NAME SUBJECT EXTENSIONS: NAME.key and NAME.crt in the current folder, signed by the rig's own authority
certificate() {
	local name=$1
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$name.key" -subj "$2" \
		-out "$name.csr" 2>openssl.log || return 1
	openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 \
		-extfile <(printf '%s\n' "$3") -out "$name.crt" 2>openssl.log || return 1
	rm "$name.csr"
}

authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -subj /CN=rig -days 3650 \
		-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature \
		-out ca.crt 2>openssl.log
}

certificates() {
	local names='DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc'
	names+=',DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:10.0.0.1'
	authority || return 1
	certificate apiserver /CN=kube-apiserver "extendedKeyUsage=serverAuth
subjectAltName=$names" || return 1
	certificate admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth || return 1
	certificate kube-scheduler /CN=system:kube-scheduler extendedKeyUsage=clientAuth || return 1
	certificate kube-controller-manager /CN=system:kube-controller-manager extendedKeyUsage=clientAuth || return 1
	openssl genrsa -out service-accounts.key 2048 2>openssl.log || return 1
	openssl rsa -in service-accounts.key -pubout -out service-accounts.pub 2>openssl.log || return 1
	rm openssl.log
}

# kubeconfig_text SERVER AUTHORITY_FILE USER CREDENTIALS: credentials are lines of YAML
kubeconfig_text() {
	cat <<-END
		apiVersion: v1
		kind: Config
		clusters:
		- name: rig
		  cluster:
		    server: $1
		    certificate-authority-data: $(base64 -w0 "$2")
		users:
		- name: $3
		  user:
		$4
		contexts:
		- name: rig
		  context: { cluster: rig, user: "$3" }
		current-context: rig
	END
}

# certificate_kubeconfig SERVER FOLDER USER: one that proves itself with FOLDER/USER.crt
certificate_kubeconfig() {
	kubeconfig_text "$1" "$2/ca.crt" "$3" "    client-certificate-data: $(base64 -w0 "$2/$3.crt")
    client-key-data: $(base64 -w0 "$2/$3.key")"
}
