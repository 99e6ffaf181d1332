//! The read index queue of a leader: requests, the rounds that confirm them, and the wait for apply.
//!
//! A read is linearizable if it sees everything committed before it arrived. The leader takes its commit index *after*
//! the request arrived, sends heartbeats after that, and a quorum's answers prove that it still led. The read is served
//! once the leader has applied the index. Requests that arrive together share a round. A later request never joins a
//! round that was already sent, because that round's index precedes it (tikv#7971). Heartbeats repeat the newest open
//! round, so a lost one is retried. A request fails after a timeout, and all fail when leadership ends (tikv#10347).

use std::collections::VecDeque;

use crate::error::RegionError;
use crate::region::{LogIndex, RegionId, Term};
use crate::reply::Reply;
use crate::time::MonoTime;

/// A confirmed read: everything up to the index is applied on the leader of the term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadReady {
    /// The confirmed index.
    pub(crate) index: LogIndex,
    /// The leader's term.
    pub(crate) term: Term,
}

/// The reply of a read request.
pub(crate) type ReadReply = Reply<Result<ReadReady, RegionError>>;

/// Most rounds open at once. More would not confirm anything sooner.
const MAX_ROUNDS: usize = 4;

#[derive(Debug)]
struct Request {
    reply: ReadReply,
    deadline: MonoTime,
}

#[derive(Debug)]
struct Round {
    context: u64,
    sent: MonoTime,
    requests: Vec<Request>,
}

/// The reads of one region. Invariants: rounds ascend by context and time of sending; indexes in `waiting` never
/// descend.
#[derive(Debug)]
pub(crate) struct ReadQueue {
    capacity: usize,
    len: usize,
    /// Arrived, not in a round yet.
    arrived: Vec<Request>,
    rounds: VecDeque<Round>,
    /// Confirmed, not applied.
    waiting: VecDeque<(LogIndex, Request)>,
    next_context: u64,
}

impl ReadQueue {
    pub(crate) fn new(capacity: usize) -> ReadQueue {
        ReadQueue {
            capacity,
            len: 0,
            arrived: Vec::new(),
            rounds: VecDeque::new(),
            waiting: VecDeque::new(),
            next_context: 1,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// Whether a confirmed read waits for apply.
    pub(crate) fn waits_for_apply(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Queues a request for the next round.
    pub(crate) fn enqueue(&mut self, reply: ReadReply, deadline: MonoTime) {
        self.len += 1;
        self.arrived.push(Request { reply, deadline });
    }

    /// Treats a request as confirmed by the lease; this is the `ReadIndexUnderOldClock` bug.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn confirm_now(&mut self, reply: ReadReply, deadline: MonoTime, index: LogIndex) {
        self.len += 1;
        self.wait(index, Request { reply, deadline });
    }

    /// Adds a request to the round that is open, if one is; this is the `ReadJoinsOlderRound` bug.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn join_open_round(&mut self, reply: ReadReply, deadline: MonoTime) {
        self.len += 1;
        let request = Request { reply, deadline };
        match self.rounds.front_mut() {
            Some(round) => round.requests.push(request),
            None => self.arrived.push(request),
        }
    }

    /// Opens a round for all queued requests. `None` if there are none (unless `renew` is set, for the lease) or if too
    /// many rounds are open.
    pub(crate) fn open_round(&mut self, now: MonoTime, renew: bool) -> Option<[u8; 8]> {
        if (self.arrived.is_empty() && !renew) || self.rounds.len() >= MAX_ROUNDS {
            return None;
        }
        let context = self.next_context;
        self.next_context += 1;
        self.rounds.push_back(Round { context, sent: now, requests: std::mem::take(&mut self.arrived) });
        Some(context.to_be_bytes())
    }

    /// Whether a round is open.
    pub(crate) fn has_open_round(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// A quorum answered the round with this context. Returns when the round was sent, or `None` for an unknown
    /// context.
    pub(crate) fn confirm(&mut self, context: &[u8], index: LogIndex) -> Option<MonoTime> {
        let context = u64::from_be_bytes(context.try_into().ok()?);
        let at = self.rounds.iter().position(|round| round.context == context)?;
        let round = self.rounds.remove(at)?;
        for request in round.requests {
            self.wait(index, request);
        }
        Some(round.sent)
    }

    fn wait(&mut self, index: LogIndex, request: Request) {
        // Never lowered: an earlier confirmation proves that at least that much is committed.
        let floor = self.waiting.back().map_or(index, |(last, _)| index.max(*last));
        self.waiting.push_back((floor, request));
    }

    /// Answers all reads up to the applied index.
    pub(crate) fn on_applied(&mut self, applied: LogIndex, term: Term) {
        while self.waiting.front().is_some_and(|(index, _)| *index <= applied) {
            if let Some((index, request)) = self.waiting.pop_front() {
                self.len -= 1;
                request.reply.send(Ok(ReadReady { index, term }));
            }
        }
    }

    /// Fails requests whose deadline has passed.
    pub(crate) fn expire(&mut self, now: MonoTime, region: RegionId) {
        let mut late = Vec::new();
        late.extend(self.arrived.extract_if(.., |r| r.deadline <= now));
        for round in &mut self.rounds {
            late.extend(round.requests.extract_if(.., |r| r.deadline <= now));
        }
        let (expired, waiting): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(_, r)| r.deadline <= now);
        self.waiting = waiting;
        late.extend(expired.into_iter().map(|(_, request)| request));
        self.len -= late.len();
        for request in late {
            let why = "no quorum confirmed a read index in time".to_string();
            request.reply.send(Err(RegionError::NotReady { region, why }));
        }
    }

    /// Fails all requests: leadership ended, or the store stops.
    pub(crate) fn fail_all(&mut self, error: &RegionError) {
        self.len = 0;
        let rounds = self.rounds.drain(..).flat_map(|round| round.requests);
        let waiting = self.waiting.drain(..).map(|(_, request)| request);
        for request in self.arrived.drain(..).chain(rounds).chain(waiting) {
            request.reply.send(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
