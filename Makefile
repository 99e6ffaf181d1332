# The two commands of the README: `make demo` and `make test`. Both install what is missing first.

.PHONY: demo test differential drivers clients setup build seeds stack nightly bench bench-system bench-tpcb \
	bench-distance bench-expensive bench-hot bench-tail bench-gc bench-peers soak

# Starts three nodes on this machine and prints how to connect. `cargo run` replaces itself with the program, so Ctrl-C
# reaches it, and it knows the target folder.
demo: setup
	@cargo run --release --locked --bin cortado -- demo

# All checks that a change must pass: the same as .ci/run.
test:
	@tools/setup.sh test
	@tools/test.sh

# The driver tests (tests/drivers/README.md), on a single node that is started for them. CORTADO names its binary, or
# ARGS a running server and the drivers: make drivers ARGS="--server 127.0.0.1:5433 pgx psycopg3"
drivers:
	@tools/setup.sh drivers
	@tools/drivers.py $(ARGS)

# Generated statements on Cortado and on PostgreSQL 15, which are started for it (tests/differential/README.md). CORTADO
# names the binary. ARGS are options of the runner: make differential ARGS="--seed 7 --count 5000"
differential:
	@tools/setup.sh differential
	@tools/differential.py $(or $(ARGS),--count 100000)

# sysbench, pgbench, go-ycsb and go-tpc, unmodified, on a single node that is started for them: 10 minutes. Any error
# beyond 40001, 40P01 and 23505 fails. ARGS as above: make clients ARGS="--seconds 10 sysbench"
clients:
	@tools/setup.sh clients
	@tools/clients.py $(ARGS)

# The release binary: target/release/cortado, unless CARGO_TARGET_DIR says otherwise.
build: setup
	@cargo build --release --locked --bin cortado

# Installs what crates.io does not provide: a C++ compiler, libclang for RocksDB's bindings, a fast linker. Compiles
# RocksDB once.
setup:
	@tools/setup.sh

# Runs more seeds of the Raft simulation than the tests do: make seeds SEEDS=10000
SEEDS ?= 10000
seeds: setup
	@CORTADO_SIM_SEEDS=$(SEEDS) cargo test --locked -p raftstore --test sim -- --nocapture

# Runs more seeds of the whole stack's simulation, on all cores: make stack SEEDS=10000
stack: setup
	@CORTADO_STACK_SEEDS=$(SEEDS) cargo test --locked -p stack --test stack seeds -- --nocapture

# Runs what takes too long for every change: seeds of the log, of Raft and of the whole stack, real power cuts, fuzzing
# for FUZZ_SECONDS per target. Power cuts need root, and fail where the power cannot be cut. Fuzzing needs a nightly
# compiler and cargo-fuzz.
#   make nightly SEEDS=10000 CUTS=100 FUZZ_SECONDS=600
CUTS ?= 100
FUZZ_SECONDS ?= 600
nightly: setup
	@SEEDS=$(SEEDS) CUTS=$(CUTS) FUZZ_SECONDS=$(FUZZ_SECONDS) tools/nightly.sh

# Whole systems beside PostgreSQL 15 with two synchronous standbys: the scripts of sysbench with 1, 16 and 64 clients,
# and which errors reach them.
# Needs postgresql-15 and sysbench. ARGS replace the options: make bench-system ARGS="--seconds 4 --clients 16"
SYSTEM := --seconds 4 --rounds 3 --clients 1,16,64 --driver sysbench --sqlstates \
	--workload point_select,read_only,read_write,update_non_index,insert,delete
bench-system: setup
	@cargo bench --locked --bench system -- $(or $(ARGS),$(SYSTEM))

# pgbench's TPC-B-like script beside PostgreSQL 15 with two synchronous standbys: scale 10, 16 clients, each protocol.
# Needs postgresql-15. ARGS replace the options: make bench-tpcb ARGS="--seconds 3 --rounds 1 --scale 1"
bench-tpcb: setup
	@cargo bench --locked --bench tpcb -- $(or $(ARGS),--seconds 10 --rounds 3)

# Reads of one region by clients at all nodes, each of which has 0.4 cores: at the leader only, and at all replicas.
# 8 minutes; needs to be root, for control groups. Writes the table hot-table.txt and the chart docs/hot.svg. ARGS
# replace the options: make bench-hot ARGS="--seconds 3 --rounds 1 --workload points"
HOT = --svg $(CURDIR)/docs/hot.svg --markdown $(CURDIR)/hot-table.txt
bench-hot: setup
	@cargo bench --locked --bench hot -- $(or $(ARGS),$(HOT))

# The tail of read latency while a follower stalls, with and without hedged reads: about 10 minutes. Writes the table
# tail-table.txt and the chart docs/tail.svg. ARGS replace the options: make bench-tail ARGS="--seconds 5 --rounds 1"
TAIL = --svg $(CURDIR)/docs/tail.svg --markdown $(CURDIR)/tail-table.txt
bench-tail: setup
	@cargo bench --locked --bench tail -- $(or $(ARGS),$(TAIL))

# What a client that scans 20,000 rows of 1 to 4 KB in a loop costs 100 readers and 20 writers at half of the capacity.
# Writes the table expensive-table.txt and the chart docs/expensive.svg. ARGS replace the options, for example for
# settings of every connection:
#   make bench-expensive ARGS='--gateway other --set "cortado.replica_read = closest"'
EXPENSIVE = --svg $(CURDIR)/docs/expensive.svg --markdown $(CURDIR)/expensive-table.txt
bench-expensive: setup
	@cargo bench --locked --bench expensive -- $(or $(ARGS),$(EXPENSIVE))

# Reads in a region 28 ms away over 297 Mbit/s, by each way to read, and without a distance: 15 minutes. A full run
# writes docs/distance.json, the chart docs/distance.svg and distance-table.txt, the table for docs/benchmarks.md. ARGS
# replace the options: make bench-distance ARGS="--seconds 1 --keys 10,1000"
DISTANCE = --json $(CURDIR)/docs/distance.json --svg $(CURDIR)/docs/distance.svg \
	--markdown $(CURDIR)/distance-table.txt
bench-distance: setup
	@cargo bench --locked --bench distance -- $(or $(ARGS),$(DISTANCE))

# Space and reads after a million updates of ten thousand rows, with and without garbage collection: a minute. ARGS
# replace the options: make bench-gc ARGS="--rows 100 --updates 100000"
bench-gc: setup
	@cargo bench --locked --bench gc -- $(ARGS)

# Layer benchmarks, and whole systems side by side (docs/benchmarks.md). Whole systems need PostgreSQL 15's servers.
bench: setup
	@cargo bench --locked --bench store --bench log --bench mvcc --bench commit --bench codec --bench system \
		--bench scan --bench failover --bench expensive

# Reads at the replicas of three real nodes, with every setting and while nodes are paused, each compared with the same
# read on the leader: prints samples and differences. A million samples take about half an hour on two cores.
#   make soak SAMPLES=10000
SAMPLES ?= 1000000
soak: setup
	@cargo bench --locked --bench soak -- $(or $(ARGS),--samples $(SAMPLES))

# The log beside raft-engine and RocksDB: 15 to 35 minutes, 20 GB of space. A full run writes docs/peers.json, the chart
# docs/peers.svg and peers-table.txt, the table for docs/benchmarks.md.
# ARGS are options of the benchmark in place of that: make bench-peers ARGS="--only W2"
PEERS = --json=$(CURDIR)/docs/peers.json --svg $(CURDIR)/docs/peers.svg --markdown $(CURDIR)/peers-table.txt
bench-peers: setup
	@cargo bench --locked -p peers -- $(or $(ARGS),$(PEERS))
