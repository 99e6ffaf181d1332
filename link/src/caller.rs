//! The requesting side of a link (pure): which requests are pending, what waits to be sent, and what becomes of each
//! request when its answer comes, its time is up, its caller goes away, or the connection breaks.
//!
//! A caller of `submit` passes a waiter, which every result comes back with; the edge ([`crate::client`]) wakes it, and
//! tests read it. Time is the time since the link's owner began. The state outlives connections:
//!
//! ```text
//! Idle ── submit ──▶ Connecting ── connected ──▶ Up ── broken, heard from it ──▶ Idle
//!                     │      ▲                    └─── broken, never heard ───┐
//!                     │      └── submit, later ── Waiting ◀───────────────────┤
//!                     └───────── connect_failed ──────────────────────────────┘
//! ```
//!
//! While the state is `Waiting`, requests fail at once. After a GoAway they fail until that connection has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::message::{Kind, Message, PAYLOAD_BYTES_MAX, Reason, Refused, RequestId};
use crate::outbox::{Outbox, Removed};

/// The least time between two searches for requests whose time is up.
const EXPIRY_GRAIN: Duration = Duration::from_millis(10);

/// Limits and times of the requesting side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerOptions {
    /// The most requests without an answer. Default 16,384, minimum 1.
    pub requests_max: usize,
    /// The most bytes of requests that wait to be sent. Default 64 MiB. A larger request is accepted while none waits.
    pub unsent_bytes_max: usize,
    /// After this time without a message from the other side it is asked for one. Default 1 s.
    pub keep_alive: Duration,
    /// After this time without an answer to that, the connection counts as broken. Default 2 s.
    pub keep_alive_timeout: Duration,
    /// How long requests fail at once after the first failed connection; doubled by each further one. Default 20 ms.
    pub backoff_min: Duration,
    /// The longest such time. Default 500 ms.
    pub backoff_max: Duration,
}

impl Default for CallerOptions {
    fn default() -> CallerOptions {
        CallerOptions {
            requests_max: 16_384,
            unsent_bytes_max: 64 << 20,
            keep_alive: Duration::from_secs(1),
            keep_alive_timeout: Duration::from_secs(2),
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_millis(500),
        }
    }
}

/// Why a request has no answer. Grouped by whether it may have been executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Not executed: a limit of the link or of the other node is reached.
    #[error("busy: {0}")]
    Busy(String),
    /// Not executed: no connection, or the other node refused the request unread.
    #[error("{0}")]
    Unreachable(String),
    /// Not executed, and no node would: it is malformed or too large.
    #[error("{0}")]
    Invalid(String),
    /// It left this node, and no answer came: it may have been executed, and may still be.
    #[error("{0}")]
    Lost(String),
}

/// How a request ended.
pub type Outcome = Result<Bytes, CallError>;

/// A request as it is submitted.
#[derive(Clone, Debug)]
pub struct Submission {
    /// What it asks for.
    pub kind: Kind,
    /// The encoded request.
    pub payload: Bytes,
    /// How long its caller waits.
    pub timeout: Duration,
}

/// An accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its number, for [`Caller::cancel`].
    pub id: RequestId,
    /// The edge opens a connection now.
    pub connect: bool,
    /// Nothing will share its frame, as far as can be told: no other request is pending, and the last frame had one
    /// request at most.
    pub alone: bool,
    /// The edge asks for [`Caller::next_timer`] again: this request's time is up before the timer that is set.
    pub sooner: bool,
}

/// What a timer found.
#[derive(Debug)]
pub struct Tick<W> {
    /// Requests whose time is up.
    pub expired: Vec<(W, CallError)>,
    /// The other side is silent: the edge closes the connection and calls [`Caller::broken`].
    pub dead: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Connecting,
    Up,
    /// As `Up`, but the other side takes no more requests.
    GoingAway,
    /// Fails requests with `why` until then.
    Waiting {
        until: Duration,
        why: String,
    },
    /// For good.
    Closed,
}

#[derive(Debug)]
struct Pending<W> {
    waiter: W,
    deadline: Duration,
    timeout: Duration,
    /// The position in the connection's stream after the frame that completes the request; `None` while it is queued.
    /// The other side can have executed the request once everything up to there has been written.
    end: Option<u64>,
}

/// See the module documentation.
///
/// Invariants:
/// 1. A pending request with `end: None` is in `outbox` or partly sent; all others have left `outbox`.
/// 2. `pending` has at most `requests_max` entries. Every entry leaves it exactly once, with one outcome, or none if
///    its caller went away.
/// 3. Unless the state is `Up` or `GoingAway`, no entry has an `end`; only while it is one of these or `Connecting` are
///    there entries at all.
#[derive(Debug)]
pub struct Caller<W> {
    options: CallerOptions,
    state: State,
    pending: BTreeMap<RequestId, Pending<W>>,
    outbox: Outbox,
    last_id: u64,
    /// Bytes of frames made for this connection.
    framed: u64,
    /// Requests that end in the frame being made.
    in_frame: Vec<RequestId>,
    /// The number of those in the last frame that had any.
    last_batch: usize,
    /// Failed connections since the last that was heard from.
    failures: u32,
    /// Whether anything arrived on this connection.
    ever_heard: bool,
    /// Whether anything arrived since the last probe.
    heard: bool,
    probed: bool,
    /// When the other side is probed next.
    probe_at: Duration,
    /// No pending request's time is up before.
    expiry_at: Option<Duration>,
    /// The timer that the edge has set.
    armed: Option<Duration>,
}

impl<W> Caller<W> {
    /// A side without a connection.
    pub fn new(options: CallerOptions) -> Caller<W> {
        Caller {
            options,
            state: State::Idle,
            pending: BTreeMap::new(),
            outbox: Outbox::default(),
            last_id: 0,
            framed: 0,
            in_frame: Vec::new(),
            last_batch: 0,
            failures: 0,
            ever_heard: false,
            heard: false,
            probed: false,
            probe_at: Duration::ZERO,
            expiry_at: None,
            armed: None,
        }
    }

    /// Requests without an answer.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether there is no connection and none is being opened.
    pub fn is_disconnected(&self) -> bool {
        matches!(self.state, State::Idle | State::Waiting { .. } | State::Closed)
    }

    /// Whether something waits to be sent over the connection.
    pub fn has_output(&self) -> bool {
        matches!(self.state, State::Up | State::GoingAway) && !self.outbox.is_empty()
    }

    /// Accepts a request, or says why it is not sent.
    ///
    /// # Errors
    ///
    /// Every error but `Lost`.
    pub fn submit(&mut self, now: Duration, request: Submission, waiter: W) -> Result<Accepted, CallError> {
        let len = request.payload.len();
        if len > PAYLOAD_BYTES_MAX {
            return Err(CallError::Invalid(format!("a request of {len} bytes; at most {PAYLOAD_BYTES_MAX} are sent")));
        }
        let connect = match &self.state {
            State::Waiting { until, why } if now < *until => return Err(CallError::Unreachable(why.clone())),
            State::Closed => return Err(CallError::Unreachable("the node's address is no longer in use".to_owned())),
            State::GoingAway => return Err(CallError::Unreachable("the node is stopping".to_owned())),
            State::Idle | State::Waiting { .. } => true,
            State::Connecting | State::Up => false,
        };
        if self.pending.len() >= self.options.requests_max {
            return Err(CallError::Busy(format!("{} requests to one node wait for answers", self.pending.len())));
        }
        let unsent = self.outbox.bytes();
        if unsent > 0 && unsent.saturating_add(len) > self.options.unsent_bytes_max {
            return Err(CallError::Busy(format!("{unsent} bytes wait to be sent to one node")));
        }
        if connect {
            self.state = State::Connecting;
        }
        self.last_id += 1;
        let id = RequestId::new(self.last_id);
        let Submission { kind, payload, timeout } = request;
        let deadline = now.saturating_add(timeout);
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        self.outbox.push(Message::Request { id, kind, timeout_ms, payload });
        let alone = self.pending.is_empty() && self.last_batch <= 1;
        self.pending.insert(id, Pending { waiter, deadline, timeout, end: None });
        self.expiry_at = Some(self.expiry_at.map_or(deadline, |earliest| earliest.min(deadline)));
        let sooner = self.armed.is_none_or(|armed| deadline < armed);
        Ok(Accepted { id, connect, alone, sooner })
    }

    /// Asks for a connection ahead of the first request. Returns whether the edge opens one now.
    pub fn open(&mut self, now: Duration) -> bool {
        let connect = match &self.state {
            State::Idle => true,
            State::Waiting { until, .. } => now >= *until,
            State::Connecting | State::Up | State::GoingAway | State::Closed => false,
        };
        if connect {
            self.state = State::Connecting;
        }
        connect
    }

    /// The caller of a request went away. Returns its waiter if the request was pending. Whether a request that was
    /// sent is executed is open.
    pub fn cancel(&mut self, id: RequestId) -> Option<W> {
        let pending = self.pending.remove(&id)?;
        self.withdraw(id, pending.end);
        Some(pending.waiter)
    }

    /// Takes a request back, or tells the other side that nobody waits for its answer.
    fn withdraw(&mut self, id: RequestId, end: Option<u64>) {
        match self.outbox.remove(id) {
            Removed::Unsent | Removed::Partly => assert!(end.is_none(), "request {id} left the outbox before"),
            Removed::Gone => {
                assert!(end.is_some(), "request {id} is nowhere");
                self.outbox.push(Message::Cancel(id));
            }
        }
    }

    /// The connection is open, and the other side has accepted it.
    pub fn connected(&mut self, now: Duration) {
        if self.state == State::Closed {
            return;
        }
        assert_eq!(self.state, State::Connecting, "a connection that nobody asked for");
        self.state = State::Up;
        self.framed = 0;
        (self.ever_heard, self.heard, self.probed) = (false, false, false);
        self.probe_at = now + self.options.keep_alive;
    }

    /// No connection could be opened, or the other side refused it: no pending request was sent.
    pub fn connect_failed(&mut self, now: Duration, why: &str) -> Vec<(W, CallError)> {
        if self.state != State::Closed {
            assert_eq!(self.state, State::Connecting, "a connection that nobody asked for");
            self.wait(now, why);
        }
        self.end_connection(0, why)
    }

    /// The connection broke after its first `written` bytes of frames had been handed to the network. A request whose
    /// last byte is not among them was not executed.
    pub fn broken(&mut self, now: Duration, written: u64, why: &str) -> Vec<(W, CallError)> {
        match self.state {
            State::Closed => {}
            _ if self.ever_heard => self.state = State::Idle,
            _ => self.wait(now, why),
        }
        self.end_connection(written, why)
    }

    /// Ends all requests and accepts no more.
    pub fn close(&mut self, written: u64) -> Vec<(W, CallError)> {
        self.state = State::Closed;
        self.end_connection(written, "the node's address is no longer in use")
    }

    /// Whether [`Caller::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    fn wait(&mut self, now: Duration, why: &str) {
        let pause = self.options.backoff_min.saturating_mul(1 << self.failures.min(20));
        self.failures = self.failures.saturating_add(1);
        self.state = State::Waiting { until: now + pause.min(self.options.backoff_max), why: why.to_owned() };
    }

    fn end_connection(&mut self, written: u64, why: &str) -> Vec<(W, CallError)> {
        self.outbox = Outbox::default();
        (self.expiry_at, self.armed) = (None, None);
        let ended = std::mem::take(&mut self.pending).into_values();
        ended.map(|pending| (pending.waiter, unanswered(pending.end.is_some_and(|end| end <= written), why))).collect()
    }

    /// Appends the next frame to `out`. Returns the number of messages in it.
    pub fn next_frame(&mut self, out: &mut BytesMut) -> usize {
        if !self.has_output() {
            return 0;
        }
        let before = out.len();
        let in_frame = &mut self.in_frame;
        let messages = self.outbox.next_frame(out, |id| in_frame.push(id));
        self.framed += (out.len() - before) as u64;
        if !self.in_frame.is_empty() {
            self.last_batch = self.in_frame.len();
        }
        for id in self.in_frame.drain(..) {
            if let Some(pending) = self.pending.get_mut(&id) {
                pending.end = Some(self.framed);
            }
        }
        messages
    }

    /// A message arrived. Returns the request that it ends. An answer to an unknown request is ignored: its caller went
    /// away, or its time was up.
    ///
    /// # Errors
    ///
    /// The other side breaks the protocol; the edge closes the connection.
    pub fn received(&mut self, message: Message) -> Result<Option<(W, Outcome)>, &'static str> {
        (self.ever_heard, self.heard, self.failures) = (true, true, 0);
        let (id, outcome) = match message {
            Message::Answer { id, payload } => (id, Ok(payload)),
            Message::Refusal { id, refused } => (id, Err(refusal(refused))),
            Message::Pong => return Ok(None),
            Message::GoAway => {
                if self.state == State::Up {
                    self.state = State::GoingAway;
                }
                return Ok(None);
            }
            Message::Request { .. } | Message::Cancel(_) | Message::Ping => {
                return Err("a message that only the requesting side sends");
            }
        };
        let Some(pending) = self.pending.get(&id) else {
            return if id.get() <= self.last_id { Ok(None) } else { Err("an answer to a request that was never made") };
        };
        if pending.end.is_none() {
            return Err("an answer to a request that was not sent");
        }
        Ok(self.pending.remove(&id).map(|pending| (pending.waiter, outcome)))
    }

    /// When [`Caller::timer`] is to be called. The edge sets its timer to it.
    pub fn next_timer(&mut self) -> Option<Duration> {
        let probe_at = matches!(self.state, State::Up | State::GoingAway).then_some(self.probe_at);
        self.armed = [probe_at, self.expiry_at].into_iter().flatten().min();
        self.armed
    }

    /// Ends the requests whose time is up, and probes the other side.
    pub fn timer(&mut self, now: Duration) -> Tick<W> {
        Tick { expired: self.expire(now), dead: self.probe(now) }
    }

    fn expire(&mut self, now: Duration) -> Vec<(W, CallError)> {
        if self.expiry_at.is_none_or(|earliest| now < earliest) {
            return Vec::new();
        }
        let due = self.pending.iter().filter(|(_, pending)| pending.deadline <= now);
        let due: Vec<RequestId> = due.map(|(id, _)| *id).collect();
        let mut expired = Vec::with_capacity(due.len());
        for id in due {
            if let Some(pending) = self.pending.remove(&id) {
                self.withdraw(id, pending.end);
                let why = format!("no answer within {:?}", pending.timeout);
                expired.push((pending.waiter, unanswered(pending.end.is_some(), &why)));
            }
        }
        let next = self.pending.values().map(|pending| pending.deadline).min();
        self.expiry_at = next.map(|next| next.max(now + EXPIRY_GRAIN));
        expired
    }

    /// Returns whether the other side is dead.
    fn probe(&mut self, now: Duration) -> bool {
        if !matches!(self.state, State::Up | State::GoingAway) || now < self.probe_at {
            return false;
        }
        if self.heard {
            (self.heard, self.probed) = (false, false);
            self.probe_at = now + self.options.keep_alive;
        } else if self.probed {
            return true;
        } else {
            self.probed = true;
            self.outbox.push(Message::Ping);
            self.probe_at = now + self.options.keep_alive_timeout;
        }
        false
    }
}

fn unanswered(sent: bool, why: &str) -> CallError {
    if sent { CallError::Lost(why.to_owned()) } else { CallError::Unreachable(why.to_owned()) }
}

fn refusal(refused: Refused) -> CallError {
    match refused.reason {
        Reason::Busy => CallError::Busy(refused.why),
        Reason::Stopping | Reason::UnknownKind => CallError::Unreachable(refused.why),
        Reason::Malformed => CallError::Invalid(refused.why),
    }
}
