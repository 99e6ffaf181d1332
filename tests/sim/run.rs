//! One run: transfers under faults, then healing, and the final checks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use simulator::World;
use simulator::checkers::Violation;
use tokio::task::LocalSet;

use crate::bank::{self, Counts, SharedBook};
use crate::options::Options;
use crate::stack::{self, Parts, Stack, run_until};

/// The statistics of a run without a violation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Hash and number of the trace lines.
    pub(crate) hash: u64,
    pub(crate) lines: u64,
    pub(crate) crashes: u64,
    pub(crate) counts: Counts,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Outcome) {
        self.lines += other.lines;
        self.crashes += other.crashes;
        let (counts, more) = (&mut self.counts, &other.counts);
        counts.transfers += more.transfers;
        counts.audits += more.audits;
        counts.conflicts += more.conflicts;
        counts.unavailable += more.unavailable;
        counts.unknown += more.unknown;
        counts.gateways_lost += more.gateways_lost;
    }

    /// The seeds together must test something.
    pub(crate) fn assert_covers(&self) {
        let minima = [
            ("transfers", self.counts.transfers, 500),
            ("audits", self.counts.audits, 200),
            ("crashes", self.crashes, 200),
            ("lost gateways", self.counts.gateways_lost, 100),
        ];
        for (what, seen, least) in minima {
            assert!(seen >= least, "only {seen} {what}, fewer than {least}");
        }
    }
}

/// Runs a seed. A panic of the code under test is a violation.
pub(crate) fn run(options: Options, print: bool) -> Result<Outcome, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        LocalSet::new().block_on(&runtime, async {
            let (mut world, parts) = stack::start(&options, print)?;
            let book = SharedBook::default();
            let checked = drive(&options, &mut world, &parts, &book).await;
            let at = world.now as f64 / 1e9;
            checked.map_err(|Violation(what)| Violation(format!("at {at:.6} s: {what}; {:?}", book.borrow())))?;
            let (book, stats) = (book.borrow(), world.stats());
            Ok::<_, Violation>(Outcome {
                hash: world.trace.hash(),
                lines: world.trace.lines(),
                crashes: stats.crashes,
                counts: book.counts,
            })
        })
    }));
    match ran {
        Ok(outcome) => outcome.map_err(|Violation(what)| what),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("panic: {}", text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")))
        }
    }
}

async fn drive(options: &Options, world: &mut World<Stack>, parts: &Parts, book: &SharedBook) -> Result<(), Violation> {
    let nodes = &parts.nodes;
    let seed = options.cluster.seed;
    let opened = tokio::task::spawn_local(bank::open_accounts(Arc::clone(nodes), seed));
    let safety = options.cluster.safety.as_nanos() as u64;
    let liveness = options.cluster.liveness.as_nanos() as u64;
    run_until(world, nodes, liveness, |_| opened.is_finished()).await?;
    let begin = nodes.elapsed();
    let session = |n| tokio::task::spawn_local(bank::session(Arc::clone(nodes), Rc::clone(book), seed * 100 + n));
    let sessions: Vec<_> = (0..options.sessions).map(session).collect();
    let has_failed = || book.borrow().violation.is_some();
    run_until(world, nodes, begin + safety, |_| has_failed()).await?;
    check(book)?;
    world.heal()?;
    parts.wire.heal();
    let deadline = nodes.elapsed() + liveness;
    let before = book.borrow().counts.transfers;
    run_until(world, nodes, deadline, |_| has_failed() || book.borrow().counts.transfers >= before + 20).await?;
    check(book)?;
    if book.borrow().counts.transfers < before + 20 {
        return Err(Violation("no transfers after healing".to_owned()));
    }
    book.borrow_mut().is_closed = true;
    run_until(world, nodes, deadline, |_| sessions.iter().all(|session| session.is_finished())).await?;
    for session in sessions {
        if !session.is_finished() {
            return Err(Violation("a session hangs after healing".to_owned()));
        }
        session.await.map_err(|error| Violation(format!("a session panicked: {error}")))?;
    }
    for store in nodes.stores.clone() {
        let Some(life) = nodes.life(store) else { return Err(Violation(format!("{store} does not run"))) };
        let audited = tokio::task::spawn_local(async move { bank::audit(&life.database).await });
        run_until(world, nodes, deadline + liveness, |_| audited.is_finished()).await?;
        match audited.await {
            Ok(Ok(total)) if bank::is_total(total) => {}
            other => return Err(Violation(format!("the last audit at {store}: {other:?}"))),
        }
    }
    check(book)
}

fn check(book: &SharedBook) -> Result<(), Violation> {
    match &book.borrow().violation {
        Some(what) => Err(Violation(what.clone())),
        None => Ok(()),
    }
}
