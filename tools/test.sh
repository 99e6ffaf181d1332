#!/usr/bin/env bash
# All checks, in the order in which they fail fastest. `make test` and .ci/run run this.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
step() { printf '\n== %s (after %d s)\n' "$*" "$((SECONDS - started))"; }

# No test binary runs longer than this, in seconds; more seeds take longer. libtest has no timeout of its own, but names
# a test that runs for more than a minute. `tests/cluster/exclusive.rs` bounds each test that starts nodes.
export TEST_LIMIT=${CORTADO_TEST_TIMEOUT:-$((900 + ${CORTADO_SIM_SEEDS:-200} / 2))}
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=$PWD/tools/run-test.sh"

step "format"
cargo fmt --all --check

step "house rules"
cargo test --locked -p tidy

step "clippy"
lints=$(tools/lints.sh code)
read -ra lints <<<"$lints"
cargo clippy --locked --workspace --all-targets --all-features -- "${lints[@]}"

step "documentation"
docs=$(tools/lints.sh docs)
RUSTDOCFLAGS=$docs cargo doc --locked --no-deps --document-private-items

# The first feature adds the entry points of the fuzz targets, whose corpus is replayed. All is built before a test
# runs: a compiler's writes would slow the disk under the clusters.
tests=(--locked --features engine/fuzzing)
bugs=engine/fuzzing,raftstore/planted-bugs,kv/planted-bugs,tso/planted-bugs,txn/planted-bugs
planted=(--locked --features "$bugs" --test sim --test kv --test tso --test txn)
step "build of the tests"
cargo test "${tests[@]}" --no-run
cargo test "${planted[@]}" --no-run

step "tests, with ${CORTADO_SIM_SEEDS:-200} simulation seeds"
aside=$(mktemp -d)
trap 'pkill --parent "$(cat "$aside/pid" 2>/dev/null)" 2>/dev/null; rm -rf "$aside"' EXIT
TEST_ASIDE=$aside cargo test "${tests[@]}"

step "planted bugs"
TEST_ASIDE=$aside cargo test "${planted[@]}" -- planted

step "clusters of processes, which ran meanwhile"
tail --pid="$(cat "$aside/pid")" -f /dev/null
cat "$aside/output"
[[ $(cat "$aside/status") == 0 ]]

# They cut the power of real file systems. Among the tests above they run only as root.
if ((EUID != 0)); then
    step "power cuts"
    if sudo -n true 2>/dev/null; then
        export "CARGO_TARGET_${host}_RUNNER=sudo -n -E $PWD/tools/run-test.sh"
        cargo test --locked -p engine --test log_power_loss
        cargo test --locked --test cluster power::
    else
        echo "NOT RUN: the tests of power cuts need root (log_power_loss, cluster power::)" >&2
    fi
fi
step "done"
