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

use crate::load::{Counts, Session, SharedBook, bank, lists, registers};
use crate::nodes::Deaths;
use crate::options::Options;
use crate::panics;
use crate::protocols::Protocols;
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
    /// Reads that were repeated at the end.
    pub(crate) reads: u64,
    /// Locks that were left when every session had ended.
    pub(crate) locks_left: u64,
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
            sum.reads += one.reads;
            sum.locks_left += one.locks_left;
            let (to, from) = (&mut sum.counts, &one.counts);
            to.transfers += from.transfers;
            to.audits += from.audits;
            to.lists += from.lists;
            to.register_writes += from.register_writes;
            to.register_reads += from.register_reads;
            to.conflicts += from.conflicts;
            to.unavailable += from.unavailable;
            to.unknown += from.unknown;
            to.left += from.left;
            sum.deaths.refusals += one.deaths.refusals;
            sum.deaths.late += one.deaths.late;
            sum.deaths.first_reads += one.deaths.first_reads;
            sum.deaths.names_ahead += one.deaths.names_ahead;
            for (step, deaths) in &one.deaths.coordinators {
                *sum.deaths.coordinators.entry(*step).or_default() += deaths;
            }
            sum
        })
    }

    /// Asserts that the seeds together covered enough of everything.
    pub(crate) fn assert_covers(&self) {
        let (stats, counts, deaths, protocols) = (&self.stats, &self.counts, &self.deaths, &self.protocols);
        assert_enough(&[
            ("acknowledged transfers", counts.transfers, 500),
            ("audits", counts.audits, 200),
            ("acknowledged transactions on lists", counts.lists, 1_000),
            ("confirmed writes of registers", counts.register_writes, 300),
            ("reads of registers", counts.register_reads, 300),
            ("transactions whose store took start_ts", deaths.first_reads, 500),
            ("commits whose store took the least commit_ts", deaths.names_ahead, 30),
            ("commits in one phase", protocols.one_phase, 800),
            ("asynchronous commits", protocols.async_commits, 200),
            ("commits in two phases", protocols.two_phase, 800),
            ("commits that fell back to two phases", protocols.fallbacks, 120),
            ("locks of living transactions that reads passed", protocols.passed, 300),
            ("pushes of min_commit_ts", protocols.pushes, 200),
            ("unanswered attempts whose coordinator asked all keys", protocols.settled, 30),
            ("asynchronous commits ended by a mark on a missing key", protocols.marked, 30),
            ("expired ones that others ended so", protocols.expired, 3),
            ("conflicts", counts.conflicts, 100),
            ("unknown outcomes", counts.unknown, 5),
            ("transactions that their session left", counts.left, 100),
            ("refusals after an effect", deaths.refusals, 50),
            ("late requests", deaths.late, 100),
            ("crashes", stats.crashes, 100),
            ("leaderships of the oracle", self.oracles, 100),
            ("faults of the oracle's node", self.oracle_faults, 50),
            ("faults of the oracle's node in commits", self.oracle_faults_in_commits, 20),
            ("handovers right before a commit in one phase", self.leader_moves, 40),
            ("reads repeated at the end", self.reads, 10_000),
            ("locks left by sessions", self.locks_left, 20),
        ]);
        for step in STEPS {
            assert_enough(&[(
                &format!("coordinators dead at {step:?}"),
                deaths.coordinators.get(&step).copied().unwrap_or(0),
                1,
            )]);
        }
    }
}

/// Runs a seed. A panic of the code under test is a violation.
pub(crate) fn run(options: Options, print: bool) -> Result<Outcome, Box<Failure>> {
    panics::watch();
    drop(panics::take());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let tail = RefCell::new(Vec::new());
    let ran = caught(|| {
        LocalSet::new().block_on(&runtime, async {
            let (mut world, parts) = stack::start(&options, print)?;
            let book = SharedBook::default();
            let checked = AssertUnwindSafe(drive(&options, &mut world, &parts, &book)).catch_unwind().await;
            let checked = checked.unwrap_or_else(|panic| violated(panic_text(&*panic)));
            let at = world.now as f64 / 1e9;
            let locks_left = checked.map_err(|Violation(what)| {
                *tail.borrow_mut() = world.trace.tail();
                Violation(format!("at {at:.6} s: {what}; {:?}", book.borrow().counts))
            })?;
            let deaths = parts.nodes.seen.lock().clone();
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
                reads: book.borrow().reads.len(),
                locks_left,
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
    book: &SharedBook,
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
    let end = nodes.elapsed() + options.cluster.safety.as_nanos() as u64;
    run_until(world, nodes, end, |_| book.borrow().violation.is_some()).await?;
    {
        let book = book.borrow();
        book.check()?;
        registers::check(&book)?;
    }
    settle(world, parts, book, sessions).await
}
