//! The choice of the safe point of garbage collection. Pure.
//!
//! Every node reports with its heartbeats how far its transactions look back: a bound that also counts for all that
//! begin later ([`Oldest`]). So the safe point is below the least bound, and no live transaction ever is at or below
//! it, however short the ttl is. Only a snapshot that is asked for in the past (AS OF SYSTEM TIME) may come too late;
//! its reads fail then.
//!
//! A node that has been silent for [`HOLDS_FOR`] holds nothing back any more: it may never come back. Its transactions
//! get errors if it does. A new leader waits as long for a registered node that it has not heard of.

use std::time::Duration;

use raftstore::StoreId;
use tso::Timestamp;

use super::cluster::{ClusterView, Oldest, ViewTime};

/// For how long after its last heartbeat a node holds the safe point back.
pub const HOLDS_FOR: Duration = Duration::from_secs(30);

/// What keeps the safe point from rising further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// The ttl: versions are kept for so long.
    Ttl,
    /// The oldest transaction of a node.
    Node(StoreId, Oldest),
    /// A node that has not reported since this leader leads, or has not had a timestamp yet.
    Unheard(StoreId),
}

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The safe point; not below the present one.
    pub safe_point: Timestamp,
    /// Why it is not greater.
    pub held_by: HeldBy,
}

/// Chooses the safe point. `present`: the one that was chosen last. `now`: about the oracle's time. The view began at
/// `began`, and it is `at` by the same clock.
pub fn choose(
    present: Timestamp,
    (now, ttl): (Timestamp, Duration),
    view: &ClusterView,
    (began, at): (ViewTime, ViewTime),
) -> Choice {
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let by_ttl = Timestamp::new(now.physical_ms().saturating_sub(ttl_ms), 0);
    let mut choice = Choice { safe_point: by_ttl, held_by: HeldBy::Ttl };
    for entry in view.stores() {
        let (store, last_seen) = (entry.heartbeat.store, entry.last_seen());
        if at.saturating_sub(last_seen.unwrap_or(began)) > HOLDS_FOR {
            continue;
        }
        let (most, held_by) = match entry.heartbeat.oldest.filter(|_| last_seen.is_some()) {
            Some(oldest) => (oldest.bound.max(Timestamp::from_raw(1)).prev(), HeldBy::Node(store, oldest)),
            None => (Timestamp::ZERO, HeldBy::Unheard(store)),
        };
        if most < choice.safe_point {
            choice = Choice { safe_point: most, held_by };
        }
    }
    Choice { safe_point: choice.safe_point.max(present), ..choice }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::Heartbeat;
    use super::*;

    const TTL: Duration = Duration::from_millis(100);
    const NOW: Timestamp = Timestamp::new(1_000, 0);

    fn ts(ms: u64) -> Timestamp {
        Timestamp::new(ms, 0)
    }

    fn heard(view: &mut ClusterView, store: u64, bound: Option<u64>, at: u64) {
        let heartbeat = Heartbeat {
            store: StoreId::new(store),
            address: String::new(),
            pg_address: String::new(),
            locality: String::new(),
            version: String::new(),
            oldest: bound.map(|bound| Oldest { bound: ts(bound), session: Some(7) }),
            regions: Vec::new(),
        };
        view.apply_heartbeat(heartbeat, Duration::from_secs(at));
    }

    fn chosen(view: &ClusterView, present: u64, at: u64) -> (Timestamp, HeldBy) {
        let Choice { safe_point, held_by } =
            choose(ts(present), (NOW, TTL), view, (Duration::ZERO, Duration::from_secs(at)));
        (safe_point, held_by)
    }

    #[test]
    fn the_ttl_and_the_oldest_transaction_of_any_node_hold_it_back() {
        let mut view = ClusterView::new();
        heard(&mut view, 1, Some(950), 1);
        heard(&mut view, 2, Some(990), 1);
        assert_eq!(chosen(&view, 0, 1), (ts(900), HeldBy::Ttl));
        heard(&mut view, 2, Some(800), 2);
        let held = HeldBy::Node(StoreId::new(2), Oldest { bound: ts(800), session: Some(7) });
        assert_eq!(chosen(&view, 0, 2), (ts(800).prev(), held), "below the bound: reads and writes at it go on");
        assert_eq!(chosen(&view, 850, 2), (ts(850), held), "it never falls");
    }

    #[test]
    fn a_silent_node_holds_it_back_for_a_while_and_an_unknown_one_too() {
        let mut view = ClusterView::new();
        heard(&mut view, 1, Some(990), 1);
        view.add_registered(StoreId::new(3), "node-3", "");
        assert_eq!(chosen(&view, 5, 1), (ts(5), HeldBy::Unheard(StoreId::new(3))));
        assert_eq!(chosen(&view, 5, 31), (ts(900), HeldBy::Ttl), "a new leader does not wait for ever");
        heard(&mut view, 3, Some(700), 31);
        assert_eq!(chosen(&view, 5, 61).0, ts(700).prev());
        assert_eq!(chosen(&view, 5, 62), (ts(900), HeldBy::Ttl));
        heard(&mut view, 3, None, 63);
        assert_eq!(chosen(&view, 5, 63), (ts(5), HeldBy::Unheard(StoreId::new(3))), "it has had no timestamp");
    }
}
