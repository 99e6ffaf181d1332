//! One run: sessions under faults, then healing, and the final checks. And what all runs together must cover.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use simulator::World;
use simulator::checkers::{Violation, violated};
use simulator::failure::{Failure, caught, panic_text};
use simulator::seeds::assert_enough;
use simulator::stats::Stats;
use tokio::task::LocalSet;

use crate::collection;
use crate::load::{Counts, Session, SharedBook, bank, counters, lists, parents, registers};
use crate::logs::Logs;
use crate::nodes::Deaths;
use crate::options::Options;
use crate::panics;
use crate::protocols::Protocols;
use crate::replicas::Surface;
use crate::settle::settle;
use crate::stack::{self, Parts, Stack, run_until};
use crate::steps::STEPS;

/// The statistics of a run without a violation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Hash and number of the trace lines.
    pub(crate) hash: u64,
    pub(crate) lines: u64,
    pub(crate) stats: Stats,
    pub(crate) counts: Counts,
    pub(crate) deaths: Deaths,
    pub(crate) protocols: Protocols,
    /// Leaderships of the oracle's region, and faults of its node.
    pub(crate) oracles: u64,
    pub(crate) oracle_faults: u64,
    /// Those among them in the middle of a commit.
    pub(crate) oracle_faults_in_commits: u64,
    /// Leaders that were asked to hand over right before a commit in one phase.
    pub(crate) leader_moves: u64,
    /// Versions of epochs that were asked to be raised.
    pub(crate) epoch_changes: u64,
    /// Reads that were repeated at the end.
    pub(crate) reads: u64,
    /// Locks that were left when every session had ended.
    pub(crate) locks_left: u64,
    /// What the reads with options asked for, and how they were served.
    pub(crate) surface: Surface,
}

impl Outcome {
    /// The sum over many runs.
    pub(crate) fn sum<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Outcome {
        outcomes.fold(Outcome::default(), |mut sum, one| {
            sum.lines += one.lines;
            sum.stats.add(&one.stats);
            sum.protocols.add(&one.protocols);
            sum.oracles += one.oracles;
            sum.oracle_faults += one.oracle_faults;
            sum.oracle_faults_in_commits += one.oracle_faults_in_commits;
            sum.leader_moves += one.leader_moves;
            sum.epoch_changes += one.epoch_changes;
            sum.reads += one.reads;
            sum.locks_left += one.locks_left;
            for (kind, count) in &one.surface {
                *sum.surface.entry(kind.clone()).or_default() += count;
            }
            let (to, from) = (&mut sum.counts, &one.counts);
            to.transfers += from.transfers;
            to.audits += from.audits;
            to.lists += from.lists;
            to.replayed += from.replayed;
            to.write_skews += from.write_skews;
            to.register_writes += from.register_writes;
            to.register_reads += from.register_reads;
            to.additions += from.additions;
            to.family += from.family;
            to.children += from.children;
            to.removals += from.removals;
            to.conflicts += from.conflicts;
            to.deadlocks += from.deadlocks;
            to.not_available += from.not_available;
            to.unavailable += from.unavailable;
            to.unknown += from.unknown;
            to.left += from.left;
            to.too_old += from.too_old;
            to.held += from.held;
            to.rounds += from.rounds;
            sum.deaths.refusals += one.deaths.refusals;
            sum.deaths.late += one.deaths.late;
            sum.deaths.first_reads += one.deaths.first_reads;
            sum.deaths.names_ahead += one.deaths.names_ahead;
            sum.deaths.replica_reads.add(one.deaths.replica_reads);
            for (step, deaths) in &one.deaths.coordinators {
                *sum.deaths.coordinators.entry(*step).or_default() += deaths;
            }
            sum
        })
    }

    fn used(&self, kind: &str) -> u64 {
        self.surface.get(kind).copied().unwrap_or(0)
    }

    /// Asserts that the seeds together covered enough of everything.
    pub(crate) fn assert_covers(&self) {
        let (counts, deaths) = (&self.counts, &self.deaths);
        assert_enough(&[
            ("acknowledged transfers", counts.transfers, 500),
            ("audits", counts.audits, 200),
            ("acknowledged transactions on lists", counts.lists, 1_000),
            ("commits of lists that were replayed by their timestamps", counts.replayed, 300),
            ("runs whose lists have write skew", counts.write_skews, 3),
            ("confirmed writes of registers", counts.register_writes, 300),
            ("reads of registers", counts.register_reads, 300),
            ("transactions whose store took start_ts", deaths.first_reads, 500),
            ("commits whose store took the least commit_ts", deaths.names_ahead, 30),
            ("reads by a grant", deaths.replica_reads.by_grant, 3_000),
            ("those whose replica asked for it", deaths.replica_reads.asked, 300),
            ("reads by a read index of a follower", deaths.replica_reads.by_read_index, 200),
            ("reads of a leader that any replica might have served", deaths.replica_reads.by_leader, 300),
            ("reads at a learner", deaths.replica_reads.by_learner, 200),
            ("reads that a replica refused", deaths.replica_reads.refused, 100),
            ("reads with options, by policy leader", self.used("policy leader"), 50),
            ("those by policy follower", self.used("policy follower"), 200),
            ("those by policy closest", self.used("policy closest"), 200),
            ("those by policy any", self.used("policy any"), 100),
            ("those by policy learner", self.used("policy learner"), 50),
            ("those by read index", self.used("proof read index"), 100),
            ("session snapshots", self.used("session snapshot"), 200),
            ("requests for them at a follower", self.used("served by session_snapshot follower"), 150),
            ("requests for them at a learner", self.used("served by session_snapshot learner"), 10),
            ("fresh snapshots that a follower took", self.used("shared at a follower"), 100),
            ("snapshots of an exact age", self.used("exact age"), 60),
            ("snapshots of a bounded age", self.used("bounded age"), 80),
            ("reads without a proof", self.used("unproven"), 20),
            ("requests that grants of followers proved", self.used("served by grant follower"), 1_500),
            ("those of learners", self.used("served by grant learner"), 100),
            ("requests that read indexes of followers proved", self.used("served by read_index follower"), 400),
            ("hedges", self.used("hedges sent"), 500),
            ("hedges that won", self.used("hedges won"), 200),
            ("hedges that lost", self.used("hedges wasted"), 200),
            ("reads compared with the leader's", self.used("shadow reads"), 1_000),
        ]);
        self.assert_covers_writes();
        for step in STEPS {
            assert_enough(&[(
                &format!("coordinators dead at {step:?}"),
                self.deaths.coordinators.get(&step).copied().unwrap_or(0),
                1,
            )]);
        }
    }

    fn assert_covers_writes(&self) {
        let (stats, counts, deaths, protocols) = (&self.stats, &self.counts, &self.deaths, &self.protocols);
        assert_enough(&[
            ("commits in one phase", protocols.one_phase, 800),
            ("asynchronous commits", protocols.async_commits, 200),
            ("commits in two phases", protocols.two_phase, 800),
            ("commits that fell back to two phases", protocols.fallbacks, 120),
            ("locks of living transactions that reads passed", protocols.passed, 300),
            ("pushes of min_commit_ts", protocols.pushes, 200),
            ("unanswered attempts whose coordinator asked all keys", protocols.settled, 30),
            ("asynchronous commits ended by a mark on a missing key", protocols.marked, 30),
            ("expired ones that others ended so", protocols.expired, 3),
            ("acknowledged transactions on counters", counts.additions, 300),
            ("acknowledged transactions on parents and children", counts.family, 300),
            ("children that relied on their parents", counts.children, 100),
            ("removals of parents", counts.removals, 10),
            ("conflicts", counts.conflicts, 100),
            ("deadlocks", counts.deadlocks, 5),
            ("row locks that were not free in time", counts.not_available, 50),
            ("unknown outcomes", counts.unknown, 5),
            ("transactions that their session left", counts.left, 100),
            ("rounds of garbage collection", counts.rounds, 100),
            ("snapshots that were held and read again", counts.held, 50),
            ("reads below the safe point", counts.too_old, 20),
            ("refusals after an effect", deaths.refusals, 50),
            ("late requests", deaths.late, 100),
            ("crashes", stats.crashes, 100),
            ("leaderships of the oracle", self.oracles, 100),
            ("faults of the oracle's node", self.oracle_faults, 50),
            ("faults of the oracle's node in commits", self.oracle_faults_in_commits, 20),
            ("handovers right before a commit in one phase", self.leader_moves, 40),
            ("changes of epochs", self.epoch_changes, 60),
            ("reads repeated at the end", self.reads, 10_000),
            ("locks left by sessions", self.locks_left, 20),
        ]);
    }
}

/// Runs a seed. A panic of the code under test is a violation.
pub(crate) fn run(options: Options, print: bool) -> Result<Outcome, Box<Failure>> {
    panics::watch();
    drop(panics::take());
    let (logs, _guard) = Logs::capture();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let tail = RefCell::new(Vec::new());
    let ran = caught(|| {
        LocalSet::new().block_on(&runtime, async {
            let (mut world, parts) = stack::start(&options, print)?;
            let book = SharedBook::default();
            let checked = AssertUnwindSafe(drive(&options, &mut world, &parts, (&book, &logs))).catch_unwind().await;
            let checked = checked.unwrap_or_else(|panic| violated(panic_text(&*panic)));
            let at = world.now as f64 / 1e9;
            let locks_left = checked.map_err(|Violation(what)| {
                *tail.borrow_mut() = world.trace.tail();
                Violation(format!("at {at:.6} s: {what}; {:?}", book.borrow().counts))
            })?;
            let deaths = parts.nodes.seen.lock().clone();
            let mut surface = parts.nodes.surface();
            surface.extend(book.borrow().kinds.iter().map(|(kind, count)| ((*kind).to_owned(), *count)));
            let outcome = Outcome {
                hash: world.trace.hash(),
                lines: world.trace.lines(),
                stats: world.stats(),
                counts: book.borrow().counts,
                deaths,
                protocols: parts.nodes.protocols(),
                oracles: world.load.oracles,
                oracle_faults: world.load.oracle_faults,
                oracle_faults_in_commits: world.load.oracle_faults_in_commits,
                leader_moves: world.load.leader_moves,
                epoch_changes: world.load.epoch_changes,
                reads: book.borrow().reads.len(),
                locks_left,
                surface,
            };
            Ok::<_, Violation>(outcome)
        })
    });
    ran.map_err(|Violation(what)| {
        let replay = "CORTADO_STACK_SEED={seed} cargo test -p stack --test stack seeds -- --nocapture";
        Box::new(Failure::of_seed(options.cluster.seed, &what, &options, tail.take(), replay))
    })
}

/// Runs all phases. Returns the number of locks that the sessions left.
async fn drive(
    options: &Options,
    world: &mut World<Stack>,
    parts: &Parts,
    (book, logs): (&SharedBook, &Logs),
) -> Result<u64, Violation> {
    let nodes = &parts.nodes;
    book.borrow_mut().registers = registers::all();
    let mut sessions = Vec::new();
    let session = |kind: &str, number: u64, stream: u64| {
        let rng = options.cluster.generator(stream + number);
        Session::new(options, nodes, book, format!("{kind} {number}"), rng)
    };
    for number in 0..options.transfers {
        sessions.push(tokio::task::spawn_local(bank::session(session("bank", number, 100))));
    }
    for number in 0..options.lists {
        sessions.push(tokio::task::spawn_local(lists::session(session("lists", number, 200))));
    }
    for number in 0..options.registers {
        sessions.push(tokio::task::spawn_local(registers::session(session("registers", number, 300))));
    }
    for number in 0..options.counters {
        let session = session("counters", number, 400);
        sessions.push(tokio::task::spawn_local(counters::session(session, options.keeps_locks)));
    }
    for number in 0..options.parents {
        let session = session("parents", number, 500);
        sessions.push(tokio::task::spawn_local(parents::session(session, options.keeps_locks)));
    }
    if let Some(collection) = options.collection {
        for number in 0..collection.holders {
            let session = session("holder", number, 600);
            sessions.push(tokio::task::spawn_local(collection::holder(session, collection.ttl)));
        }
        let (bugs, rng) = (options.settings.bugs, options.cluster.generator(12));
        let rounds = collection::rounds(collection, bugs, nodes.clone(), SharedBook::clone(book), rng);
        sessions.push(tokio::task::spawn_local(rounds));
    }
    let end = nodes.elapsed() + options.cluster.safety.as_nanos() as u64;
    run_until(world, nodes, end, |_| book.borrow().violation.is_some()).await?;
    {
        let book = book.borrow();
        logs.check()?;
        book.check()?;
        registers::check(&book)?;
    }
    settle(world, parts, (book, logs), sessions).await
}
