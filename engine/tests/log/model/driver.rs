//! The engine and the model side by side: both get the same batches.

use std::sync::Arc;

use engine::disk::SimDisk;
use engine::log::{
    Budget, Durability, LogEngine, LogError, LogOptions, LogWriter, Lsn, OnDone, PurgeOutcome, PurgeReport,
    RecoveryReport, Result,
};
use parking_lot::Mutex;

use super::check::{After, History, Violation, recovered, refusal};
use super::{Change, batch_of, observe, open};

type Checked<T> = std::result::Result<T, Violation>;

/// The outcome of a submitted batch.
struct Outcome {
    /// The sequence number of the batch among all queued ones.
    number: u64,
    changes: Vec<Change>,
    durability: Durability,
    outcome: Result<Lsn>,
    /// At completion: the number of failed syncs, and whether the power was off.
    failed_syncs: u64,
    halted: bool,
}

/// The engine and the model side by side.
pub struct Driver {
    pub disk: Arc<SimDisk>,
    pub options: LogOptions,
    pub engine: LogEngine,
    pub writer: LogWriter,
    pub history: History,
    /// Whether each batch is a commit group of its own, written while the previous one is in flight, as by the two
    /// threads of the log.
    pub overlapping: bool,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    /// Batches queued and completed since the open, and the last reported position.
    queued: u64,
    completed: u64,
    last: u64,
}

impl Driver {
    pub fn new(options: LogOptions) -> Driver {
        Driver::on(SimDisk::new(), options)
    }

    /// On a disk without a log, or with an empty one.
    pub fn on(disk: Arc<SimDisk>, options: LogOptions) -> Driver {
        let (engine, writer, _) = open(&disk, &options).unwrap();
        Driver::with(disk, options, engine, writer, History::default())
    }

    fn with(disk: Arc<SimDisk>, options: LogOptions, engine: LogEngine, writer: LogWriter, history: History) -> Driver {
        let outcomes = Arc::default();
        Driver {
            disk,
            options,
            engine,
            writer,
            history,
            overlapping: false,
            outcomes,
            queued: 0,
            completed: 0,
            last: 0,
        }
    }

    /// A second driver on a copy of the disk, with the log opened again.
    pub fn fork(&self) -> Driver {
        let disk = self.disk.fork();
        let (engine, writer, _) = open(&disk, &self.options).unwrap();
        Driver::with(disk, self.options.clone(), engine, writer, self.history.clone())
    }

    /// A driver on a copy of the disk after a power loss, with the log recovered.
    pub fn crashed_fork(&self, seed: u64) -> Checked<Driver> {
        let disk = self.disk.fork();
        disk.crash(seed);
        let found = recovered(&disk, &self.options, &self.history, After::Crash)?;
        let mut history = self.history.clone();
        history.rewind(found.found);
        Ok(Driver::with(disk, self.options.clone(), found.engine, found.writer, history))
    }

    /// Submits a batch. A turn completes it.
    pub fn submit(&mut self, changes: Vec<Change>, durability: Durability) {
        let (outcomes, disk) = (self.outcomes.clone(), self.disk.clone());
        let batch = batch_of(&changes);
        let number = self.queued;
        let done: OnDone = Box::new(move |outcome| {
            let (failed_syncs, halted) = (disk.failed_syncs(), disk.is_halted());
            outcomes.lock().push(Outcome { number, changes, durability, outcome, failed_syncs, halted });
        });
        match self.engine.submit_with(batch, durability, done) {
            Ok(()) => self.queued += 1,
            // The log refused the submission: the batch has no effect.
            Err(LogError::Busy | LogError::Poisoned(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Runs the writer and updates the model. Panics on a violation.
    pub fn turn(&mut self) {
        self.try_turn().unwrap();
    }

    /// Like `turn`, but returns the violation.
    pub fn try_turn(&mut self) -> Checked<()> {
        while self.overlapping && self.writer.begin(1) > 0 {}
        self.writer.turn();
        self.settle()
    }

    /// Writes the queued batches, each as a commit group of its own. The last one stays in flight, and a full file
    /// stays unsealed.
    pub fn try_lag(&mut self) -> Checked<()> {
        while self.writer.begin(1) > 0 {}
        self.settle()
    }

    /// Like `try_lag`, and panics on a violation.
    pub fn lag(&mut self) {
        self.try_lag().unwrap();
    }

    /// Updates the model by the outcomes so far.
    fn settle(&mut self) -> Checked<()> {
        let outcomes = std::mem::take(&mut *self.outcomes.lock());
        outcomes.into_iter().try_for_each(|outcome| self.apply_outcome(outcome))
    }

    fn apply_outcome(&mut self, outcome: Outcome) -> Checked<()> {
        let Outcome { number, changes, durability, outcome, failed_syncs, halted } = outcome;
        if number != self.completed {
            let what = format!("batch {number} was completed instead of {}", self.completed);
            return Err(Violation::new(15, what));
        }
        self.completed += 1;
        let after = self.history.latest().after(&changes);
        match outcome {
            Ok(lsn) => {
                if lsn.0 < self.last {
                    return Err(Violation::new(15, format!("position {} was reported after {}", lsn.0, self.last)));
                }
                self.last = lsn.0;
                let Some(after) = after else { return Err(Violation::new(7, format!("accepted {changes:?}"))) };
                self.history.push(changes, after, Some(lsn.0));
                self.history.current = self.history.len() - 1;
                if durability == Durability::Synced {
                    self.history.synced = self.history.current;
                    if failed_syncs > 0 {
                        return Err(Violation::new(10, format!("synced after {failed_syncs} failed syncs")));
                    }
                }
            }
            Err(LogError::Gap { .. } | LogError::Compacted { .. }) => {
                if after.is_some() {
                    return Err(Violation::new(7, format!("refused {changes:?}")));
                }
            }
            Err(LogError::Poisoned(why)) => {
                if failed_syncs == 0 && !halted {
                    return Err(Violation::new(11, format!("poisoned, and no sync has failed: {why}")));
                }
                if let Some(after) = after {
                    self.history.push(changes, after, None);
                }
            }
            Err(LogError::NoSpace(_) | LogError::Io(_)) => self.history.refuse(changes),
            Err(other) => return Err(Violation::new(11, format!("completed with {other}"))),
        }
        Ok(())
    }

    /// A step of purge, and a turn of the writer. Errors of purge come from the disk; the tests check their
    /// consequences.
    pub fn purge(&mut self) -> Result<PurgeReport> {
        let outcome = self.engine.purge(Budget::default());
        self.history.purged |=
            !matches!(&outcome, Ok(report) if report.freed == 0 && report.outcome == PurgeOutcome::Idle);
        self.turn();
        outcome
    }

    /// A clean stop: written data is durable then, unless the log is poisoned.
    pub fn stop(&mut self) {
        self.writer.finish();
        if self.engine.poisoned().is_none() {
            self.history.synced = self.history.current;
        }
    }

    /// Checks that the engine shows exactly the acknowledged state.
    pub fn check_live(&self) {
        self.live().unwrap();
    }

    /// Like `check_live`, but returns the violation.
    pub fn live(&self) -> Checked<()> {
        self.history.judge_live(&observe(&self.engine).map_err(refusal)?)
    }

    /// Power loss and reopen.
    pub fn crash(&mut self, seed: u64) -> Checked<RecoveryReport> {
        self.disk.crash(seed);
        self.recover(After::Crash)
    }

    /// The process ends; reopen on the same machine.
    pub fn reopen(&mut self) -> Checked<RecoveryReport> {
        self.disk.kill();
        self.recover(After::Process)
    }

    /// Opens the log again and finds its state in the history.
    pub fn recover(&mut self, after: After) -> Checked<RecoveryReport> {
        let found = recovered(&self.disk, &self.options, &self.history, after)?;
        self.engine = found.engine;
        self.writer = found.writer;
        self.history.rewind(found.found);
        self.outcomes = Arc::default();
        (self.queued, self.completed, self.last) = (0, 0, 0);
        Ok(found.report)
    }
}
