//! How a leader gives a grant, without a message.
//!
//! The order of the steps is the proof that everything that can commit at or below `ts` is in the log at or below
//! `index`:
//!
//! 1. `ts` is a timestamp that the oracle has issued *before*. What commits in two phases at or below it fetched its
//!    commit_ts before `ts` was issued, after all its prewrites were acknowledged. So they are applied here, or were in
//!    an earlier term, of which everything committed was applied before step 2.
//! 2. `max_ts` is raised to `ts`. Whatever computes its commit_ts from now on commits above it.
//! 3. The writes under way are looked at ([`InFlight`]). Those that may commit at or below `ts` have an entry in the
//!    log: then `index` is raised to it. One that has none yet takes the grant's timestamp below its own.
//! 4. The applied index is read. What was released before step 3 was applied before.
//! 5. The clock is read, then the lease, or a quorum is asked: nobody else led, so nobody else computed a commit_ts.
//!
//! A later leader computes none before it has asked the oracle for a timestamp of its own, which comes after `ts`.

use std::time::Duration;

use raftstore::{Basis, LogIndex, Region, RegionContext, RegionError, RegionId, Term};
use tso::Timestamp;

use crate::concurrency::{ConcurrencyManager, InFlight};
use crate::grant::Grant;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::region_store::{RegionReads, RegionView};

/// Gives grants for the regions that a store leads.
#[derive(Clone)]
pub(super) struct Giver<H> {
    store: H,
    concurrency: ConcurrencyManager,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

impl<H: RegionReads> Giver<H> {
    /// A giver for `store`, whose reads and writes share `concurrency`.
    pub(super) fn new(store: H, concurrency: ConcurrencyManager) -> Giver<H> {
        Giver {
            store,
            concurrency,
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The giver with this deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> Giver<H> {
        self.planted_bug = bug;
        self
    }

    /// A grant of `region` at `ts`, which the oracle has issued. It is below `ts` if a write under way has no place in
    /// the log yet. `None` if the lease covers nothing.
    ///
    /// # Errors
    ///
    /// [`RegionError`] if this store does not lead the region, or cannot serve yet.
    pub(super) fn try_give(&self, region: RegionId, ts: Timestamp) -> Result<Option<Grant>, RegionError> {
        #[cfg(feature = "planted-bugs")]
        let early = (self.planted_bug == Some(PlantedBug::GrantIndexEarly)).then(|| self.index_of(region)).flatten();
        let look = |_: &Region, term: Term| self.look(region, term, ts);
        let Some((found, applied, Basis { region, .. })) = self.store.sample(region, look)? else { return Ok(None) };
        let grant = into_grant(&region, ts, found, applied);
        #[cfg(feature = "planted-bugs")]
        let grant = Grant { index: early.unwrap_or(grant.index), ..grant };
        Ok(Some(grant))
    }

    /// Steps 2 and 3.
    fn look(&self, region: RegionId, term: Term, ts: Timestamp) -> InFlight {
        let entry = self.concurrency.region(region);
        self.concurrency.raise_max_ts(&entry, ts);
        #[cfg(feature = "planted-bugs")]
        if self.planted_bug == Some(PlantedBug::GrantIgnoresLocks) {
            return InFlight::default();
        }
        // Of earlier terms: applied, or lost.
        entry.retire_before(term);
        entry.in_flight(ts)
    }

    /// As [`Giver::try_give`]. Where the lease covers nothing, a quorum confirms the leadership. Waits until the writes
    /// under way have their places in the log, up to `patience`.
    ///
    /// # Errors
    ///
    /// As there.
    pub(super) async fn give(&self, region: RegionId, ts: Timestamp, patience: Duration) -> Result<Grant, RegionError> {
        let entry = self.concurrency.region(region);
        let complete = async {
            loop {
                // Before the look: what gets its place after it wakes us.
                let placed = entry.placed();
                match self.try_give(region, ts)? {
                    Some(grant) if grant.ts < ts => placed.await,
                    given => return Ok(given),
                }
            }
        };
        let given = match tokio::time::timeout(patience, complete).await {
            Ok(given) => given?,
            Err(_) => self.try_give(region, ts)?,
        };
        match given {
            Some(grant) => Ok(grant),
            None => self.give_confirmed(region, ts).await,
        }
    }

    /// The steps with a quorum instead of the lease: one that confirms the leadership *after* the look. What is applied
    /// after that holds all that was applied at the look. A change of the range that is proposed meanwhile moves
    /// nothing below `ts`: whoever leads the new range commits above a timestamp of its own.
    async fn give_confirmed(&self, region: RegionId, ts: Timestamp) -> Result<Grant, RegionError> {
        let state = self.store.replica(region)?;
        let context = RegionContext::from(&*state.region);
        // An entry of the term is applied.
        let term = self.store.read(context).await?.term();
        let found = self.look(region, term, ts);
        let view = self.store.read(context).await?;
        if view.term() != term {
            return Err(RegionError::StaleCommand { region });
        }
        let now = self.store.replica(region)?;
        if now.generation != state.generation {
            return Err(RegionError::StaleCommand { region });
        }
        Ok(into_grant(&state.region, ts, found, now.applied))
    }

    #[cfg(feature = "planted-bugs")]
    fn index_of(&self, region: RegionId) -> Option<LogIndex> {
        self.store.replica(region).ok().map(|state| state.applied)
    }
}

fn into_grant(region: &Region, ts: Timestamp, found: InFlight, applied: LogIndex) -> Grant {
    let ts = found.unplaced.map_or(ts, |min_commit_ts| ts.min(min_commit_ts.prev()));
    Grant { region: region.id, version: region.epoch.version, ts, index: applied.max(found.index) }
}
