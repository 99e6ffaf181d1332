# The two commands of the README: `make demo` and `make test`. Both install what is missing first.

.PHONY: demo test setup build seeds nightly bench bench-peers

# Starts three nodes on this machine and prints how to talk to them. Cargo knows where it builds, and becomes the program: Ctrl-C reaches it.
demo: setup
	@cargo run --release --locked --bin cortado -- demo

# Everything that must hold before a change lands: the same as .ci/run.
test:
	@tools/setup.sh test
	@tools/test.sh

# The release binary: target/release/cortado, unless CARGO_TARGET_DIR says otherwise.
build: setup
	@cargo build --release --locked --bin cortado

# What cannot come from crates.io: a C++ compiler, libclang for RocksDB's bindings, a fast linker; and RocksDB itself, compiled once.
setup:
	@tools/setup.sh

# More seeds of the Raft simulation than the tests run: make seeds SEEDS=10000
SEEDS ?= 10000
seeds: setup
	@CORTADO_SIM_SEEDS=$(SEEDS) cargo test --locked -p raftstore --test sim -- --nocapture

# What takes too long for every change: seeds of the log and of Raft, real power cuts (as root: it fails where power cannot be cut), and fuzzing, for so
# many seconds a target (needs a nightly compiler and cargo-fuzz): make nightly SEEDS=10000 CUTS=100 FUZZ_SECONDS=600
CUTS ?= 100
FUZZ_SECONDS ?= 600
nightly: setup
	@SEEDS=$(SEEDS) CUTS=$(CUTS) FUZZ_SECONDS=$(FUZZ_SECONDS) tools/nightly.sh

# Layer benchmarks, and whole systems side by side (docs/benchmarks.md). The latter needs PostgreSQL 15's server programs.
bench: setup
	@cargo bench --locked --bench store --bench log --bench mvcc --bench commit --bench codec --bench system

# The log beside raft-engine and RocksDB: about half an hour, 20 GB of space. Options: make bench-peers ARGS="--only W2"
bench-peers: setup
	@cargo bench --locked -p peers -- $(ARGS)
