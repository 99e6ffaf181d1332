#!/usr/bin/env bash
# All checks, in the order in which they fail fastest. `make test` and .ci/run run this.
# Every command names the whole workspace: another selection of packages may select other features of RocksDB's build
# tools, and compile RocksDB anew.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "format"
cargo fmt --all --check

step "house rules"
cargo test --locked --workspace --test tidy

step "clippy"
cargo clippy --locked --workspace --all-targets -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

step "tests, with ${CORTADO_SIM_SEEDS:-200} simulation seeds"
cargo test --locked --workspace

step "what fuzzing began with"
cargo test --locked --workspace --features engine/fuzzing --test log_corpus

step "planted bugs"
cargo test --locked --workspace --features raftstore/planted-bugs --test sim -- planted
