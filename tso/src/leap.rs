//! The leap: whether the oracle's time of a new leader starts at the mark, or leaps forward to the wall clocks. Pure.
//!
//! A leap expires every lock, so it must not happen while transactions run. Without one, a cluster that was down for
//! days would have an oracle that lags for days, because its time catches up slowly ([`crate::oracle`]).
//!
//! Neither the memory nor the clock of the leader's own process can decide. A node that restarts among running nodes
//! knows as little as the first leader of a cluster that restarts; a node that has heard of a leader does not know
//! whether that leader has served; and a slow clock hides the lag. So a leader that has received no timestamp for
//! [`LAG_MAX`], or none since it started, asks all nodes of the cluster, whatever its clock says. Every node of a
//! running cluster fetches a timestamp each second, so no handover there waits for answers.
//!
//! 1. One node that has received a timestamp within [`LAG_MAX`] refuses the leap: its transactions may be running.
//! 2. The leap goes to the latest time that a *majority* of the system region's voters have reached. So no single
//!    wrong clock decides, neither a fast nor a slow one. It is due if the mark is [`LAG_MAX`] or more behind that.
//! 3. The leader waits for the answers of all nodes, unless what is missing cannot make a leap due. After
//!    [`SURVEY_LIMIT`] the answers of a majority of the voters suffice.
//! 4. Without a majority it starts at the mark after [`MAJORITY_LIMIT`]. A leader has a quorum that answers it, so
//!    that is a fault of something else.
//!
//! What is known when the time leaps: of the nodes that answered, no process has received a timestamp within
//! [`LAG_MAX`]. Either it has just started, and its transactions of before have ended with the process before, or its
//! commits have failed, because a client waits for a timestamp for a third of that. A node that was silent for
//! [`SURVEY_LIMIT`] may have running transactions. The leap expires their locks, and whoever meets one may roll its
//! transaction back; that costs the transaction, never a commit that was acknowledged.
//!
//! What remains of a lag: less than [`LAG_MAX`] behind what a majority had reached, which is caught up within twice
//! that. A larger lag remains, and is caught up at half the pace of time, if a majority did not report in time, if the
//! clocks of those that did were wrong, or if clocks jumped forward or all machines were suspended while transactions
//! ran.

use std::time::Duration;

use crate::timestamp::Timestamp;

/// A mark that is less than this behind the clocks of a majority is caught up slowly. It is also how long a node must
/// have received no timestamp. Three times as long as [`crate::TsoClient`] waits for one.
pub const LAG_MAX: Duration = Duration::from_secs(30);
/// How long a new leader waits for the answers of all nodes. Nobody is served meanwhile.
pub const SURVEY_LIMIT: Duration = Duration::from_secs(5);
/// How long a new leader waits for the answers of a majority of the voters. Nobody is served meanwhile.
pub const MAJORITY_LIMIT: Duration = Duration::from_secs(30);

/// What a node knows about the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeReport {
    /// Its wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// How long ago it received its newest timestamp; [`Duration::MAX`] if it received none since it started.
    pub quiet: Duration,
}

/// The answers of the nodes, that of the new leader included.
///
/// Invariant: there are at most as many answers as nodes.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The number of voters of the system region, and that of the other nodes.
    voters: usize,
    others: usize,
    /// What the clocks of the voters that have answered showed when the leader began to ask.
    walls_ms: Vec<u64>,
    /// The number of other nodes that have answered.
    others_answered: usize,
    /// Whether a node has received a timestamp within [`LAG_MAX`].
    is_refused: bool,
}

/// The outcome of a [`Survey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// The time starts at this wall clock, in milliseconds since the Unix epoch.
    To(u64),
    /// The time starts at the mark, which lags little.
    NotDue,
    /// Transactions may be running: the time starts at the mark.
    Refused,
    /// Too few voters have answered for too long: the time starts at the mark.
    Unknown,
    /// Answers are missing: the leader waits for the next one, or until the next limit.
    Undecided,
}

/// Whether a new leader asks the nodes: it has received no timestamp for `quiet` ([`TimeReport::quiet`]). A new cluster
/// has no mark, and no transactions.
pub fn must_ask(mark: Timestamp, quiet: Duration) -> bool {
    mark != Timestamp::ZERO && quiet >= LAG_MAX
}

impl Survey {
    /// A survey of that many voters of the system region, the leader included, and that many other nodes.
    pub fn new(voters: usize, others: usize) -> Survey {
        Survey { voters, others, walls_ms: Vec::new(), others_answered: 0, is_refused: false }
    }

    /// A voter has answered, after the leader has asked for `waited`. The leader itself answers first, at once.
    pub fn voter_answered(&mut self, report: TimeReport, waited: Duration) {
        self.walls_ms.push(report.wall_ms.saturating_sub(as_ms(waited)));
        self.is_refused |= report.quiet < LAG_MAX;
        assert!(self.walls_ms.len() <= self.voters, "one answer of each voter");
    }

    /// Another node has answered.
    pub fn other_answered(&mut self, report: TimeReport) {
        self.others_answered += 1;
        self.is_refused |= report.quiet < LAG_MAX;
        assert!(self.others_answered <= self.others, "one answer of each node");
    }

    /// Decides by the rules of the module documentation. `mark` is what the leader found, `waited` the time for which
    /// it has asked.
    pub fn decide(&self, mark: Timestamp, waited: Duration) -> Leap {
        if self.is_refused {
            return Leap::Refused;
        }
        let mut walls_ms: Vec<u64> = self.walls_ms.iter().map(|wall_ms| wall_ms + as_ms(waited)).collect();
        walls_ms.sort_unstable_by(|a, b| b.cmp(a));
        let is_due = |wall_ms: u64| wall_ms.saturating_sub(mark.physical_ms()) >= as_ms(LAG_MAX);
        // The clock at this position and all before it, a majority, have reached that time.
        let majority = self.voters / 2;
        let silent = self.voters - walls_ms.len();
        // The same if all silent clocks were ahead of these.
        let latest = majority.checked_sub(silent).and_then(|position| walls_ms.get(position));
        if latest.is_some_and(|wall_ms| !is_due(*wall_ms)) {
            return Leap::NotDue;
        }
        let is_complete = silent == 0 && self.others_answered == self.others;
        match walls_ms.get(majority) {
            None if waited < MAJORITY_LIMIT => Leap::Undecided,
            None => Leap::Unknown,
            Some(_) if !is_complete && waited < SURVEY_LIMIT => Leap::Undecided,
            Some(wall_ms) if is_due(*wall_ms) => Leap::To(*wall_ms),
            Some(_) => Leap::NotDue,
        }
    }
}

fn as_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::MAX;
    const AT_ONCE: Duration = Duration::ZERO;
    /// The marks of these tests are 0 ms after the epoch, but for a count.
    const MARK: Timestamp = Timestamp::from_raw(1);
    const DUE_MS: u64 = LAG_MAX.as_millis() as u64;

    /// A survey in which these voters answer at once.
    fn survey(voters: usize, others: usize, answers: &[(u64, Duration)]) -> Survey {
        let mut survey = Survey::new(voters, others);
        for (wall_ms, quiet) in answers {
            survey.voter_answered(TimeReport { wall_ms: *wall_ms, quiet: *quiet }, AT_ONCE);
        }
        survey
    }

    /// What the survey decides after so long, if these voters have answered then. None has received a timestamp.
    fn decide(voters: usize, others: usize, walls_ms: &[u64], waited: Duration) -> Leap {
        let mut survey = Survey::new(voters, others);
        for wall_ms in walls_ms {
            survey.voter_answered(TimeReport { wall_ms: *wall_ms, quiet: NEVER }, waited);
        }
        survey.decide(MARK, waited)
    }

    #[test]
    fn only_a_node_without_a_recent_timestamp_asks() {
        assert!(must_ask(MARK, NEVER) && must_ask(MARK, LAG_MAX));
        assert!(!must_ask(MARK, LAG_MAX - Duration::from_millis(1)));
        assert!(!must_ask(Timestamp::ZERO, NEVER), "a new cluster");
    }

    #[test]
    fn target_is_what_a_majority_of_clocks_has_reached() {
        let target = |voters, beyond_ms: &[u64]| {
            let walls_ms: Vec<u64> = beyond_ms.iter().map(|ms| 60_000 + ms).collect();
            match decide(voters, 0, &walls_ms, SURVEY_LIMIT) {
                Leap::To(leap_ms) => leap_ms - 60_000,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(target(1, &[7]), 7);
        assert_eq!(target(3, &[900, 100]), 100);
        assert_eq!(target(3, &[100, 900, 101]), 101);
        assert_eq!(target(3, &[1, 100, 101]), 100);
        assert_eq!(target(4, &[4, 3, 2]), 2);
    }

    /// An early answer has aged until the survey is decided.
    #[test]
    fn answers_of_different_times_are_compared() {
        let mut survey = survey(2, 1, &[(60_000, NEVER)]);
        survey.voter_answered(TimeReport { wall_ms: 62_001, quiet: NEVER }, Duration::from_secs(2));
        assert_eq!(survey.decide(MARK, Duration::from_secs(2)), Leap::Undecided);
        assert_eq!(survey.decide(MARK, SURVEY_LIMIT), Leap::To(65_000));
    }

    /// Whatever the leader's own clock says, the first answer here.
    #[test]
    fn a_majority_of_clocks_makes_a_leap_due() {
        let (early, late) = (DUE_MS - 1, DUE_MS);
        assert_eq!(decide(3, 0, &[0, late, late], AT_ONCE), Leap::To(late));
        assert_eq!(decide(3, 0, &[late, early, early], AT_ONCE), Leap::NotDue);
        assert_eq!(decide(3, 0, &[0, early, late], AT_ONCE), Leap::NotDue);
        assert_eq!(decide(3, 0, &[60_000, 10_000], SURVEY_LIMIT), Leap::NotDue, "one clock is no majority");
    }

    #[test]
    fn a_minority_of_answers_decides_nothing() {
        let short = MAJORITY_LIMIT - Duration::from_millis(1);
        for (voters, answers) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)] {
            let walls_ms = vec![90_000; answers];
            assert_eq!(decide(voters, 0, &walls_ms, short), Leap::Undecided, "{answers} of {voters}");
            assert_eq!(decide(voters, 0, &walls_ms, MAJORITY_LIMIT), Leap::Unknown, "{answers} of {voters}");
        }
    }

    #[test]
    fn a_majority_decides_without_the_rest_only_after_the_limit() {
        let short = SURVEY_LIMIT - Duration::from_millis(1);
        assert_eq!(decide(3, 0, &[60_000, 60_001], short), Leap::Undecided);
        assert_eq!(decide(3, 0, &[60_000, 60_001], SURVEY_LIMIT), Leap::To(60_000));
        assert_eq!(decide(3, 0, &[60_000, 60_001, 60_002], AT_ONCE), Leap::To(60_001));
        assert_eq!(decide(3, 1, &[60_000, 60_001, 60_002], short), Leap::Undecided, "a gateway is silent");
        assert_eq!(decide(3, 1, &[60_000, 60_001, 60_002], SURVEY_LIMIT), Leap::To(60_001));
        assert_eq!(decide(3, 0, &[0, 60_000], AT_ONCE), Leap::Undecided, "the third clock decides");
    }

    /// A quick restart, with two nodes down: whatever their clocks say, no majority makes a leap due.
    #[test]
    fn an_answer_that_changes_nothing_is_not_waited_for() {
        assert_eq!(decide(3, 1, &[DUE_MS - 1, 0], AT_ONCE), Leap::NotDue);
    }

    #[test]
    fn one_node_with_a_recent_timestamp_refuses() {
        let recent = LAG_MAX - Duration::from_millis(1);
        let late = DUE_MS + 100;
        assert_eq!(survey(2, 0, &[(late, NEVER), (late, LAG_MAX)]).decide(MARK, AT_ONCE), Leap::To(late));
        assert_eq!(survey(2, 0, &[(late, NEVER), (late, recent)]).decide(MARK, AT_ONCE), Leap::Refused);
        assert_eq!(survey(3, 0, &[(late, recent)]).decide(MARK, AT_ONCE), Leap::Refused);
        for (quiet, expected) in [(recent, Leap::Refused), (NEVER, Leap::To(late))] {
            let mut gateway = survey(2, 1, &[(late, NEVER), (late, NEVER)]);
            gateway.other_answered(TimeReport { wall_ms: 0, quiet });
            assert_eq!(gateway.decide(MARK, AT_ONCE), expected);
        }
    }
}
