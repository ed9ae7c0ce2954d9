# shellcheck shell=bash
# Everything that CI asks. Sourced by ./dev, which gives builds, c_files, run_ctest and quietly.

passed=0
failed=()

# step NAME COMMAND...: goes on after a failure, so that one run names all of them.
step() {
	local name=$1 start=$SECONDS status
	shift
	printf '== %s\n' "$name"
	set +e # in a condition bash would forget set -e inside, too
	(set -e; "$@") 2>&1 | tee build/step.log
	status=${PIPESTATUS[0]}
	set -e
	if [ "$status" -eq 0 ]; then
		passed=$((passed + 1))
		printf '   ok, %d s\n' $((SECONDS - start))
	else
		failed+=("$name")
		printf '   FAILED: %s\n' "$name"
		{ printf '== failed: %s\n' "$name"; tail -n 20 build/step.log; } >>build/failed.log
	fi
}

shell_scripts() {
	git ls-files -z --cached --others --exclude-standard | xargs -0 grep -d skip -lE '^(#!.*(ba)?sh$|# shellcheck shell)' |
		xargs shellcheck -x
}

formatted() {
	c_files | xargs -0 -r clang-format --dry-run -Werror
}

# Tests repeat themselves by design and are long tables: the rules are for the program.
linted() {
	git ls-files -z --cached --others --exclude-standard -- 'base/*.c' 'controller/*.c' 'providers/*.c' 'signals/*.c' 'state/*.c' |
		xargs -0 -r tests/lint.sh build/clang
}

shared_is_there() {
	[ "${CI:-}" != true ] || [ -d "${PREHEAT_SHARED:-../shared}" ] ||
		{ echo "CI=true and no ${PREHEAT_SHARED:-../shared}: the tests on recorded traffic would be skipped"; return 1; }
}

# Also says no to what only skips where it is run by hand: with CI=true the rig has to be there.
rig_is_there() {
	local status=0
	{ rig_ahead && owners_ahead; } || status=$?
	[ $status -eq 77 ] && [ "${CI:-}" != true ] || return $status
}

# Our own few files of Go, which drive the rig.
go_files() {
	local unformatted module
	if ! command -v go >/dev/null; then
		echo 'no Go: not checked'
		[ "${CI:-}" != true ]
		return
	fi
	unformatted=$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -l)
	[ -z "$unformatted" ] || { printf 'not as gofmt has it: %s\n' "$unformatted"; return 1; }
	# A module without files of its own only pins a tool.
	for module in $(git ls-files --cached --others --exclude-standard -- '*.go' | xargs -n 1 dirname | sort -u); do
		# With the flags of the build, whose results are reused.
		(cd "$module" && CGO_ENABLED=0 GOTOOLCHAIN=${GOTOOLCHAIN:-local} go vet -trimpath ./...) || return 1
	done
}

# tests_of PART CTEST_OPTION...: those of the build with sanitizers, in the background
tests_of() {
	local part=$1
	shift
	rm -f "build/dev/$part.xml"
	ctest --preset dev "$@" --no-tests=error --output-junit "$PWD/build/dev/$part.xml" \
		--test-output-size-passed 10000000 >"build/dev/$part.log" 2>&1 &
}

# Those with the label live mostly wait, with clocks that may be faster than ours: they come first to the processor, and there
# is one more of them than cores, of which as many may hurry their clock. Beside them, in what they leave of it, those that
# compute; and in what these leave all that is no test.
begin_tests() {
	local cores
	cores=$(nproc)
	printf '{"version": {"major": 1, "minor": 0}, "local": [{"clocks": [{"id": "host", "slots": %d}]}]}\n' "$cores" \
		>build/dev/clocks.json
	tests_of live -L live --parallel $((cores + 1)) --resource-spec-file "$PWD/build/dev/clocks.json"
	live=$! computing=
	trap 'kill "$live" $computing 2>/dev/null || true' EXIT
	renice -n 10 -p $$ >/dev/null 2>&1 || true
	tests_of computing -LE live --parallel "$cores"
	computing=$!
	chrt --idle --pid 0 $$ 2>/dev/null || renice -n 19 -p $$ >/dev/null
}

# Those with the label live (a control plane of their own, a clock that is faster than ours) that failed get a second attempt,
# one by one, when nothing else runs: what was only the load of a host passes, a defect fails again. The count names them.
# Returns whether all that had failed passes.
second_attempts() {
	local live all names status=0
	live=$(ctest --preset dev -N -L live | sed -n 's/^ *Test *#[0-9]*: //p')
	all=$(sed -n 's/.*<testcase name="\([^"]*\)".* status="fail".*/\1/p' build/dev/results.xml)
	names=$(grep -xF -- "$live" <<<"$all" | paste -sd '|')
	[ -n "$names" ] || return 1
	chrt --other --pid 0 $$ 2>/dev/null || true
	echo '== second attempts'
	ctest --preset dev -R "^($names)\$" --no-tests=error --output-junit "$PWD/build/dev/second.xml" \
		--test-output-size-passed 10000000 || status=1
	[ $status -eq 0 ] && ! grep -qvxF -- "$live" <<<"$all"
}

# wait_for PART PID: 8 says that tests failed; after any other status nobody knows which ran.
wait_for() {
	local start=$SECONDS status=0
	printf '== tests: %s\n' "$1"
	wait "$2" || status=$?
	cat "build/dev/$1.log"
	[ "$status" -eq 0 ] || [ "$tests_status" -gt 8 ] || tests_status=$status
	if [ "$status" -ne 0 ] && [ "$status" -ne 8 ] || [ ! -s "build/dev/$1.xml" ]; then
		printf 'the tests were not all run: ctest ended with %d\n' "$status"
		tests_status=99
		touch "build/dev/$1.xml"
	fi
	printf '   waited for, %d s\n\n' $((SECONDS - start))
}

# The count is the last line.
end_tests() {
	local status=$tests_status
	trap - EXIT
	[ ! -e build/failed.log ] || cat build/failed.log
	rm -f build/dev/second.xml
	cat build/dev/{computing,live}.xml >build/dev/results.xml
	[ "$status" -ne 8 ] || ! second_attempts || status=0
	tests/count.sh build/dev/results.xml "$passed" "${#failed[@]}" build/dev/second.xml || status=1
	[ "$status" -eq 0 ] || failed+=('tests')
}

check_all() {
	mkdir -p build
	rm -f build/failed.log
	step 'recorded traffic is there' shared_is_there
	step "the rig's servers are there" rig_is_there
	step 'release build' builds release preheat
	step 'build with gcc, warnings are errors' builds dev
	begin_tests
	step 'Go of the rig' go_files
	step 'shell scripts' shell_scripts
	step 'format' formatted
	step 'build with clang, warnings are errors' builds clang
	step 'lint' linted
	step 'worlds without sanitizers' builds release world_nemesis_test world_drain_test
	# 200 in all. More of them, and those of other seeds: ./dev nemesis.
	step 'worlds with a nemesis' tests/nemesis.sh build/release/world_nemesis_test 100
	step 'worlds whose owners act' tests/nemesis.sh build/release/world_nemesis_test 100 -w
	step 'a drain interrupted at every step' build/release/world_drain_test
	step 'gcc and clang decide alike' tests/check_compilers.sh build/release/preheat build/clang/preheat
	tests_status=0
	wait_for computing "$computing"
	# From one seed: what a change breaks is told by its own run. New inputs are looked for by ./dev fuzz. Beside what computes
	# it would hardly get to run in its few seconds; the scenarios leave it enough.
	step 'brief fuzzing' tests/run_fuzz.sh build/clang 3 1
	wait_for live "$live"
	end_tests
	[ ${#failed[@]} -eq 0 ] || exit 1
}
