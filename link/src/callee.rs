//! The serving side of a link (pure): which requests are in flight, which are refused, and what waits to be sent.
//!
//! The edge ([`crate::server`]) executes requests and gives each one that does not end at once a handle, which comes
//! back when the request is to be dropped. Every request gets one answer or one refusal, unless it is cancelled or its
//! time is up: then nobody waits. Time is the time since the connection was opened.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::message::{Kind, Message, PAYLOAD_BYTES_MAX, Reason, Refused, Reply, RequestId};
use crate::outbox::Outbox;

/// What an executed request takes at least, for the limit on bytes.
const REQUEST_OVERHEAD: usize = 256;
/// The most messages about the link itself (pongs) that wait to be sent.
const PONGS_MAX: usize = 16;

/// Limits and times of the serving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalleeOptions {
    /// The most requests in flight; further ones are refused as busy. Default 16,384, minimum 1.
    pub requests_max: usize,
    /// The most bytes of requests in flight. Default 256 MiB. A larger request is accepted while it is alone.
    pub request_bytes_max: usize,
    /// No request is read while more bytes of answers wait to be sent. Default 8 MiB.
    pub answer_bytes_pause: usize,
    /// With more bytes of answers waiting the connection is closed: its reader is too slow. Default 256 MiB.
    pub answer_bytes_max: usize,
    /// A connection is closed after this time without a message, or without progress of what is sent. Default 10 s;
    /// above what the requesting side needs to probe.
    pub silence_max: Duration,
}

impl Default for CalleeOptions {
    fn default() -> CalleeOptions {
        CalleeOptions {
            requests_max: 16_384,
            request_bytes_max: 256 << 20,
            answer_bytes_pause: 8 << 20,
            answer_bytes_max: 256 << 20,
            silence_max: Duration::from_secs(10),
        }
    }
}

/// What the edge does about a received message.
#[derive(Debug)]
pub enum Action<H> {
    /// Nothing.
    None,
    /// Execute a request, and call [`Callee::answered`] with its reply.
    Start {
        /// The request.
        id: RequestId,
        /// What it asks for.
        kind: Kind,
        /// The encoded request.
        payload: Bytes,
    },
    /// Drop this request: nobody waits for its answer.
    Drop(H),
}

/// What a timer found.
#[derive(Debug)]
pub struct Tick<H> {
    /// Requests to drop: their time is up.
    pub expired: Vec<H>,
    /// The other side is silent, or does not read: the edge closes the connection.
    pub dead: bool,
}

#[derive(Debug)]
struct InFlight<H> {
    handle: Option<H>,
    bytes: usize,
    deadline: Duration,
}

/// See the module documentation.
///
/// Invariants:
/// 1. `request_bytes` is the sum of the bytes in `in_flight`, which has at most `requests_max` entries.
/// 2. A request leaves `in_flight` once; with its answer or refusal if the other side still waits.
#[derive(Debug)]
pub struct Callee<H> {
    options: CalleeOptions,
    in_flight: BTreeMap<RequestId, InFlight<H>>,
    request_bytes: usize,
    outbox: Outbox,
    pongs: usize,
    stopping: bool,
    /// Whether a message has arrived since the last check.
    heard: bool,
    /// Whether a frame has been made since the last check, or none waited.
    progressed: bool,
    check_at: Duration,
}

impl<H> Callee<H> {
    /// The serving side of a connection that was opened at `now`.
    pub fn new(options: CalleeOptions, now: Duration) -> Callee<H> {
        Callee {
            options,
            in_flight: BTreeMap::new(),
            request_bytes: 0,
            outbox: Outbox::default(),
            pongs: 0,
            stopping: false,
            heard: false,
            progressed: true,
            check_at: now + options.silence_max,
        }
    }

    /// Requests without an answer.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether something waits to be sent.
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether the edge reads further messages. Otherwise answers wait for a reader that is slow.
    pub fn takes_input(&self) -> bool {
        self.outbox.bytes() <= self.options.answer_bytes_pause
    }

    /// Whether so many answers wait that the connection is to be closed.
    pub fn is_overrun(&self) -> bool {
        self.outbox.bytes() > self.options.answer_bytes_max
    }

    /// After [`Callee::stop`]: whether every request is answered and everything has left.
    pub fn is_drained(&self) -> bool {
        self.stopping && self.in_flight.is_empty() && self.outbox.is_empty()
    }

    /// A message arrived.
    ///
    /// # Errors
    ///
    /// The other side breaks the protocol; the edge closes the connection.
    pub fn received(&mut self, now: Duration, message: Message) -> Result<Action<H>, &'static str> {
        self.heard = true;
        match message {
            Message::Request { id, kind, timeout_ms, payload } => {
                if self.in_flight.contains_key(&id) {
                    return Err("two requests of one number");
                }
                let bytes = payload.len() + REQUEST_OVERHEAD;
                if let Some(refused) = self.refusal(bytes) {
                    self.outbox.push(Message::Refusal { id, refused });
                    return Ok(Action::None);
                }
                self.request_bytes += bytes;
                let deadline = now + Duration::from_millis(timeout_ms.into());
                self.in_flight.insert(id, InFlight { handle: None, bytes, deadline });
                Ok(Action::Start { id, kind, payload })
            }
            Message::Cancel(id) => {
                // An answer that still waits is not sent.
                self.outbox.remove(id);
                Ok(self.finish(id).and_then(|request| request.handle).map_or(Action::None, Action::Drop))
            }
            Message::Ping => {
                if self.pongs >= PONGS_MAX {
                    return Err("a flood of pings");
                }
                self.pongs += 1;
                self.outbox.push(Message::Pong);
                Ok(Action::None)
            }
            Message::Answer { .. } | Message::Refusal { .. } | Message::Pong | Message::GoAway => {
                Err("a message that only the serving side sends")
            }
        }
    }

    fn refusal(&self, bytes: usize) -> Option<Refused> {
        let refused = |reason, why: &str| Some(Refused { reason, why: why.to_owned() });
        if self.stopping {
            return refused(Reason::Stopping, "the node is stopping");
        }
        if self.in_flight.len() >= self.options.requests_max {
            return refused(Reason::Busy, "requests of one link");
        }
        if self.request_bytes > 0 && self.request_bytes.saturating_add(bytes) > self.options.request_bytes_max {
            return refused(Reason::Busy, "bytes of requests of one link");
        }
        None
    }

    /// A request does not end at once: `handle` drops it. Returns the handle if the request has ended or was cancelled
    /// meanwhile; a cancelled one is to be dropped.
    pub fn started(&mut self, id: RequestId, handle: H) -> Option<H> {
        match self.in_flight.get_mut(&id) {
            Some(request) => {
                request.handle = Some(handle);
                None
            }
            None => Some(handle),
        }
    }

    /// A request ended. Its reply is queued, if anybody waits for it.
    pub fn answered(&mut self, id: RequestId, reply: Reply) {
        if self.finish(id).is_none() {
            return;
        }
        self.outbox.push(match reply {
            Ok(payload) if payload.len() > PAYLOAD_BYTES_MAX => {
                let why = format!("an answer of {} bytes; at most {PAYLOAD_BYTES_MAX} are sent", payload.len());
                Message::Refusal { id, refused: Refused { reason: Reason::Malformed, why } }
            }
            Ok(payload) => Message::Answer { id, payload },
            Err(refused) => Message::Refusal { id, refused },
        });
    }

    fn finish(&mut self, id: RequestId) -> Option<InFlight<H>> {
        let request = self.in_flight.remove(&id)?;
        self.request_bytes -= request.bytes;
        Some(request)
    }

    /// Appends the next frame to `out`. Returns the number of messages in it.
    pub fn next_frame(&mut self, out: &mut BytesMut) -> usize {
        self.progressed = true;
        // Pongs are short, and each frame takes what is short in order.
        self.pongs = 0;
        self.outbox.next_frame(out, |_| {})
    }

    /// The node is stopping: requests in flight are finished, further ones refused.
    pub fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.outbox.push(Message::GoAway);
        }
    }

    /// The requests in flight, to be dropped: the connection is gone.
    pub fn end(&mut self) -> Vec<H> {
        self.request_bytes = 0;
        std::mem::take(&mut self.in_flight).into_values().filter_map(|request| request.handle).collect()
    }

    /// When [`Callee::timer`] is to be called.
    pub fn next_timer(&self) -> Duration {
        self.check_at
    }

    /// Drops the requests whose time is up, and checks that the other side lives and reads. `unread` says that what was
    /// written last has not been taken by the network.
    pub fn timer(&mut self, now: Duration, unread: bool) -> Tick<H> {
        if now < self.check_at {
            return Tick { expired: Vec::new(), dead: false };
        }
        self.check_at = now + self.options.silence_max;
        let due = self.in_flight.iter().filter(|(_, request)| request.deadline <= now);
        let due: Vec<RequestId> = due.map(|(id, _)| *id).collect();
        let expired = due.into_iter().filter_map(|id| self.finish(id)).filter_map(|request| request.handle).collect();
        let reads = std::mem::take(&mut self.progressed) || !unread;
        // While input is paused, silence is our own doing.
        let speaks = std::mem::take(&mut self.heard) || !self.takes_input();
        Tick { expired, dead: !reads || !speaks }
    }
}
