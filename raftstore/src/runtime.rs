//! A store on threads: `cortado-store`, `cortado-apply`, `cortado-background`, `cortado-log-read` and a
//! few of `cortado-snapshot`, beside the log's own threads.
//!
//! Each thread runs the turns of one part of a [`StoreCore`] and sleeps on its mailbox in between. A panic poisons the
//! store and ends that thread; raft-rs panics when its storage fails or a safety property is broken. The other threads
//! then fail all waiting and new requests.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::log::LogEngine;
use engine::store::Store;

use crate::apply::ApplyLoop;
use crate::assembly::{StoreCore, StoreParts};
use crate::error::{OpenError, StopError};
use crate::gather::{self, Pace};
use crate::handle::StoreHandle;
use crate::mailbox::Mailbox;
use crate::messages::ApplyQueue;
use crate::store::StoreLoop;
use crate::time::{Clock, MonoTime};

const STORE_THREAD: &str = "cortado-store";
const APPLY_THREAD: &str = "cortado-apply";
const SNAPSHOT_THREAD: &str = "cortado-snapshot";

/// Threads that build snapshots, and as many that install them. With two, a small region does not wait for a large one.
const SNAPSHOT_THREADS: usize = 2;

/// Phases of a stop, checked by the threads after each turn.
const RUNNING: u8 = 0;
/// The store loop transfers its leaderships and ends.
const DRAINING: u8 = 1;
/// The store loop has ended; apply and background finish their queues and end.
const ENDING: u8 = 2;

/// Longest sleep of an idle thread.
const IDLE: Duration = Duration::from_millis(500);

/// A running store. Dropping it without [`StoreRuntime::stop`] also stops it gracefully, and logs an error instead of
/// returning it.
pub struct StoreRuntime<S: Store> {
    handle: StoreHandle<S>,
    store: S,
    log: LogEngine,
    phase: Arc<AtomicU8>,
    apply: Arc<ApplyQueue>,
    /// Wake the workers.
    wakers: Vec<Box<dyn Fn() + Send + Sync>>,
    store_thread: Option<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
}

impl<S: Store> StoreRuntime<S> {
    /// Recovers a store from disk and starts its threads. The log must already run its own threads. Call
    /// [`crate::bootstrap`] first if the store may be fresh. Blocks until recovery is done.
    ///
    /// # Errors
    ///
    /// Those of [`StoreCore::open`], and `Thread` if a thread cannot be started.
    pub fn start(parts: StoreParts<S>) -> Result<StoreRuntime<S>, OpenError> {
        let clock = Arc::clone(&parts.clock);
        let (store, log) = (parts.store.clone(), parts.log.clone());
        let tick = parts.config.tick_interval;
        let stop_timeout = parts.config.stop_timeout;
        let core = StoreCore::open(parts, clock.now())?;
        let StoreCore { store_loop, apply, mut background, mut log_reader, builder, installer, apply_queue, handle } =
            core;
        let mut runtime = StoreRuntime {
            handle,
            store,
            log,
            phase: Arc::new(AtomicU8::new(RUNNING)),
            apply: apply_queue,
            wakers: Vec::new(),
            store_thread: None,
            workers: Vec::new(),
        };
        runtime.workers.push(runtime.spawn(APPLY_THREAD, runtime.run_apply(apply, Arc::clone(&clock)))?);
        let queue = Arc::clone(&background.mailbox);
        runtime.start_worker("cortado-background", queue, move || background.turn())?;
        let queue = Arc::clone(&log_reader.queue);
        runtime.start_worker("cortado-log-read", queue, move || log_reader.turn())?;
        for _ in 0..SNAPSHOT_THREADS {
            let (mut builder, queue) = (builder.another(), Arc::clone(&builder.queue));
            runtime.start_worker(SNAPSHOT_THREAD, queue, move || builder.turn())?;
            let (mut installer, queue) = (installer.another(), Arc::clone(&installer.queue));
            runtime.start_worker(SNAPSHOT_THREAD, queue, move || installer.turn())?;
        }
        let run = runtime.run_store(store_loop, clock, tick, stop_timeout);
        runtime.store_thread = Some(runtime.spawn(STORE_THREAD, run)?);
        Ok(runtime)
    }

    /// A handle for requests and for delivering messages.
    pub fn handle(&self) -> StoreHandle<S> {
        self.handle.clone()
    }

    /// Stops gracefully: offers leadership to other stores for at most `stop_timeout` and serves meanwhile. Then it
    /// refuses requests, answers those that wait, applies committed entries, flushes the key-value store and closes the
    /// log. Blocks until all threads have ended, so do not call it on an async worker thread.
    ///
    /// # Errors
    ///
    /// - `Poisoned`: the store had failed, or a thread ended in a panic.
    /// - `Store`: the last flush failed; the next start replays more of the log.
    pub fn stop(mut self) -> Result<(), StopError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), StopError> {
        self.phase.fetch_max(DRAINING, Ordering::SeqCst);
        self.handle.context.mailbox.wake();
        let mut clean = self.store_thread.take().is_none_or(|t| t.join().is_ok());
        self.phase.fetch_max(ENDING, Ordering::SeqCst);
        self.apply.mailbox.wake();
        self.wakers.iter().for_each(|wake| wake());
        for worker in self.workers.drain(..) {
            clean &= worker.join().is_ok();
        }
        let poisoned = self.handle.poisoned();
        let flushed = if poisoned.is_none() { self.store.flush() } else { Ok(()) };
        self.log.close();
        match poisoned {
            Some(why) => Err(StopError::Poisoned(why)),
            None if !clean => Err(StopError::Poisoned("a thread ended in a panic".to_string())),
            None => Ok(flushed?),
        }
    }

    /// Spawns a thread whose panic poisons the store and closes its mailbox. Dropping the queued requests fails their
    /// futures.
    fn spawn(&self, name: &'static str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        let (context, apply) = (Arc::clone(&self.handle.context), Arc::clone(&self.apply));
        std::thread::Builder::new().name(name.to_string()).spawn(move || {
            // The body's state is dropped with it, so no half-changed state remains visible.
            if std::panic::catch_unwind(AssertUnwindSafe(body)).is_err() {
                context.health.poison(&format!("thread {name} panicked"));
                match name {
                    STORE_THREAD => drop(context.mailbox.close()),
                    APPLY_THREAD => drop(apply.mailbox.close()),
                    _ => {}
                }
                context.mailbox.wake();
                apply.mailbox.wake();
            }
        })
    }

    fn run_store(
        &self,
        mut store: StoreLoop,
        clock: Arc<dyn Clock>,
        tick: Duration,
        stop_timeout: Duration,
    ) -> impl FnOnce() + Send + 'static + use<S> {
        let phase = Arc::clone(&self.phase);
        let mailbox = Arc::clone(&self.handle.context.mailbox);
        let health = Arc::clone(&self.handle.context.health);
        move || {
            let mut stop_deadline: Option<MonoTime> = None;
            let mut pace = Pace::default();
            loop {
                let now = clock.now();
                if phase.load(Ordering::SeqCst) >= DRAINING && stop_deadline.is_none() {
                    stop_deadline = Some(now.plus(stop_timeout));
                    store.begin_stop(now);
                }
                let busy = store.turn(&*clock);
                if let Some(deadline) = stop_deadline
                    && (store.continue_stop(now) || now >= deadline || health.poisoned().is_some())
                {
                    return store.finish_stop();
                }
                if !busy {
                    let timeout = store.until_tick(clock.now()).min(tick);
                    gather::wait(&mailbox, timeout, &mut pace, &*clock);
                }
            }
        }
    }

    fn run_apply(&self, mut apply: ApplyLoop<S>, clock: Arc<dyn Clock>) -> impl FnOnce() + Send + 'static + use<S> {
        let phase = Arc::clone(&self.phase);
        let queue = Arc::clone(&self.apply);
        move || {
            let mut pace = Pace::default();
            loop {
                let ending = phase.load(Ordering::SeqCst) >= ENDING;
                if !apply.turn() {
                    if ending {
                        return;
                    }
                    gather::wait(&queue.mailbox, IDLE, &mut pace, &*clock);
                }
            }
        }
    }

    /// Starts a thread that runs the turns of a worker. It may leave its queue behind at the end.
    fn start_worker<T: Send + 'static>(
        &mut self,
        name: &'static str,
        queue: Arc<Mailbox<T>>,
        mut turn: impl FnMut() -> bool + Send + 'static,
    ) -> std::io::Result<()> {
        let (phase, woken) = (Arc::clone(&self.phase), Arc::clone(&queue));
        self.wakers.push(Box::new(move || woken.wake()));
        let run = move || {
            while phase.load(Ordering::SeqCst) < ENDING {
                if !turn() {
                    queue.wait(IDLE);
                }
            }
        };
        self.workers.push(self.spawn(name, run)?);
        Ok(())
    }
}

impl<S: Store> Drop for StoreRuntime<S> {
    fn drop(&mut self) {
        if self.store_thread.is_none() {
            return;
        }
        if let Err(error) = self.shut_down() {
            tracing::warn!(%error, "store did not stop cleanly");
        }
    }
}
