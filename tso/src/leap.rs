//! The leap: whether the oracle's time of a new leader starts at the mark, or leaps forward to the wall clocks. Pure.
//!
//! A leap expires every lock, so it must not happen while transactions run. Without one, a cluster that was down for
//! days would have an oracle that lags for days, because its time catches up slowly ([`crate::oracle`]).
//!
//! The memory of the leader's own process cannot decide. A node that restarts with a wrong clock among running nodes
//! knows as little as the first leader of a cluster that restarts; and a node that has heard of a leader does not know
//! whether that leader has served. So a leader whose mark lags asks the nodes, which run the transactions:
//!
//! 1. It leaps only if no node that answers has received a timestamp within [`LAG_MAX`]. Every node fetches one each
//!    second, so the oracle has been down for that long, and a commit waits for it ten seconds at most.
//! 2. It leaps to the latest time that a *majority* of the system region's voters have reached. So no single wrong
//!    clock moves the time forward.
//!
//! A leader whose mark lags less than [`LAG_MAX`] does not ask: no handover in a running cluster waits for answers. So
//! after an outage of any length the lag is at most [`LAG_MAX`], which is caught up within twice that, or it is what
//! the clocks of a majority jumped forward while transactions ran.

use std::time::Duration;

use crate::timestamp::Timestamp;

/// A mark that is less than this behind the leader's wall clock is caught up slowly. It is also how long a node must
/// have received no timestamp. Three times as long as [`crate::TsoClient`] waits for one.
pub const LAG_MAX: Duration = Duration::from_secs(30);

/// What a node knows about the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeReport {
    /// Its wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// How long ago it received its newest timestamp; [`Duration::MAX`] if it received none since it started.
    pub quiet: Duration,
}

/// The answers of the nodes that a new leader has reached, its own included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The number of voters of the system region.
    pub voters: usize,
    /// The answers of voters.
    pub from_voters: Vec<TimeReport>,
    /// The answers of other nodes.
    pub from_others: Vec<TimeReport>,
}

/// The outcome of a [`Survey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// The time starts at this wall clock, in milliseconds, if it is later than the mark.
    To(u64),
    /// Transactions may be running: the time starts at the mark.
    Refused,
    /// Too few voters have answered. The leader asks again.
    Unknown,
}

/// Whether a new leader asks the nodes: `mark`, which it finds, lags [`LAG_MAX`] or more behind its wall clock. A new
/// cluster has no mark, and nobody to ask for.
pub fn is_due(mark: Timestamp, wall_ms: u64) -> bool {
    let lag_ms = wall_ms.saturating_sub(mark.physical_ms());
    mark != Timestamp::ZERO && u128::from(lag_ms) >= LAG_MAX.as_millis()
}

impl Survey {
    /// Decides by the two rules of the module documentation.
    pub fn decide(&self) -> Leap {
        let is_quiet = |report: &TimeReport| report.quiet >= LAG_MAX;
        if !self.from_voters.iter().chain(&self.from_others).all(is_quiet) {
            return Leap::Refused;
        }
        let mut walls_ms: Vec<u64> = self.from_voters.iter().map(|report| report.wall_ms).collect();
        walls_ms.sort_unstable_by(|a, b| b.cmp(a));
        // The clock at this position and all before it, a majority, have reached that time.
        walls_ms.get(self.voters / 2).map_or(Leap::Unknown, |wall_ms| Leap::To(*wall_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::MAX;

    fn survey(voters: usize, from_voters: &[(u64, Duration)]) -> Survey {
        let from_voters = from_voters.iter().map(|(wall_ms, quiet)| TimeReport { wall_ms: *wall_ms, quiet: *quiet });
        Survey { voters, from_voters: from_voters.collect(), from_others: Vec::new() }
    }

    #[test]
    fn target_is_what_a_majority_of_clocks_has_reached() {
        assert_eq!(survey(1, &[(7, NEVER)]).decide(), Leap::To(7));
        assert_eq!(survey(3, &[(900, NEVER), (100, NEVER)]).decide(), Leap::To(100));
        assert_eq!(survey(3, &[(100, NEVER), (900, NEVER), (101, NEVER)]).decide(), Leap::To(101));
        assert_eq!(survey(3, &[(1, NEVER), (100, NEVER), (101, NEVER)]).decide(), Leap::To(100));
        assert_eq!(survey(4, &[(4, NEVER), (3, NEVER), (2, NEVER)]).decide(), Leap::To(2));
    }

    #[test]
    fn a_minority_of_answers_decides_nothing() {
        for (voters, answers) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)] {
            assert_eq!(survey(voters, &vec![(1, NEVER); answers]).decide(), Leap::Unknown, "{answers} of {voters}");
        }
    }

    #[test]
    fn one_node_with_a_recent_timestamp_refuses() {
        let recent = LAG_MAX - Duration::from_millis(1);
        assert_eq!(survey(3, &[(900, NEVER), (100, LAG_MAX)]).decide(), Leap::To(100));
        assert_eq!(survey(3, &[(900, NEVER), (100, recent)]).decide(), Leap::Refused);
        assert_eq!(survey(3, &[(900, recent)]).decide(), Leap::Refused);
        let from_others = vec![TimeReport { wall_ms: 100, quiet: recent }];
        let gateway = Survey { from_others, ..survey(3, &[(100, NEVER), (100, NEVER)]) };
        assert_eq!(gateway.decide(), Leap::Refused);
    }
}
