//! How the reads of a session choose their snapshot and their replicas. Pure.

use std::sync::Arc;
use std::time::Duration;

use kv::client::{HedgePolicy, ProofPolicy, ReadOptions, ReadTrace, ReplicaPolicy};
use tso::Timestamp;

use super::interval;
use super::moment::Moment;

/// How old a snapshot may be: `cortado.read_staleness`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Staleness {
    /// Not at all.
    #[default]
    Fresh,
    /// As old as this.
    Exact(Duration),
    /// At most as old as this: the newest that the replica can prove.
    AtMost(Duration),
    /// What the replica has applied, without a proof.
    Unbounded,
}

impl Staleness {
    /// Reads a value of the setting.
    pub(crate) fn parse(text: &str) -> Option<Staleness> {
        let text = text.trim();
        if text.is_empty() {
            return Some(Staleness::Fresh);
        }
        if text.eq_ignore_ascii_case("unbounded") {
            return Some(Staleness::Unbounded);
        }
        match text.split_once(char::is_whitespace) {
            Some((word, most)) if word.eq_ignore_ascii_case("max") => interval::duration(most).map(Staleness::AtMost),
            _ => interval::duration(text).map(Staleness::Exact),
        }
    }

    /// Its display form.
    pub(crate) fn show(self) -> String {
        match self {
            Staleness::Fresh => String::new(),
            Staleness::Exact(age) => interval::show(age),
            Staleness::AtMost(age) => format!("max {}", interval::show(age)),
            Staleness::Unbounded => "unbounded".to_owned(),
        }
    }
}

/// Reads a value of `cortado.replica_read`.
pub(crate) fn replica(text: &str) -> Option<ReplicaPolicy> {
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "leader" => ReplicaPolicy::Leader,
        "follower" => ReplicaPolicy::Follower,
        "closest" => ReplicaPolicy::Closest,
        "any" => ReplicaPolicy::Any,
        "learner" => ReplicaPolicy::Learner,
        _ => return None,
    })
}

/// Reads a value of `cortado.hedge`.
pub(crate) fn hedge(text: &str) -> Option<HedgePolicy> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("off") {
        return Some(HedgePolicy::Off);
    }
    if text.eq_ignore_ascii_case("auto") {
        return Some(HedgePolicy::Auto);
    }
    interval::duration(text).map(HedgePolicy::After)
}

/// The display form of a value of `cortado.hedge`.
pub(crate) fn show_hedge(policy: HedgePolicy) -> String {
    match policy {
        HedgePolicy::Off => "off".to_owned(),
        HedgePolicy::Auto => "auto".to_owned(),
        HedgePolicy::After(delay) => interval::show(delay),
    }
}

/// The settings of a session's reads, or those of a statement with hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadSettings {
    pub(crate) replica: ReplicaPolicy,
    pub(crate) staleness: Staleness,
    pub(crate) session_snapshot: bool,
    pub(crate) hedge: HedgePolicy,
    /// Whether grants prove reads. Otherwise each asks for a read index.
    pub(crate) grants: bool,
    /// How long a read waits for a replica that can prove it.
    pub(crate) wait: Duration,
}

impl ReadSettings {
    /// Whether leaders serve the reads of a transaction that has its own snapshot.
    pub(crate) fn is_plain(&self) -> bool {
        self.replica == ReplicaPolicy::Leader && self.hedge == HedgePolicy::Off
    }

    /// The settings of reads at this snapshot. `leader` says who serves fresh reads. A snapshot that is not fresh needs
    /// no leader: the nearest replica serves it, unless others are named.
    pub(crate) fn for_snapshot(self, wanted: &Wanted) -> ReadSettings {
        match (wanted, self.replica) {
            (Wanted::Own, _) => self,
            (_, ReplicaPolicy::Leader) => ReadSettings { replica: ReplicaPolicy::Closest, ..self },
            _ => self,
        }
    }

    /// How long a read waits for what it needs before it can begin. `None`: leaders serve it, and the deadlines of the
    /// clients below count.
    pub(crate) fn patience(&self) -> Option<Duration> {
        (self.replica != ReplicaPolicy::Leader).then_some(self.wait)
    }

    /// The options of reads in a transaction that wants this snapshot. `floor`: the least snapshot that a replica may
    /// take. `read_only`: the transaction never writes. `counts_regions`: whether the reads report their regions.
    pub(crate) fn options(
        &self,
        wanted: &Wanted,
        floor: Option<Timestamp>,
        (read_only, counts_regions): (bool, bool),
    ) -> Arc<ReadOptions> {
        let proof = match wanted {
            Wanted::Stale(Staleness::Unbounded) => ProofPolicy::Unproven,
            _ if self.grants => ProofPolicy::Grants,
            _ => ProofPolicy::ReadIndex,
        };
        let (replica, hedge, patience) = (self.replica, self.hedge, self.wait);
        let trace = if counts_regions { ReadTrace::with_regions() } else { ReadTrace::default() };
        Arc::new(ReadOptions { replica, proof, hedge, floor, read_only, patience, trace })
    }
}

/// The snapshot that a statement or a transaction wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A fresh one. The transaction may write.
    Own,
    /// That of BEGIN AS OF SYSTEM TIME.
    At(Timestamp),
    /// That of a statement's AS OF SYSTEM TIME.
    Clause(Arc<Moment>),
    /// One of this age. Never [`Staleness::Fresh`].
    Stale(Staleness),
    /// The newest that the replica can prove, not below the session's token.
    Session,
}

impl Wanted {
    /// Whether it says that old data is wanted, so that a write is a mistake.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self, Wanted::At(_) | Wanted::Clause(_) | Wanted::Stale(_))
    }

    /// Whether the snapshot has no proof.
    pub(crate) fn is_unproven(&self) -> bool {
        *self == Wanted::Stale(Staleness::Unbounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_they_are_read() {
        for (text, shown) in [
            ("", Some("")),
            ("5s", Some("5s")),
            (" Max  5000 ", Some("max 5s")),
            ("MAX 1min", Some("max 1min")),
            ("Unbounded", Some("unbounded")),
            ("max", None),
            ("min 5s", None),
            ("-5s", None),
            ("max -5s", None),
        ] {
            assert_eq!(Staleness::parse(text).map(Staleness::show).as_deref(), shown, "{text}");
        }
        for (text, shown) in [("AUTO", Some("auto")), ("2ms", Some("2ms")), ("off", Some("off")), ("on", None)] {
            assert_eq!(hedge(text).map(show_hedge).as_deref(), shown, "{text}");
        }
        assert_eq!((replica("Closest"), replica("nearest")), (Some(ReplicaPolicy::Closest), None));
    }
}
