//! Recovers a region's Raft state from its log group, and reconciles it with the applied position.

use engine::log::LogEngine;
use raft::eraftpb::HardState;

use super::log_op::group;
use crate::error::OpenError;
use crate::records::{self, LogPosition, SnapshotIntent};
use crate::region::{LogIndex, RegionId};

/// The durable Raft state of a region.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recovered {
    pub(crate) hard_state: HardState,
    pub(crate) start: LogPosition,
    pub(crate) last: LogIndex,
    /// An unfinished snapshot installation. The log group is still the one from before it. `reconcile` sets start and
    /// end to the snapshot's position, as they are for raft-rs during an installation.
    pub(crate) intent: Option<SnapshotIntent>,
}

/// Reads a group. `None` if it does not exist or has no start yet (an interrupted bootstrap).
pub(crate) fn recover(log: &LogEngine, region: RegionId) -> Result<Option<Recovered>, OpenError> {
    let group = group(region);
    let damaged = |what: String| OpenError::Damaged { region, what };
    let Some(bounds) = log.bounds(group) else { return Ok(None) };
    let read = |key: &[u8]| log.get(group, key);
    let (Some(hard_state), Some(start)) = (read(records::HARD_STATE_KEY)?, read(records::LOG_START_KEY)?) else {
        return Ok(None);
    };
    let hard_state = records::decode_hard_state(&hard_state).map_err(|e| damaged(e.to_string()))?;
    let start = records::decode_position(&start).map_err(|e| damaged(e.to_string()))?;
    let intent = match read(records::INTENT_KEY)? {
        None => None,
        Some(bytes) => Some(records::decode_intent(&bytes).map_err(|e| damaged(e.to_string()))?),
    };
    let empty = bounds.last < bounds.first;
    if !empty && bounds.first > start.index.get() + 1 {
        return Err(damaged(format!("its log starts at {} instead of after {}", bounds.first, start.index)));
    }
    let last = if empty { start.index.get() } else { bounds.last.max(start.index.get()) };
    Ok(Some(Recovered { hard_state, start, last: LogIndex::new(last), intent }))
}

impl Recovered {
    /// Reconciles the state with the applied position of the key-value store. That may be ahead of the durable commit
    /// index, which is written only along with entries; everything applied had been committed. It must not be beyond
    /// the end of the log or before its start.
    pub(crate) fn reconcile(&mut self, region: RegionId, applied: LogPosition) -> Result<(), OpenError> {
        let damaged = |what: String| Err(OpenError::Damaged { region, what });
        if let Some(SnapshotIntent { key, .. }) = &self.intent {
            self.start = LogPosition { index: key.index, term: key.term };
            self.last = key.index;
            self.hard_state.commit = key.index.get();
        }
        let last = self.last.get();
        if applied.index < self.start.index && self.intent.is_none() {
            return damaged(format!(
                "applied index {} is before the start of its log, {}",
                applied.index, self.start.index
            ));
        }
        if applied.index > self.last {
            return damaged(format!("applied index {} is after the end of its log, {last}", applied.index));
        }
        if self.hard_state.commit > last {
            return damaged(format!("commit index {} is after the end of its log, {last}", self.hard_state.commit));
        }
        if applied.term.max(self.start.term).get() > self.hard_state.term {
            return damaged(format!(
                "applied term {} is after the current term, {}",
                applied.term.max(self.start.term),
                self.hard_state.term
            ));
        }
        self.hard_state.commit = self.hard_state.commit.max(applied.index.get());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Term;

    fn state(start: u64, commit: u64, last: u64) -> Recovered {
        Recovered {
            hard_state: HardState { term: 4, vote: 1, commit },
            start: LogPosition { index: LogIndex::new(start), term: Term::new(2) },
            last: LogIndex::new(last),
            intent: None,
        }
    }

    fn reconciled(mut state: Recovered, applied: u64) -> Result<u64, OpenError> {
        state.reconcile(RegionId::new(1), LogPosition { index: LogIndex::new(applied), term: Term::new(3) })?;
        Ok(state.hard_state.commit)
    }

    /// tikv#4560, #11885: the applied index survived a crash, the latest commit index did not.
    #[test]
    fn applied_ahead_of_durable_commit_raises_the_commit_index() {
        assert_eq!(reconciled(state(1, 5, 10), 8).unwrap(), 8);
        assert_eq!(reconciled(state(1, 9, 10), 8).unwrap(), 9);
    }

    #[test]
    fn contradictory_state_is_refused() {
        assert!(reconciled(state(5, 6, 10), 4).is_err());
        assert!(reconciled(state(5, 6, 10), 11).is_err());
        assert!(reconciled(state(5, 11, 10), 6).is_err());
    }
}
