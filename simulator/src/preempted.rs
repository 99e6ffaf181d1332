//! Reads whose thread is preempted.
//!
//! A lease read is proved on its caller's thread, by a fixed order of steps. A simulation on one thread never shows
//! what happens between them. So some reads run on a thread of their own, which stops between the snapshot and the
//! look at the clock, until the world resumes it. Only one of the two threads runs at any time, so a seed still replays
//! exactly.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;

use engine::store::memory::MemoryStore;
use parking_lot::{Condvar, Mutex};

use raftstore::{RegionContext, RegionError, RegionSnapshot, StoreHandle};

/// The outcome of `StoreHandle::try_read`.
pub type Answer = Result<Option<RegionSnapshot<MemoryStore>>, RegionError>;

/// Which of the two threads runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Reader,
    /// The world's; whether the read has stopped, not ended.
    World {
        stopped: bool,
    },
}

/// Hands the turn from one thread to the other.
struct Gate {
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Gate {
    /// Gives the turn to `other`.
    fn pass(&self, other: Turn) {
        *self.turn.lock() = other;
        self.changed.notify_all();
    }

    /// Waits for the turn of the reader.
    fn wait_for_reader(&self) {
        let mut turn = self.turn.lock();
        while *turn != Turn::Reader {
            self.changed.wait(&mut turn);
        }
    }

    /// Waits for the turn of the world. Returns whether the read has stopped, not ended.
    fn wait_for_world(&self) -> bool {
        let mut turn = self.turn.lock();
        loop {
            if let Turn::World { stopped } = *turn {
                return stopped;
            }
            self.changed.wait(&mut turn);
        }
    }
}

thread_local! {
    /// The gate at which this thread stops next.
    static GATE: RefCell<Option<Arc<Gate>>> = const { RefCell::new(None) };
}

/// Stops the thread of a read that is to be preempted, once. Called before a clock is read.
pub(crate) fn preemption_point() {
    if let Some(gate) = GATE.take() {
        gate.pass(Turn::World { stopped: true });
        gate.wait_for_reader();
    }
}

/// Ends a read, also by a panic: if it did not stop, the world goes on now.
struct ReadEnd;

impl Drop for ReadEnd {
    fn drop(&mut self) {
        if let Some(gate) = GATE.take() {
            gate.pass(Turn::World { stopped: false });
        }
    }
}

/// A read that has stopped before it looked at the clock.
pub struct PreemptedRead {
    gate: Arc<Gate>,
    /// `None` once joined.
    thread: Option<JoinHandle<Answer>>,
}

/// A read that began.
pub enum Begun {
    /// It did not get as far as the clock.
    Answered(Answer),
    /// It stopped there.
    Preempted(PreemptedRead),
}

impl PreemptedRead {
    /// Begins a lease read on a thread of its own.
    pub fn begin(handle: &StoreHandle<MemoryStore>, ctx: RegionContext) -> Begun {
        let gate = Arc::new(Gate { turn: Mutex::new(Turn::Reader), changed: Condvar::new() });
        let (handle, reader) = (handle.clone(), Arc::clone(&gate));
        let thread = std::thread::spawn(move || {
            GATE.set(Some(reader));
            let _end = ReadEnd;
            handle.try_read(ctx)
        });
        let stopped = gate.wait_for_world();
        let read = PreemptedRead { gate, thread: Some(thread) };
        if stopped { Begun::Preempted(read) } else { Begun::Answered(read.resume()) }
    }

    /// Lets the read end.
    pub fn resume(mut self) -> Answer {
        self.gate.pass(Turn::Reader);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(answer)) => answer,
            Some(Err(panic)) => resume_unwind(panic),
            None => Ok(None),
        }
    }
}

impl Drop for PreemptedRead {
    /// Nobody waits for the answer any more: the store has crashed, or the run has ended.
    fn drop(&mut self) {
        self.gate.pass(Turn::Reader);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
