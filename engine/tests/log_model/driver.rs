//! Engine and model side by side: whatever the one is told, the other is.

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

/// What became of a submitted batch.
struct Fate {
    /// The how manyth it is of those that were queued.
    number: u64,
    changes: Vec<Change>,
    durability: Durability,
    outcome: Result<Lsn>,
    /// How many syncs had failed when it was answered, and whether the power was gone.
    failed_syncs: u64,
    halted: bool,
}

/// Engine and model side by side.
pub struct Driver {
    pub disk: Arc<SimDisk>,
    pub options: LogOptions,
    pub engine: LogEngine,
    pub writer: LogWriter,
    pub history: History,
    /// Whether each batch is a commit group of its own, written while the one before is in flight, as two threads of the log would.
    pub overlapping: bool,
    fates: Arc<Mutex<Vec<Fate>>>,
    /// How many batches were queued and answered since the log was opened, and the last position that was told.
    queued: u64,
    answered: u64,
    last: u64,
}

impl Driver {
    pub fn new(options: LogOptions) -> Driver {
        Driver::on(SimDisk::new(), options)
    }

    /// On a disk whose log, if there is one, is empty.
    pub fn on(disk: Arc<SimDisk>, options: LogOptions) -> Driver {
        let (engine, writer, _) = open(&disk, &options).unwrap();
        Driver::with(disk, options, engine, writer, History::new())
    }

    fn with(disk: Arc<SimDisk>, options: LogOptions, engine: LogEngine, writer: LogWriter, history: History) -> Driver {
        let fates = Arc::default();
        Driver { disk, options, engine, writer, history, overlapping: false, fates, queued: 0, answered: 0, last: 0 }
    }

    /// A second one on a copy of the disk, opened anew.
    pub fn fork(&self) -> Driver {
        let disk = self.disk.fork();
        let (engine, writer, _) = open(&disk, &self.options).unwrap();
        Driver::with(disk, self.options.clone(), engine, writer, self.history.clone())
    }

    /// Queues a batch; its fate is known after a turn.
    pub fn submit(&mut self, changes: Vec<Change>, durability: Durability) {
        let (fates, disk) = (self.fates.clone(), self.disk.clone());
        let batch = batch_of(&changes);
        let number = self.queued;
        let done: OnDone = Box::new(move |outcome| {
            let (failed_syncs, halted) = (disk.failed_syncs(), disk.is_halted());
            fates.lock().push(Fate { number, changes, durability, outcome, failed_syncs, halted });
        });
        match self.engine.submit_with(batch, durability, done) {
            Ok(()) => self.queued += 1,
            // It was not taken: nothing can come of it.
            Err(LogError::Busy | LogError::Poisoned(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Lets the writer work, and follows in the model. Panics where something does not hold.
    pub fn turn(&mut self) {
        self.try_turn().unwrap();
    }

    /// The same, telling what does not hold.
    pub fn try_turn(&mut self) -> Checked<()> {
        while self.overlapping && self.writer.begin(1) > 0 {}
        self.writer.turn();
        let fates = std::mem::take(&mut *self.fates.lock());
        fates.into_iter().try_for_each(|fate| self.follow(fate))
    }

    fn follow(&mut self, fate: Fate) -> Checked<()> {
        let Fate { number, changes, durability, outcome, failed_syncs, halted } = fate;
        if number != self.answered {
            let what = format!("batch {number} was answered when {} was due", self.answered);
            return Err(Violation::new(15, what));
        }
        self.answered += 1;
        let after = self.history.latest().after(&changes);
        match outcome {
            Ok(lsn) => {
                if lsn.0 < self.last {
                    return Err(Violation::new(15, format!("position {} was told after {}", lsn.0, self.last)));
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
            Err(other) => return Err(Violation::new(11, format!("answered with {other}"))),
        }
        Ok(())
    }

    /// A step of purge, and a turn of the writer. Errors of purge are those of the disk; what matters is what they leave behind.
    pub fn purge(&mut self) -> Result<PurgeReport> {
        let outcome = self.engine.purge(Budget::default());
        self.history.purged |=
            !matches!(&outcome, Ok(report) if report.freed == 0 && report.outcome == PurgeOutcome::Idle);
        self.turn();
        outcome
    }

    /// A clean stop: what is written is durable then, unless the log is poisoned.
    pub fn stop(&mut self) {
        self.writer.finish();
        if self.engine.poisoned().is_none() {
            self.history.synced = self.history.current;
        }
    }

    /// The engine shows exactly the acknowledged state.
    pub fn check_live(&self) {
        self.live().unwrap();
    }

    /// The same, telling what does not hold.
    pub fn live(&self) -> Checked<()> {
        self.history.judge_live(&observe(&self.engine).map_err(refusal)?)
    }

    /// Power loss and reopen. An error names what does not hold.
    pub fn crash(&mut self, seed: u64) -> Checked<RecoveryReport> {
        self.disk.crash(seed);
        self.recover(After::Crash)
    }

    /// The end of the process and reopen, on a machine that goes on.
    pub fn reopen(&mut self) -> Checked<RecoveryReport> {
        self.disk.kill();
        self.recover(After::Process)
    }

    /// Opens again what is on the disk, and looks for it in the history.
    pub fn recover(&mut self, after: After) -> Checked<RecoveryReport> {
        let found = recovered(&self.disk, &self.options, &self.history, after)?;
        self.engine = found.engine;
        self.writer = found.writer;
        self.history.rewind(found.found);
        self.fates = Arc::default();
        (self.queued, self.answered, self.last) = (0, 0, 0);
        Ok(found.report)
    }
}
