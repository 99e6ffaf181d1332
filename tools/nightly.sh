#!/usr/bin/env bash
# Runs the tests that take too long for every change, those that fail fastest first; `make nightly` runs this.
# docs/testing.md describes how to reproduce a failure. A failure does not stop the run; it makes the exit code 1.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
step() {
    local name=$1
    shift
    printf '\n== %s\n' "$name"
    "$@" || failed+=("$name")
}

fuzz() { # CRATE TARGET ARGUMENTS
    # Link-time optimisation loses the fuzzer's coverage counters.
    (cd "$1" && shift && CARGO_PROFILE_RELEASE_LTO=off \
        cargo +nightly fuzz run "$@" -max_total_time="$FUZZ_SECONDS" -timeout=10)
}

: "${SEEDS:=10000}" "${CUTS:=100}" "${FUZZ_SECONDS:=600}"

step "the log, $SEEDS seeds" env CORTADO_LOG_SEEDS="$SEEDS" cargo test --locked -p engine --test log crash::any_crash
step "the log, 3000 crashes at each change" \
    env CORTADO_LOG_CRASHES=3000 cargo test --locked -p engine --test log matrix::
step "the log, $CUTS power cuts" \
    env CORTADO_POWER_CUTS="$CUTS" cargo test --locked -p engine --test log_power_loss -- --nocapture
step "a node, $CUTS power cuts" \
    env CORTADO_POWER_CUTS="$CUTS" cargo test --locked --test cluster power:: -- --nocapture
step "Raft, $SEEDS seeds" env CORTADO_SIM_SEEDS="$SEEDS" cargo test --locked -p raftstore --test sim -- --nocapture
step "the whole stack, $SEEDS seeds" \
    env CORTADO_STACK_SEEDS="$SEEDS" cargo test --locked -p stack --test stack -- --nocapture
step "leases on the catalog, $((SEEDS / 10)) seeds" \
    env CORTADO_CATALOG_SEEDS="$((SEEDS / 10))" cargo test --locked -p sql --lib history_tests:: -- --nocapture
step "Raft, planted bugs among ordinary seeds" env CORTADO_SIM_ORDINARY=2000 \
    cargo test --locked -p raftstore --features planted-bugs --test sim planted:: -- --nocapture
step "planted bugs that no run can show" cargo test --locked -p raftstore -p kv \
    --features raftstore/planted-bugs,kv/planted-bugs --lib planted_
step "the whole stack, planted bugs among ordinary seeds" env CORTADO_STACK_ORDINARY=2000 \
    cargo test --locked -p stack --features planted-bugs --test stack planted:: -- --nocapture
step "fuzzing: batch_decode, $FUZZ_SECONDS s" fuzz engine batch_decode -- -malloc_limit_mb=64
step "fuzzing: recover, $FUZZ_SECONDS s" fuzz engine recover -- -max_len=8192 -malloc_limit_mb=64
step "statements, $SEEDS variations of each" env CORTADO_STATEMENT_SEEDS="$SEEDS" \
    cargo test --locked -p sql --features fuzzing --test corpus variations
step "fuzzing: connection, $FUZZ_SECONDS s" fuzz sql connection -- -rss_limit_mb=1024
step "fuzzing: statement, $FUZZ_SECONDS s" fuzz sql statement -- -rss_limit_mb=1024

if ((${#failed[@]} > 0)); then
    printf '\nfailed:\n'
    printf '  %s\n' "${failed[@]}"
    exit 1
fi
