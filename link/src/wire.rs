//! The connection under both sides of a link: who writes when, and what wakes the link's task. The transport of Raft
//! messages, whose streams have one direction and other frames, sends over it too.
//!
//! Whoever has something to send may write it: [`Wire::flush`] takes the frames of the side's state machine until none
//! is left or the network takes no more. One writes at a time, and nobody waits for another writer: the writer looks
//! again after it is done. A request that is alone is written by its caller, without a wake-up. Otherwise the link's
//! task is woken and lets the other ready tasks run first, so that what they send shares its frame. No timer delays
//! anything.
//!
//! Only [`Wire::flush`] writes to the socket and only [`Input`] reads from it; TLS would lie below them.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Sleep;

use crate::metrics::WireMetrics;

/// Where a wire takes its frames from. Called with the writer's lock held; takes the state's lock inside.
pub trait Frames {
    /// Appends the next frame and returns its number of messages; 0 and nothing if there is none.
    fn next_frame(&self, out: &mut BytesMut) -> usize;
}

/// What is being written. Invariant: `buffer` holds the rest of one frame.
#[derive(Debug, Default)]
struct Writer {
    buffer: BytesMut,
    /// Bytes of frames that the network has taken.
    written: u64,
    /// Nothing is written any more: the link has ended.
    closed: bool,
    failure: Option<io::Error>,
}

/// What woke the link's task.
#[derive(Debug, Default)]
pub struct Ready {
    /// Somebody rang: there is something to send, or the timer changed.
    pub rung: bool,
    /// What was read; an error also if the other side has closed.
    pub read: Option<io::Result<()>>,
    /// The network takes bytes again.
    pub writable: bool,
    /// The timer has ended.
    pub timer: bool,
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Wire {
    stream: OwnedWriteHalf,
    writer: Mutex<Writer>,
    /// Somebody found the writer's lock taken: its holder looks again.
    again: AtomicBool,
    /// `Writer::failure` is set.
    failed: AtomicBool,
    /// The network took only a part.
    blocked: AtomicBool,
    rung: AtomicBool,
    task: AtomicWaker,
    metrics: WireMetrics,
}

impl Wire {
    /// Both halves of a connection.
    pub fn new(stream: TcpStream, metrics: WireMetrics) -> (Wire, Input) {
        metrics.open.inc();
        let (input, stream) = stream.into_split();
        let wire = Wire {
            stream,
            writer: Mutex::default(),
            again: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            rung: AtomicBool::new(false),
            task: AtomicWaker::new(),
            metrics,
        };
        (wire, Input(input))
    }

    /// Wakes the link's task.
    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.task.wake();
        }
    }

    /// Writes what `frames` has, as far as the network takes it. Does not wait. A failure is kept for
    /// [`Wire::take_failure`], and the link's task is woken.
    pub fn flush(&self, frames: &impl Frames) {
        loop {
            let writer = self.writer.try_lock().or_else(|| {
                self.again.store(true, Ordering::SeqCst);
                // Either this sees the lock released, or its holder, after releasing it, sees `again`.
                fence(Ordering::SeqCst);
                self.writer.try_lock()
            });
            let Some(mut writer) = writer else { return };
            self.write(&mut writer, frames);
            drop(writer);
            fence(Ordering::SeqCst);
            if !self.again.swap(false, Ordering::SeqCst) {
                return;
            }
        }
    }

    fn write(&self, writer: &mut Writer, frames: &impl Frames) {
        if writer.closed || writer.failure.is_some() {
            return;
        }
        loop {
            if writer.buffer.is_empty() {
                writer.buffer.clear();
                let messages = frames.next_frame(&mut writer.buffer);
                if messages == 0 && writer.buffer.is_empty() {
                    if self.blocked.swap(false, Ordering::AcqRel) {
                        // The link's task may have stopped reading meanwhile.
                        self.ring();
                    }
                    return;
                }
                self.metrics.sent_frames.inc();
                self.metrics.sent_messages.inc_by(messages as u64);
                self.metrics.sent_bytes.inc_by(writer.buffer.len() as u64);
            }
            match self.stream.try_write(&writer.buffer) {
                Ok(taken) => {
                    writer.buffer.advance(taken);
                    writer.written += taken as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.blocked.swap(true, Ordering::AcqRel) {
                        // The link's task waits until the network takes more.
                        self.ring();
                    }
                    return;
                }
                Err(error) => {
                    writer.failure = Some(error);
                    self.failed.store(true, Ordering::Release);
                    self.ring();
                    return;
                }
            }
        }
    }

    /// The failure that ended writing. Locks only if there is one: a flush that finds the lock taken relies on its
    /// holder to look again.
    pub fn take_failure(&self) -> Option<io::Error> {
        if self.failed.load(Ordering::Acquire) { self.writer.lock().failure.take() } else { None }
    }

    /// Whether written bytes wait for the other side to read.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire)
    }

    /// Whether all frames that were made have been taken by the network. For a side that has no more to send: a flush
    /// that meets this look finds nothing.
    pub fn is_idle(&self) -> bool {
        self.writer.try_lock().is_some_and(|writer| writer.buffer.is_empty())
    }

    /// Ends writing for good. Returns how many bytes of frames the network has taken.
    pub fn close(&self) -> u64 {
        let mut writer = self.writer.lock();
        writer.closed = true;
        writer.written
    }

    /// What the link's task has to do; pending while that is nothing. Reads into the buffer beside `input`, if there
    /// is one.
    pub fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        timer: Pin<&mut Sleep>,
        input: Option<(&mut Input, &mut BytesMut)>,
    ) -> Poll<Ready> {
        self.task.register(cx.waker());
        let ready = Ready {
            rung: self.rung.swap(false, Ordering::AcqRel),
            read: input.and_then(|(input, buffer)| input.read(cx, buffer, &self.metrics)),
            // A failed connection is writable; the write then returns the error.
            writable: self.is_blocked() && self.stream.as_ref().poll_write_ready(cx).is_ready(),
            timer: timer.poll(cx).is_ready(),
        };
        let is_ready = ready.rung || ready.read.is_some() || ready.writable || ready.timer;
        if is_ready { Poll::Ready(ready) } else { Poll::Pending }
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Input(OwnedReadHalf);

impl Input {
    /// Appends what has arrived to `buffer`: one read, which also learns that nothing more is there if it finds less
    /// than there is room for. `None` if nothing has arrived; then the task is woken when something does.
    fn read(&mut self, cx: &mut Context<'_>, buffer: &mut BytesMut, metrics: &WireMetrics) -> Option<io::Result<()>> {
        let result = match pin!(self.0.read_buf(buffer)).poll(cx) {
            Poll::Pending => return None,
            Poll::Ready(Ok(0)) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the node closed the connection")),
            Poll::Ready(Ok(taken)) => {
                metrics.received_bytes.inc_by(taken as u64);
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(error),
        };
        Some(result)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.metrics.open.dec();
    }
}
