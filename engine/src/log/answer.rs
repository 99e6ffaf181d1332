//! Answers: how those who queued a commit group's batches learn what became of them.
//!
//! Each batch is answered once, by its ticket or its callback. A batch that is not written breaks its sequence: while the writer is
//! held where the group could not be written at all, so that no later batch of the sequence can be looked at before.

use std::any::Any;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;

use super::error::{LogError, Result};
use super::read::Shared;
use super::sequence::Link;
use super::ticket::{Bells, Rung, Slot};
use super::{Lsn, OnDone};

/// Who is to be told what became of a job: once, and if the job is dropped because the thread that had it panics, that it did.
pub(crate) struct Done(Option<Whom>);

enum Whom {
    Call(OnDone),
    Ticket(Slot),
}

thread_local! {
    /// Whether this thread is answering: it holds one half of the way, and must not wait for anyone who waits for it.
    static ANSWERING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is a callback of some log.
pub(crate) fn is_answering() -> bool {
    ANSWERING.get()
}

/// Why nothing is written any more, where a thread panicked at it.
const PANICKED: &str = "a thread panicked while it wrote";

/// Who is to be answered, and with which error if the batch was refused.
pub(crate) struct Answer {
    pub(crate) done: Done,
    /// The number of the batch among all that were queued.
    pub(crate) number: u64,
    pub(crate) link: Option<Link>,
    pub(crate) refused: Option<LogError>,
}

/// What is to be done when all of a commit group's batches are answered.
#[derive(Default)]
pub(crate) struct Told {
    rung: Rung,
    /// A callback that panicked must not keep the others from their answers.
    panic: Option<String>,
}

impl Answer {
    /// The commit group was not written. A batch that was refused for how another one of it would have left a Raft group shares its fate.
    pub(crate) fn share(&mut self, error: &LogError) {
        match &self.refused {
            Some(LogError::Compacted { .. } | LogError::Gap { .. } | LogError::InUse { .. }) => {
                self.refused = None;
                if let Some(link) = &self.link {
                    link.broke_for(error);
                }
            }
            Some(_) => {}
            None => {
                if let Some(link) = &self.link {
                    link.broke(error);
                }
            }
        }
    }

    /// Answers, with the fate of the commit group where the batch was not refused.
    pub(crate) fn tell(self, outcome: &Result<Lsn>, told: &mut Told) {
        let outcome = self.refused.map_or_else(|| outcome.clone(), Err);
        if let (Some(link), Err(error)) = (self.link, &outcome) {
            link.broke(error);
        }
        self.done.tell(outcome, self.number, told);
    }
}

impl Done {
    /// To be called.
    pub(crate) fn call(done: OnDone) -> Done {
        Done(Some(Whom::Call(done)))
    }

    /// To be put where a ticket finds it.
    pub(crate) fn ticket(slot: Slot) -> Done {
        Done(Some(Whom::Ticket(slot)))
    }

    /// Hands over the outcome.
    pub(crate) fn tell(mut self, outcome: Result<Lsn>, number: u64, told: &mut Told) {
        match self.0.take() {
            Some(Whom::Call(done)) => {
                let before = ANSWERING.replace(true);
                let called = std::panic::catch_unwind(AssertUnwindSafe(|| done(outcome)));
                ANSWERING.set(before);
                if let Err(panic) = called {
                    told.panic.get_or_insert_with(|| said(panic.as_ref()));
                }
            }
            Some(Whom::Ticket(slot)) => {
                // There is one job for a slot, and one answer for a job.
                slot.get_or_init(|| outcome);
                told.rung |= Bells::bit(number);
            }
            None => {}
        }
    }

    /// The job was not taken, which its caller is told in another way.
    pub(crate) fn withdraw(mut self) {
        self.0 = None;
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if self.0.is_some() {
            // The log is poisoned, and the bells are rung, by the [`Alarm`] of the half that panicked.
            Done(self.0.take()).tell(Err(LogError::Poisoned(PANICKED.to_owned())), 0, &mut Told::default());
        }
    }
}

/// Goes off where one half of a commit group's way panics: nobody knows then what is on disk. The batches that are dropped by it have their answers before
/// ([`Done`]); those who wait for them are woken here. Made in that half, so that the lock of the half is still held when the log is poisoned.
pub(crate) struct Alarm<'a>(&'a Shared);

impl<'a> Alarm<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Alarm<'a> {
        Alarm(shared)
    }

    /// All went well.
    pub(crate) fn off(self) {
        std::mem::forget(self);
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.poison(PANICKED.to_owned());
        self.0.landing.bells.ring(Rung::MAX);
    }
}

impl Told {
    /// What to poison the log with, if a callback panicked. The panic goes no further: the thread may be that of another caller, who waits for a
    /// batch of its own.
    pub(crate) fn panicked(&self) -> Option<String> {
        self.panic.as_ref().map(|what| format!("a callback panicked: {what}"))
    }

    /// Wakes those who wait.
    pub(crate) fn ring(&self, bells: &Bells) {
        bells.ring(self.rung);
    }
}

/// The words of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
