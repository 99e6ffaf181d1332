//! What the client knows of stores and replicas: load, answering time, recent failures, safe_ts.
//!
//! [`StoreStates`] is pure: it takes the time of each observation. Only reads with options are observed, so a plain
//! read of a leader takes no lock here. All of it is hints: they decide whom to ask first, never what is right.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use raftstore::{PeerMeta, PeerRole, Region, RegionError, RegionId, StoreId};
use tokio::time::Instant;
use tso::Timestamp;

use super::choice::{Candidate, Covers, Role};
use super::endpoint::CallError;
use super::locality::Nearness;
use crate::api::{Served, ServerError};

/// How long a measured time or a safe_ts counts. After it, the store is tried again.
const FORGET_AFTER: Duration = Duration::from_secs(60);
/// How long a load that a store has named counts.
const LOAD_AGE_MAX: Duration = Duration::from_millis(500);
/// How far the safe_ts of a replica may be below a snapshot, beside the time since it was seen, before others are
/// preferred.
const BEHIND: Duration = Duration::from_secs(1);
/// The most replicas whose safe_ts is known.
const REPLICAS_MAX: usize = 16_384;

/// How long a store or a replica is avoided: from the first failure, doubled with each further one, up to the second.
#[derive(Clone, Copy, Debug)]
struct Pause(Duration, Duration);

/// A store that was not reached, or did not answer.
const FAILED: Pause = Pause(Duration::from_millis(100), Duration::from_secs(2));
/// A store that refuses work.
const BUSY: Pause = Pause(Duration::from_millis(20), Duration::from_millis(500));
/// A store that a hedge has overtaken. Often it was one slow read; a store that hangs is overtaken again.
const OVERTAKEN: Pause = Pause(Duration::from_millis(10), Duration::from_millis(80));
/// A replica that cannot serve.
const REFUSED: Pause = Pause(Duration::from_millis(50), Duration::from_secs(1));

/// Failures since the last answer.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    count: u32,
    until: Option<Instant>,
}

impl Failures {
    fn add(&mut self, now: Instant, Pause(first, most): Pause) {
        let pause = first.saturating_mul(1 << self.count.min(16)).min(most);
        self.count = self.count.saturating_add(1);
        // A longer pause that was given before stays.
        self.until = self.until.max(Some(now + pause));
    }

    fn avoid(self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

#[derive(Debug, Default)]
struct StoreState {
    /// Requests of this client in flight.
    in_flight: u32,
    /// The load that the store named, and when.
    load: Option<(u32, Instant)>,
    /// The smoothed time of an answer, and when the last one came.
    rtt: Option<(Duration, Instant)>,
    failures: Failures,
}

#[derive(Debug, Default)]
struct ReplicaState {
    /// The newest safe_ts that it named, and when.
    safe_ts: Option<(Timestamp, Instant)>,
    failures: Failures,
    /// Refusals of reads for which it had no grant at once.
    uncovered: Failures,
}

/// The states of the stores and replicas that reads with options were sent to.
#[derive(Debug, Default)]
pub(super) struct StoreStates {
    stores: BTreeMap<StoreId, StoreState>,
    replicas: HashMap<(RegionId, StoreId), ReplicaState>,
}

impl StoreStates {
    /// Counts a request as in flight.
    pub(super) fn enter(&mut self, store: StoreId) {
        let state = self.stores.entry(store).or_default();
        state.in_flight = state.in_flight.saturating_add(1);
    }

    /// Ends a request that was counted.
    pub(super) fn leave(&mut self, store: StoreId) {
        let state = self.stores.entry(store).or_default();
        state.in_flight = state.in_flight.saturating_sub(1);
    }

    /// Learns from an answer of a replica that came after `time`. `served` is what it said about itself.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        (region, store): (RegionId, StoreId),
        time: Duration,
        served: Option<&Served>,
    ) {
        let state = self.stores.entry(store).or_default();
        state.failures = Failures::default();
        state.rtt = Some((smooth(recent(state.rtt, now, FORGET_AFTER), time), now));
        let Some(served) = served else { return };
        state.load = Some((served.load, now));
        let replica = self.replica((region, store));
        (replica.failures, replica.uncovered) = (Failures::default(), Failures::default());
        let newest = replica.safe_ts.map_or(served.safe_ts, |(safe_ts, _)| safe_ts.max(served.safe_ts));
        replica.safe_ts = Some((newest, now));
    }

    /// Learns from a failed call to a replica.
    pub(super) fn failed(&mut self, now: Instant, (region, store): (RegionId, StoreId), error: &CallError) {
        match error {
            CallError::Unreachable { .. }
            | CallError::Lost { .. }
            | CallError::Server(ServerError::Failed(_) | ServerError::Undetermined(_)) => {
                self.stores.entry(store).or_default().failures.add(now, FAILED);
            }
            CallError::Server(ServerError::Region(RegionError::ServerBusy { .. })) => {
                self.stores.entry(store).or_default().failures.add(now, BUSY);
            }
            CallError::Server(ServerError::Region(_)) => self.replica((region, store)).failures.add(now, REFUSED),
            // The replica served.
            CallError::Server(ServerError::Key(_) | ServerError::TooLarge { .. } | ServerError::Invalid(_)) => {}
        }
    }

    /// A replica refused a read that it could not answer at once.
    pub(super) fn uncovered(&mut self, now: Instant, (region, store): (RegionId, StoreId)) {
        self.replica((region, store)).uncovered.add(now, REFUSED);
    }

    /// A hedge answered before the store did.
    pub(super) fn overtaken(&mut self, now: Instant, store: StoreId) {
        self.stores.entry(store).or_default().failures.add(now, OVERTAKEN);
    }

    /// The replicas of a region for a read at `start_ts`; [`Timestamp::ZERO`] for a snapshot that is not taken yet.
    pub(super) fn candidates(
        &self,
        now: Instant,
        (region, leader): (&Region, StoreId),
        start_ts: Timestamp,
        near: impl Fn(StoreId) -> Nearness,
    ) -> Vec<Candidate> {
        let peers = region.peers.iter();
        peers.map(|peer| self.candidate(now, (region, leader), start_ts, (*peer, near(peer.store)))).collect()
    }

    /// One of them, and how near its store is.
    pub(super) fn candidate(
        &self,
        now: Instant,
        (region, leader): (&Region, StoreId),
        start_ts: Timestamp,
        (peer, near): (PeerMeta, Nearness),
    ) -> Candidate {
        let (store, role) = (
            peer.store,
            match peer.role {
                _ if peer.store == leader => Role::Leader,
                PeerRole::Voter => Role::Follower,
                PeerRole::Learner => Role::Learner,
            },
        );
        let state = self.stores.get(&store);
        let replica = self.replicas.get(&(region.id, store)).filter(|_| role != Role::Leader);
        let rtt = state.filter(|_| near != Nearness::Own).and_then(|state| recent(state.rtt, now, FORGET_AFTER));
        let load = state.map_or(0, |state| recent(state.load, now, LOAD_AGE_MAX).unwrap_or(0).max(state.in_flight));
        let failing = state.is_some_and(|state| state.failures.avoid(now));
        Candidate {
            store,
            role,
            near,
            rtt: rtt.unwrap_or(Duration::ZERO),
            load,
            avoid: failing || replica.is_some_and(|replica| replica.avoid(now, start_ts)),
            store_fails: failing,
            covers: match replica {
                _ if role == Role::Leader => Covers::Yes,
                Some(replica) => replica.covers(now, start_ts),
                None => Covers::Maybe,
            },
        }
    }

    fn replica(&mut self, key: (RegionId, StoreId)) -> &mut ReplicaState {
        if self.replicas.len() >= REPLICAS_MAX && !self.replicas.contains_key(&key) {
            self.replicas.clear();
        }
        self.replicas.entry(key).or_default()
    }
}

impl ReplicaState {
    fn avoid(&self, now: Instant, start_ts: Timestamp) -> bool {
        let is_behind = |(safe_ts, seen): (Timestamp, Instant)| {
            let since = now.saturating_duration_since(seen);
            let distance = Duration::from_millis(start_ts.physical_ms().saturating_sub(safe_ts.physical_ms()));
            since < FORGET_AFTER && distance > since + BEHIND
        };
        self.failures.avoid(now) || self.safe_ts.is_some_and(is_behind)
    }

    fn covers(&self, now: Instant, start_ts: Timestamp) -> Covers {
        let is_proven = |(safe_ts, _)| start_ts != Timestamp::ZERO && safe_ts >= start_ts;
        match self.safe_ts.is_some_and(is_proven) {
            _ if self.uncovered.avoid(now) => Covers::No,
            true => Covers::Yes,
            false => Covers::Maybe,
        }
    }
}

/// The value, unless it is older than `most`.
fn recent<T>(value: Option<(T, Instant)>, now: Instant, most: Duration) -> Option<T> {
    value.filter(|(_, seen)| now.saturating_duration_since(*seen) < most).map(|(value, _)| value)
}

/// A mean of recent times, which follows a shorter time faster than a longer one: what lasts long is often the work,
/// not the way.
fn smooth(before: Option<Duration>, time: Duration) -> Duration {
    let Some(before) = before else { return time };
    if time < before { (before + time) / 2 } else { before + (time - before) / 16 }
}

#[cfg(test)]
mod tests {
    use raftstore::{Epoch, PeerId};

    use super::*;
    use crate::api::ReadPath;

    const ONE: StoreId = StoreId::new(1);
    const TWO: StoreId = StoreId::new(2);
    const REGION: RegionId = RegionId::new(7);

    #[expect(clippy::disallowed_methods, reason = "there is no other way to an instant; the tests add to it")]
    fn start() -> Instant {
        Instant::now()
    }

    fn region() -> Region {
        let peers = [(1, PeerRole::Voter), (2, PeerRole::Voter), (3, PeerRole::Learner)];
        let peer = |(id, role)| PeerMeta { id: PeerId::new(id), store: StoreId::new(id), role };
        let epoch = Epoch { conf_ver: 1, version: 1 };
        Region { id: REGION, start: Vec::new(), end: Vec::new(), epoch, peers: peers.map(peer).to_vec() }
    }

    /// The candidate of store 2, a follower.
    fn follower(states: &StoreStates, now: Instant, start_ts: Timestamp) -> Candidate {
        let candidates = states.candidates(now, (&region(), ONE), start_ts, |_| Nearness::Far);
        assert_eq!(candidates.iter().map(|c| c.role).collect::<Vec<_>>(), Role::ALL);
        candidates[1]
    }

    fn served(safe_ts: Timestamp, load: u32) -> Served {
        Served { store: TWO, path: ReadPath::Grant, start_ts: safe_ts, safe_ts, asked: 0, load }
    }

    fn ts(ms: u64) -> Timestamp {
        Timestamp::new(ms, 0)
    }

    #[test]
    fn a_failing_store_is_avoided_longer_and_longer_until_it_answers() {
        let (mut states, mut now) = (StoreStates::default(), start());
        let error = CallError::Lost { store: TWO, why: String::new() };
        let mut pauses = Vec::new();
        for _ in 0..7 {
            states.failed(now, (REGION, TWO), &error);
            let mut pause = Duration::ZERO;
            while follower(&states, now, ts(1)).avoid {
                (now, pause) = (now + Duration::from_millis(50), pause + Duration::from_millis(50));
            }
            pauses.push(pause.as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 2_000, 2_000]);
        states.failed(now, (REGION, TWO), &error);
        states.answered(now, (REGION, TWO), Duration::ZERO, None);
        assert!(!follower(&states, now, ts(1)).avoid);
    }

    #[test]
    fn a_refusal_concerns_one_replica_and_an_overtaking_the_store() {
        let (mut states, now) = (StoreStates::default(), start());
        let refused = ServerError::from(RegionError::NotReady { region: REGION, why: String::new() });
        states.failed(now, (RegionId::new(8), TWO), &refused.clone().into());
        assert!(!follower(&states, now, ts(1)).avoid, "another region's replica");
        states.failed(now, (REGION, TWO), &refused.into());
        assert!(follower(&states, now, ts(1)).avoid);
        let mut states = StoreStates::default();
        states.overtaken(now, TWO);
        assert!(follower(&states, now, ts(1)).avoid);
        assert!(!follower(&states, now + Duration::from_millis(10), ts(1)).avoid);
    }

    #[test]
    fn a_replica_far_behind_is_avoided_for_new_snapshots_and_covers_old_ones() {
        let (mut states, now) = (StoreStates::default(), start());
        states.answered(now, (REGION, TWO), Duration::ZERO, Some(&served(ts(100_000), 0)));
        for (start_ts, avoid, covers) in [
            (ts(99_999), false, Covers::Yes),
            (ts(100_000), false, Covers::Yes),
            (ts(101_000), false, Covers::Maybe),
            (ts(101_001), true, Covers::Maybe),
        ] {
            let found = follower(&states, now, start_ts);
            assert_eq!((found.avoid, found.covers), (avoid, covers), "{start_ts}");
        }
        // It goes on while nobody looks.
        assert!(!follower(&states, now + Duration::from_secs(5), ts(105_500)).avoid);
        assert!(!follower(&states, now + FORGET_AFTER, ts(9_000_000)).avoid, "nothing is known any more");
        assert!(!follower(&states, now, Timestamp::ZERO).avoid, "no snapshot yet");
        states.uncovered(now, (REGION, TWO));
        let refused = follower(&states, now, ts(99_999));
        assert_eq!((refused.avoid, refused.covers), (false, Covers::No), "it serves reads that may wait");
    }

    #[test]
    fn the_load_is_what_is_in_flight_or_what_the_store_named() {
        let (mut states, now) = (StoreStates::default(), start());
        let load = |states: &StoreStates, now| follower(states, now, ts(1)).load;
        states.enter(TWO);
        states.enter(TWO);
        assert_eq!(load(&states, now), 2);
        states.answered(now, (REGION, TWO), Duration::ZERO, Some(&served(ts(1), 9)));
        assert_eq!(load(&states, now), 9);
        assert_eq!(load(&states, now + LOAD_AGE_MAX), 2);
        states.leave(TWO);
        states.leave(TWO);
        states.leave(TWO);
        assert_eq!(load(&states, now + LOAD_AGE_MAX), 0);
    }

    #[test]
    fn the_time_of_answers_is_smoothed_and_forgotten() {
        let (mut states, now) = (StoreStates::default(), start());
        let rtt = |states: &StoreStates, now| follower(states, now, ts(1)).rtt;
        assert_eq!(rtt(&states, now), Duration::ZERO, "unknown: it is tried");
        for (ms, expected) in [(28, 28_000), (60, 30_000), (28, 29_000)] {
            states.answered(now, (REGION, TWO), Duration::from_millis(ms), None);
            assert_eq!(rtt(&states, now), Duration::from_micros(expected));
        }
        assert_eq!(rtt(&states, now + FORGET_AFTER), Duration::ZERO);
    }

    #[test]
    fn what_is_known_of_replicas_is_bounded() {
        let (mut states, now) = (StoreStates::default(), start());
        for region in 0..3 * REPLICAS_MAX as u64 {
            states.answered(now, (RegionId::new(region), TWO), Duration::ZERO, Some(&served(ts(1), 0)));
            assert!(states.replicas.len() <= REPLICAS_MAX);
        }
    }
}
