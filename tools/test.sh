#!/usr/bin/env bash
# All checks, in the order in which they fail fastest. `make test` and .ci/run run this.
# Every command that runs tests selects the workspace's default members: another selection of packages may select other features of
# their dependencies, and compile those anew. `benches/peers` is not among them, and no test compiles raft-engine.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "format"
cargo fmt --all --check

step "house rules"
cargo test --locked --test tidy

step "clippy"
cargo clippy --locked --workspace --all-targets -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

step "tests, with ${CORTADO_SIM_SEEDS:-200} simulation seeds"
cargo test --locked

step "what fuzzing began with"
cargo test --locked --features engine/fuzzing --test log_corpus

step "planted bugs"
cargo test --locked --features raftstore/planted-bugs --test sim -- planted
