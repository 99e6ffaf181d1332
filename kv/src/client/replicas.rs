//! Reads at the replica of their choice: one attempt of a read in one region, hedged if it is slow.
//!
//! `choice.rs` orders the replicas; this is the edge that asks them, one after the other, and learns from what they
//! answer (`stores.rs`). A replica that does not lead gets the read with the proof that it needs
//! ([`RequestBody::Replica`]); the leader gets the plain read. The leader ends every attempt: what it answers, and only
//! that, is a failure of the attempt, and the retry loop of every request goes on from there.
//!
//! # Hedges
//!
//! A read that is slow for its class is sent to one more replica (`hedge.rs`), which answers at once or refuses. The
//! first answer wins, and the other request is dropped; over a link that cancels it. Nothing but a get, a batch get or
//! a scan comes here, so no write and no lock is ever sent twice by it.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use raftstore::{RegionContext, RegionError, RegionId, StoreId};
use tokio::time::Instant;
use tso::Timestamp;

use super::choice::{self, Candidate, Role, Suppressed};
use super::endpoint::CallError;
use super::error::ClientError;
use super::hedge::ReadClass;
use super::locality::Nearness;
use super::options::{HedgePolicy, ProofPolicy, ReadOptions, ReadReport, Reading, ReplicaPolicy};
use super::region_cache::Route;
use super::retry::{ReadFailure, now};
use super::router::Router;
use crate::api::{ReadPath, ReplicaProof, ReplicaRead, Request, RequestBody, Response, Served, ServerError};
use crate::key::Key;

/// How long a read waits for the answer of another node that does not lead, beside four times what its answers take.
const ANSWER_WAIT: Duration = Duration::from_millis(500);

/// A read in one region.
struct RegionRead<'a> {
    route: &'a Route,
    reading: Reading<'a>,
    /// As the leader gets it: a get, a batch get or a scan.
    body: RequestBody,
    /// Its snapshot. [`Timestamp::ZERO`]: who serves it takes one.
    start_ts: Timestamp,
    /// When an attempt under way is abandoned.
    cutoff: Option<Instant>,
}

/// What a replica has answered.
struct Answer {
    response: Response,
    by: Candidate,
    /// What the replica said of itself. A leader that got the plain read says nothing.
    served: Option<Served>,
}

/// What an attempt has sent.
#[derive(Default)]
struct Tally {
    requests: u32,
    /// Of the requests that failed.
    round_trips: u32,
}

/// Counts a request as in flight at a store until dropped.
struct InFlight<'a>(&'a Router, StoreId);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.stores.lock().leave(self.1);
    }
}

impl RegionRead<'_> {
    fn is_first(&self) -> bool {
        self.start_ts == Timestamp::ZERO
    }

    /// Of a first read: the least snapshot that it may see.
    fn floor(&self) -> Option<Timestamp> {
        self.reading.options.floor.filter(|_| self.is_first() && self.reading.policy != ReplicaPolicy::Leader)
    }

    /// Whether `to` gets the plain read, which only a leader serves. For the newest snapshot that it can prove without
    /// asking anybody, a leader is asked as the other replicas are.
    fn is_plain(&self, to: Candidate) -> bool {
        to.role == Role::Leader && self.floor().is_none()
    }

    fn proof(&self, to: Candidate) -> ReplicaProof {
        match self.reading.options.proof {
            ProofPolicy::Grants => ReplicaProof::Grant,
            // A read index is a grant for its start_ts: it proves the next pages of a scan, too.
            ProofPolicy::ReadIndex if self.reading.options.trace.is_indexed(self.start_ts, to.store) => {
                ReplicaProof::Grant
            }
            ProofPolicy::ReadIndex => ReplicaProof::ReadIndex,
            ProofPolicy::Unproven => ReplicaProof::Unproven,
        }
    }

    fn proof_of_hedge(&self) -> ReplicaProof {
        match self.reading.options.proof {
            ProofPolicy::Grants | ProofPolicy::ReadIndex => ReplicaProof::Covered,
            ProofPolicy::Unproven => ReplicaProof::Unproven,
        }
    }

    fn request(&self, to: Candidate, proof: ReplicaProof) -> Request {
        let read = self.body.clone();
        let body = if self.is_plain(to) {
            read
        } else {
            RequestBody::Replica(ReplicaRead { read: Box::new(read), proof, floor: self.floor() })
        };
        Request { context: self.route.context(), body }
    }

    /// Whether a replica may have read at `start_ts`. Without a proof it takes what it has applied.
    fn is_snapshot(&self, start_ts: Timestamp) -> bool {
        match self.reading.options.proof {
            ProofPolicy::Unproven => true,
            ProofPolicy::Grants | ProofPolicy::ReadIndex if self.is_first() => {
                start_ts != Timestamp::ZERO && self.floor().is_none_or(|floor| floor <= start_ts)
            }
            ProofPolicy::Grants | ProofPolicy::ReadIndex => start_ts == self.start_ts,
        }
    }

    /// When the attempt at a replica is abandoned: half of the time that is left is the leader's. Another node that
    /// does not answer costs less: it may be hung, and the next replica is not.
    fn limit(&self, to: Candidate, now: Instant) -> Option<Instant> {
        let left = self.cutoff?.saturating_duration_since(now);
        Some(match (to.role, to.near) {
            (Role::Leader, _) => now + left,
            (_, Nearness::Own) => now + left / 2,
            _ => now + (left / 2).min(ANSWER_WAIT + to.rtt * 4),
        })
    }

    /// What is in the response of `to`.
    fn open(&self, to: Candidate, response: Response) -> Result<Answer, CallError> {
        if let Response::Replica { served, .. } = &response
            && !self.is_snapshot(served.start_ts)
        {
            let why = format!("store {} read at {} in place of {}", to.store, served.start_ts, self.start_ts);
            return Err(ServerError::Failed(why).into());
        }
        let named = |served: Served| match (self.reading.options.proof, served.path) {
            (ProofPolicy::ReadIndex, ReadPath::Grant) => Served { path: ReadPath::ReadIndex, ..served },
            _ => served,
        };
        let (response, served) = match response {
            Response::Replica { served, outcome } if self.is_first() => {
                (Response::Started { start_ts: served.start_ts, asked: served.asked, outcome }, Some(served))
            }
            Response::Replica { served, outcome } => (outcome.map_err(ServerError::from)?, Some(named(served))),
            response if self.is_plain(to) => (response, None),
            other => {
                let why = ClientError::unexpected_response("ReplicaRead", &other).to_string();
                return Err(ServerError::Failed(why).into());
            }
        };
        Ok(Answer { response, by: to, served })
    }
}

impl Router {
    /// Sends a read along `route`, once: without options to the target, else as the options say.
    pub(super) async fn attempt_read(
        &self,
        route: &Route,
        reading: Option<Reading<'_>>,
        cutoff: Option<Instant>,
        body: RequestBody,
    ) -> Result<Response, ReadFailure> {
        let start_ts = reading.map_or(Timestamp::ZERO, |_| start_ts_of(&body));
        match reading {
            Some(reading) if cutoff.is_some() || !reading.is_plain() => {
                // Plain reads do not pay for the size of this future.
                Box::pin(self.read_region(&RegionRead { route, reading, body, start_ts, cutoff })).await
            }
            reading => {
                let sent = self.send(route, Request { context: route.context(), body }).await;
                if let (Some(reading), Ok(response)) = (reading, &sent) {
                    let (start_ts, asked) = started_at(response).unwrap_or((start_ts, 0));
                    self.metrics.count_read(Role::Leader, ReadPath::Lease);
                    let round_trips = u32::from(self.own_store != Some(route.store)) + asked;
                    reading.report(report_of(lease(route.store, start_ts), 1, round_trips), route.region.id);
                }
                sent.map_err(|error| ReadFailure { error, at_target: true })
            }
        }
    }

    /// Asks one replica after the other, the leader last. Reports the answer.
    async fn read_region(&self, read: &RegionRead<'_>) -> Result<Response, ReadFailure> {
        let mut tally = Tally::default();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let candidates = self.ordered_candidates(read.route, read.reading.policy, read.start_ts, turn);
        if let Some(answer) = self.ask_own_avoided(read, &candidates, &mut tally).await {
            return Ok(self.report(read, answer, &tally));
        }
        for (at, to) in candidates.into_iter().enumerate() {
            match self.ask_hedged(read, to, &mut tally).await {
                Ok(answer) => {
                    if at > 0 && answer.by.role == Role::Leader {
                        self.metrics.fallbacks.inc();
                    }
                    return Ok(self.report(read, answer, &tally));
                }
                Err(error) => {
                    let at_target = to.role == Role::Leader;
                    if at_target || error.is_final() || self.learn_newer_region(read.route, &error) {
                        return Err(ReadFailure { error, at_target });
                    }
                    tally.round_trips += u32::from(to.near != Nearness::Own);
                }
            }
        }
        let why = "its region has no replica there".to_owned();
        Err(ReadFailure { error: CallError::Unreachable { store: read.route.store, why }, at_target: true })
    }

    /// Asks this node's own replica what it has proved already, if it is one to avoid. That takes no message, and a
    /// node that is cut off has no other replica: its own could not prove something newer, and is avoided for that.
    async fn ask_own_avoided(
        &self,
        read: &RegionRead<'_>,
        candidates: &[Candidate],
        tally: &mut Tally,
    ) -> Option<Answer> {
        let has_snapshot = !read.is_first() || read.floor().is_some();
        let reading = read.reading;
        if !has_snapshot || reading.policy == ReplicaPolicy::Leader || reading.options.proof != ProofPolicy::Grants {
            return None;
        }
        let own = candidates.iter().find(|c| c.near == Nearness::Own && c.avoid && !c.store_fails)?;
        tally.requests += 1;
        // Who leads is a guess while nobody answers, and not asked here.
        let own = Candidate { role: Role::Follower, ..*own };
        self.ask(read, own, ReplicaProof::Covered).await.ok()
    }

    /// The replicas of a region in the order of preference.
    fn ordered_candidates(
        &self,
        route: &Route,
        policy: ReplicaPolicy,
        start_ts: Timestamp,
        turn: usize,
    ) -> Vec<Candidate> {
        let mut candidates = self.candidates(route, start_ts);
        choice::order(policy, turn, &mut candidates);
        candidates
    }

    fn candidates(&self, route: &Route, start_ts: Timestamp) -> Vec<Candidate> {
        let near = |store| match self.own_store {
            Some(own) if own == store => Nearness::Own,
            _ => self.config.locality.nearness(&self.endpoint.locality(store)),
        };
        self.stores.lock().candidates(now(), (&route.region, route.store), start_ts, near)
    }

    /// Asks a replica, and a second one if the first is slow.
    async fn ask_hedged(&self, read: &RegionRead<'_>, to: Candidate, tally: &mut Tally) -> Result<Answer, CallError> {
        tally.requests += 1;
        let mut primary = pin!(self.ask(read, to, read.proof(to)));
        let (policy, class) = (read.reading.options.hedge, ReadClass::of(&read.body));
        let Some(class) = class.filter(|_| policy != HedgePolicy::Off) else { return primary.await };
        let since = now();
        let delay = self.hedges.lock().begin(policy, class);
        if let Some(delay) = delay {
            tokio::select! {
                biased;
                answer = &mut primary => return self.measured(class, since, answer),
                () = tokio::time::sleep(delay) => {}
            }
        }
        let target = delay.ok_or(Suppressed::Unmeasured).and_then(|_| self.hedge_target(read, to));
        let answer = match target {
            Ok(target) => {
                tally.requests += 1;
                self.race(read, primary, to, target).await
            }
            Err(reason) => {
                self.metrics.count_suppressed(reason);
                primary.await
            }
        };
        self.measured(class, since, answer)
    }

    /// Sends a hedge beside `primary`, which `slow` has not answered. The first value wins. What is left is dropped.
    async fn race(
        &self,
        read: &RegionRead<'_>,
        mut primary: impl Future<Output = Result<Answer, CallError>> + Unpin,
        slow: Candidate,
        target: Candidate,
    ) -> Result<Answer, CallError> {
        self.metrics.hedges_sent.inc();
        let mut hedge = pin!(self.ask(read, target, read.proof_of_hedge()));
        let answer = tokio::select! {
            biased;
            answer = &mut primary => match answer {
                Err(error) if !error.is_final() => hedge.await.map_err(|_| error),
                answer => answer,
            },
            answer = &mut hedge => match answer {
                Ok(answer) => {
                    self.stores.lock().overtaken(now(), slow.store);
                    Ok(answer)
                }
                // It was refused, or met a lock that the primary may not meet any more.
                Err(_) => primary.await,
            },
        };
        let is_won = answer.as_ref().is_ok_and(|answer| answer.by.store == target.store);
        if is_won { &self.metrics.hedges_won } else { &self.metrics.hedges_wasted }.inc();
        answer
    }

    /// Where the hedge of a read goes that `primary` has not answered, if the budget allows it.
    fn hedge_target(&self, read: &RegionRead<'_>, primary: Candidate) -> Result<Candidate, Suppressed> {
        let mut candidates = self.candidates(read.route, read.start_ts);
        if read.is_first() && read.floor().is_none() {
            // Of a snapshot that is fresh when the request arrives, only the leader has the proof.
            candidates.retain(|candidate| candidate.role == Role::Leader || candidate.store == primary.store);
        }
        let any_covers = read.reading.options.proof == ProofPolicy::Unproven;
        let target = choice::hedge_target(primary.store, any_covers, &candidates)?;
        if self.hedges.lock().take() { Ok(target) } else { Err(Suppressed::Budget) }
    }

    /// Learns how long a read took.
    fn measured(
        &self,
        class: ReadClass,
        since: Instant,
        answer: Result<Answer, CallError>,
    ) -> Result<Answer, CallError> {
        if answer.is_ok() {
            self.hedges.lock().observe(class, now().saturating_duration_since(since));
        }
        answer
    }

    /// Asks a replica once, and learns from what it does.
    async fn ask(&self, read: &RegionRead<'_>, to: Candidate, proof: ReplicaProof) -> Result<Answer, CallError> {
        let (request, since) = (read.request(to, proof), now());
        self.stores.lock().enter(to.store);
        let _in_flight = InFlight(self, to.store);
        let call = async {
            if to.role == Role::Leader {
                return self.send(read.route, request).await;
            }
            self.metrics.requests.inc();
            self.endpoint.call(to.store, request).await
        };
        let result = match read.limit(to, since) {
            None => call.await,
            Some(limit) => {
                tokio::time::timeout_at(limit, call).await.unwrap_or_else(|_| Err(late(read.route.region.id, to)))
            }
        };
        let result = result.and_then(|response| read.open(to, response));
        self.learn(read, to, proof, since, &result);
        result
    }

    fn learn(
        &self,
        read: &RegionRead<'_>,
        to: Candidate,
        proof: ReplicaProof,
        since: Instant,
        result: &Result<Answer, CallError>,
    ) {
        let (now, replica) = (now(), (read.route.region.id, to.store));
        let time = now.saturating_duration_since(since);
        let mut stores = self.stores.lock();
        match result {
            Ok(answer) => stores.answered(now, replica, time, answer.served.as_ref()),
            Err(error) if error.is_final() => stores.answered(now, replica, time, None),
            Err(CallError::Server(ServerError::Region(error)))
                if proof == ReplicaProof::Covered && !matches!(error, RegionError::ServerBusy { .. }) =>
            {
                stores.uncovered(now, replica);
            }
            Err(error) => stores.failed(now, replica, error),
        }
    }

    /// Whether the refusal of a replica has shown that the region of `route` is outdated.
    fn learn_newer_region(&self, route: &Route, error: &CallError) -> bool {
        let CallError::Server(ServerError::Region(RegionError::EpochNotMatch { current })) = error else {
            return false;
        };
        let mut cache = self.cache.write();
        let is_newer = cache.learn_newer(route, current);
        self.update_region_gauge(&cache);
        is_newer
    }

    /// Counts and reports an answer.
    fn report(&self, read: &RegionRead<'_>, answer: Answer, tally: &Tally) -> Response {
        let Answer { response, by, served } = answer;
        let (start_ts, asked) = started_at(&response).unwrap_or((read.start_ts, 0));
        let served = served.unwrap_or(Served { asked, ..lease(by.store, start_ts) });
        let message = u32::from(by.near != Nearness::Own);
        let round_trips = tally.round_trips.saturating_add(message).saturating_add(served.asked);
        self.metrics.count_read(by.role, served.path);
        read.reading.report(report_of(served, tally.requests, round_trips), read.route.region.id);
        response
    }

    /// Reads a key at this node's own store within this call, if that is the replica that the options choose and it can
    /// answer at once.
    pub(super) fn try_read(
        &self,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        options: &ReadOptions,
    ) -> Option<Option<Bytes>> {
        if options.replica == ReplicaPolicy::Leader {
            let (store, context) = self.cache.read().lookup_proven(key.1)?;
            return self.try_lease((store, context), key, start_ts, options);
        }
        let route = self.cache.read().lookup(key.1)?;
        let own = self.own_first(&route, options, start_ts)?;
        if own.role == Role::Leader {
            return self.try_lease((own.store, route.context()), key, start_ts, options);
        }
        self.try_covered(&route, own, key, start_ts, options).map(|(value, _)| value)
    }

    fn try_lease(
        &self,
        (store, context): (StoreId, RegionContext),
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        options: &ReadOptions,
    ) -> Option<Option<Bytes>> {
        let value = self.endpoint.try_get(store, context, key, start_ts)?;
        self.served_here(Role::Leader, lease(store, start_ts), context.region, options);
        Some(value)
    }

    /// Reads a key within this call at the newest snapshot that this node's own replica can prove, if the options let a
    /// first read do so and choose that replica.
    pub(super) fn try_first_read(
        &self,
        route: &Route,
        key: (&Key, &[u8]),
        options: &ReadOptions,
    ) -> Option<(Option<Bytes>, Served)> {
        if options.floor.is_none() || options.replica == ReplicaPolicy::Leader {
            return None;
        }
        let own = self.own_first(route, options, Timestamp::ZERO)?;
        if own.role == Role::Leader {
            // It has a newer snapshot than those that it has granted.
            return None;
        }
        self.try_covered(route, own, key, Timestamp::ZERO, options)
    }

    fn try_covered(
        &self,
        route: &Route,
        own: Candidate,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        options: &ReadOptions,
    ) -> Option<(Option<Bytes>, Served)> {
        if options.proof != ProofPolicy::Grants {
            return None;
        }
        let floor = options.floor.filter(|_| start_ts == Timestamp::ZERO);
        let (value, served) = self.endpoint.try_replica_get(own.store, route.context(), key, start_ts, floor)?;
        self.served_here(own.role, served, route.region.id, options);
        Some((value, served))
    }

    /// This node's own replica, if the options choose it. The turn counts only if it serves.
    fn own_first(&self, route: &Route, options: &ReadOptions, start_ts: Timestamp) -> Option<Candidate> {
        let own = self.own_store?;
        let peer = route.region.peer_on(own)?;
        if options.replica == ReplicaPolicy::Closest {
            // Nothing is nearer, so the others need not be looked at.
            let (region, peer) = ((&*route.region, route.store), (peer, Nearness::Own));
            return Some(self.stores.lock().candidate(now(), region, start_ts, peer)).filter(|own| !own.avoid);
        }
        let turn = self.turn.load(Ordering::Relaxed);
        let first = self.ordered_candidates(route, options.replica, start_ts, turn).into_iter().next();
        first.filter(|first| first.store == own)
    }

    /// Counts and reports a read that took no message.
    fn served_here(&self, role: Role, served: Served, region: RegionId, options: &ReadOptions) {
        self.metrics.requests.inc();
        self.metrics.count_read(role, served.path);
        if options.replica == ReplicaPolicy::Any {
            self.turn.fetch_add(1, Ordering::Relaxed);
        }
        options.trace.note_region(region);
        options.trace.add(report_of(served, 1, served.asked));
    }
}

/// The failure of an attempt that was abandoned. This node's own store does not lose requests: its replica waits for a
/// proof.
fn late(region: RegionId, to: Candidate) -> CallError {
    let why = "no answer in time".to_owned();
    match to.near {
        Nearness::Own => ServerError::from(RegionError::NotReady { region, why }).into(),
        _ => CallError::Lost { store: to.store, why },
    }
}

/// The snapshot of a read.
fn start_ts_of(body: &RequestBody) -> Timestamp {
    match body {
        RequestBody::Get { start_ts, .. } | RequestBody::BatchGet { start_ts, .. } => *start_ts,
        RequestBody::Scan(scan) => scan.start_ts,
        other => unreachable!("only reads are sent to replicas, not {other:?}"),
    }
}

/// The snapshot that a first read got, and how often its store asked another node for it.
fn started_at(response: &Response) -> Option<(Timestamp, u32)> {
    if let Response::Started { start_ts, asked, .. } = response { Some((*start_ts, *asked)) } else { None }
}

/// How the leader serves a plain read.
fn lease(store: StoreId, start_ts: Timestamp) -> Served {
    Served { store, path: ReadPath::Lease, start_ts, safe_ts: start_ts, asked: 0, load: 0 }
}

fn report_of(served: Served, requests: u32, round_trips: u32) -> ReadReport {
    let Served { store, path, start_ts, safe_ts, .. } = served;
    ReadReport { path, store, start_ts, safe_ts, requests, round_trips }
}
