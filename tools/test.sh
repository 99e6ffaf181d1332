#!/usr/bin/env bash
# All checks, in the order in which they fail fastest. `make test` and .ci/run run this.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
step() { printf '\n== %s (after %d s)\n' "$*" "$((SECONDS - started))"; }

# No test binary runs longer than this, in seconds; more seeds take longer. libtest has no timeout of its own, but names
# a test that runs for more than a minute. `tests/cluster/exclusive.rs` bounds each test that starts nodes.
export TEST_LIMIT=${CORTADO_TEST_TIMEOUT:-$((900 + ${CORTADO_SIM_SEEDS:-200} / 2))}
host=$(rustc -vV | sed -n 's/^host: //p')
run_tests() { cargo --config "target.$host.runner = ['$PWD/tools/run-test.sh']" test --locked "$@"; }

step "format"
cargo fmt --all --check

step "house rules"
run_tests -p tidy

step "clippy"
lints=$(tools/lints.sh code)
read -ra lints <<<"$lints"
cargo clippy --locked --workspace --all-targets --all-features -- "${lints[@]}"

step "documentation"
docs=$(tools/lints.sh docs)
RUSTDOCFLAGS=$docs cargo doc --locked --no-deps --document-private-items

# The first features add the entry points of the fuzz targets, whose corpus is replayed. All is built before a test
# runs: a compiler's writes would slow the disk under the clusters.
tests=(--features engine/fuzzing,sql/fuzzing)
bugs=engine/fuzzing,raftstore/planted-bugs,kv/planted-bugs,tso/planted-bugs,txn/planted-bugs,stack/planted-bugs
planted=(--features "$bugs" --test sim --test stack --test kv --test tso --test txn)
step "build of the tests"
run_tests "${tests[@]}" --no-run
run_tests "${planted[@]}" --no-run

# Ends what still runs, and shows how far it came.
end_aside() {
    if [[ -e $TEST_ASIDE/pid && ! -e $TEST_ASIDE/status ]]; then
        pkill --parent "$(cat "$TEST_ASIDE/pid")" || true
        cat "$TEST_ASIDE/output" || true
    fi
    rm -rf "$TEST_ASIDE"
}
step "tests, with ${CORTADO_SIM_SEEDS:-200} simulation seeds"
TEST_ASIDE=$(mktemp -d)
export TEST_ASIDE
trap end_aside EXIT
run_tests "${tests[@]}"

step "planted bugs"
run_tests "${planted[@]}" -- planted

step "clusters of processes, which ran meanwhile"
deadline=$((SECONDS + TEST_LIMIT + 60))
until [[ -e $TEST_ASIDE/status ]] || ((SECONDS > deadline)); do sleep 0.2; done
status=$(cat "$TEST_ASIDE/status")
cat "$TEST_ASIDE/output"
((status == 0))

# They cut the power of real file systems. Among the tests above they run only as root.
if ((EUID != 0)); then
    step "power cuts"
    if sudo -n true 2>/dev/null; then
        export TEST_SUDO=1
        run_tests -p engine --test log_power_loss
        run_tests --test cluster power::
    else
        echo "NOT RUN: the tests of power cuts need root (log_power_loss, cluster power::)" >&2
    fi
fi
step "done"
