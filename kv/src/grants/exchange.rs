//! The sequence of messages by which a store keeps the grants of another one fresh. Pure.
//!
//! A message names a timestamp and the regions of which something has changed since the message before. All others that
//! were named earlier are granted at the same index and at the new timestamp. The sender has proven that for each of
//! them, also where it says nothing. A receiver that has missed a message takes what the message names, and asks for a
//! full one.

use std::collections::BTreeMap;

use raftstore::{LogIndex, RegionId};
use tso::Timestamp;

use crate::grant::{Exchange, Grant, PushGrants};

/// The position of a region's grant.
type Place = (u64, LogIndex);

/// The sender's side of a sequence.
#[derive(Debug)]
pub(super) struct Outgoing {
    incarnation: u64,
    number: u64,
    /// What the receiver knows, if it has all messages.
    known: BTreeMap<RegionId, Place>,
    is_full: bool,
}

impl Outgoing {
    /// The beginning of a sequence.
    pub(super) fn new(incarnation: u64) -> Outgoing {
        Outgoing { incarnation, number: 0, known: BTreeMap::new(), is_full: true }
    }

    /// The next message: what `grants`, all that the sender gives at `ts`, says in fewer words. A grant that is below
    /// `ts` is named each time. `None` if there is nothing to say.
    pub(super) fn next(&mut self, ts: Timestamp, grants: &[Grant]) -> Option<(Vec<Grant>, Exchange)> {
        let known = std::mem::take(&mut self.known);
        let place = |grant: &Grant| (grant.version, grant.index);
        let is_known = |grant: &Grant| grant.ts == ts && known.get(&grant.region) == Some(&place(grant));
        let named = grants.iter().filter(|grant| self.is_full || !is_known(grant)).copied().collect();
        self.known = grants.iter().filter(|grant| grant.ts == ts).map(|grant| (grant.region, place(grant))).collect();
        let withdrawn: Vec<RegionId> =
            known.keys().filter(|region| !self.known.contains_key(region)).copied().collect();
        if grants.is_empty() && withdrawn.is_empty() {
            return None;
        }
        self.number += 1;
        let is_full = std::mem::replace(&mut self.is_full, false);
        let withdrawn = if is_full { Vec::new() } else { withdrawn };
        Some((named, Exchange { incarnation: self.incarnation, number: self.number, is_full, withdrawn }))
    }

    /// The receiver lacks a message, or may lack the last one.
    pub(super) fn repeat_all(&mut self) {
        self.is_full = true;
    }
}

/// The receiver's side.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    incarnation: u64,
    number: u64,
    known: BTreeMap<RegionId, Place>,
}

impl Incoming {
    /// Takes a message. Returns all that it grants, and whether a message before it is missing.
    pub(super) fn take(&mut self, message: &PushGrants) -> (Vec<Grant>, bool) {
        let Some(exchange) = &message.exchange else { return (message.grants.clone(), false) };
        let follows = exchange.incarnation == self.incarnation && exchange.number == self.number + 1;
        if !exchange.is_full && !follows {
            // A late one, too, says nothing of the others.
            return (message.grants.clone(), exchange.number > self.number || exchange.incarnation != self.incarnation);
        }
        let is_old = exchange.incarnation == self.incarnation && exchange.number <= self.number;
        if is_old {
            return (message.grants.clone(), false);
        }
        if exchange.is_full {
            self.known.clear();
        }
        (self.incarnation, self.number) = (exchange.incarnation, exchange.number);
        for region in &exchange.withdrawn {
            self.known.remove(region);
        }
        for grant in &message.grants {
            if grant.ts == message.ts {
                self.known.insert(grant.region, (grant.version, grant.index));
            } else {
                self.known.remove(&grant.region);
            }
        }
        let implied = self.known.iter().map(|(region, (version, index))| Grant {
            region: *region,
            version: *version,
            ts: message.ts,
            index: *index,
        });
        let below = message.grants.iter().filter(|grant| grant.ts != message.ts).copied();
        (implied.chain(below).collect(), false)
    }
}

#[cfg(test)]
mod tests {
    use raftstore::StoreId;

    use super::*;

    fn grant(region: u64, ms: u64, index: u64) -> Grant {
        Grant { region: RegionId::new(region), version: 1, ts: Timestamp::new(ms, 0), index: LogIndex::new(index) }
    }

    /// Sends what `out` says of `grants` at `ms`. Returns the message.
    fn message(out: &mut Outgoing, ms: u64, grants: &[Grant]) -> PushGrants {
        let ts = Timestamp::new(ms, 0);
        let (grants, exchange) = out.next(ts, grants).unwrap();
        PushGrants { from: StoreId::new(1), ts, grants, exchange: Some(exchange) }
    }

    fn sorted(mut grants: Vec<Grant>) -> Vec<Grant> {
        grants.sort_by_key(|grant| grant.region);
        grants
    }

    #[test]
    fn a_message_names_what_has_changed_and_grants_all() {
        let (mut out, mut incoming) = (Outgoing::new(7), Incoming::default());
        let all = [grant(2, 100, 5), grant(3, 100, 6)];
        let first = message(&mut out, 100, &all);
        assert_eq!(first.grants.len(), 2);
        assert_eq!(incoming.take(&first), (all.to_vec(), false));
        let all = [grant(2, 200, 5), grant(3, 200, 9)];
        let second = message(&mut out, 200, &all);
        assert_eq!(second.grants, [grant(3, 200, 9)], "region 2 is as it was");
        assert_eq!(incoming.take(&second), (all.to_vec(), false));
    }

    /// A region that the sender does not lead any more, or whose lease it could not prove, is granted no further.
    #[test]
    fn a_withdrawn_region_is_not_granted() {
        let (mut out, mut incoming) = (Outgoing::new(7), Incoming::default());
        incoming.take(&message(&mut out, 100, &[grant(2, 100, 5), grant(3, 100, 6)]));
        let second = message(&mut out, 200, &[grant(3, 200, 6)]);
        assert_eq!(incoming.take(&second), (vec![grant(3, 200, 6)], false));
        let third = message(&mut out, 300, &[grant(2, 300, 8), grant(3, 300, 6)]);
        assert_eq!(incoming.take(&third), (vec![grant(2, 300, 8), grant(3, 300, 6)], false));
    }

    /// One whose write in flight has no place in the log is granted below the others, and implies nothing later.
    #[test]
    fn a_grant_below_the_others_is_named_each_time() {
        let (mut out, mut incoming) = (Outgoing::new(7), Incoming::default());
        let all = [grant(2, 90, 5), grant(3, 100, 6)];
        assert_eq!(sorted(incoming.take(&message(&mut out, 100, &all)).0), all);
        let all = [grant(2, 200, 5), grant(3, 200, 6)];
        let second = message(&mut out, 200, &all);
        assert_eq!(second.grants, [grant(2, 200, 5)]);
        assert_eq!(sorted(incoming.take(&second).0), all);
    }

    #[test]
    fn a_gap_grants_what_is_named_alone_until_a_full_message_comes() {
        let (mut out, mut incoming) = (Outgoing::new(7), Incoming::default());
        incoming.take(&message(&mut out, 100, &[grant(2, 100, 5), grant(3, 100, 6)]));
        let lost = message(&mut out, 200, &[grant(2, 200, 7), grant(3, 200, 6)]);
        let third = message(&mut out, 300, &[grant(2, 300, 7), grant(3, 300, 8)]);
        assert_eq!(incoming.take(&third), (vec![grant(3, 300, 8)], true), "region 2 is at 7, which it does not know");
        out.repeat_all();
        let full = message(&mut out, 400, &[grant(2, 400, 7), grant(3, 400, 8)]);
        assert_eq!(incoming.take(&full), (vec![grant(2, 400, 7), grant(3, 400, 8)], false));
        assert_eq!(incoming.take(&lost), (vec![grant(2, 200, 7)], false), "late: true as it stands, and nothing more");
        let next = message(&mut out, 500, &[grant(2, 500, 7), grant(3, 500, 8)]);
        assert!(next.grants.is_empty());
        assert_eq!(incoming.take(&next).0.len(), 2);
    }

    #[test]
    fn another_life_of_the_sender_begins_anew() {
        let mut incoming = Incoming::default();
        incoming.take(&message(&mut Outgoing::new(7), 100, &[grant(2, 100, 5)]));
        let mut out = Outgoing::new(8);
        let lost = message(&mut out, 150, &[grant(3, 150, 2)]);
        let second = message(&mut out, 200, &[grant(3, 200, 2)]);
        assert_eq!(incoming.take(&second), (Vec::new(), true));
        assert_eq!(incoming.take(&lost), (vec![grant(3, 150, 2)], false), "region 2 is not granted");
    }

    #[test]
    fn a_store_without_regions_says_nothing() {
        let mut out = Outgoing::new(7);
        assert!(out.next(Timestamp::new(100, 0), &[]).is_none());
        message(&mut out, 200, &[grant(2, 200, 5)]);
        let last = message(&mut out, 300, &[]);
        assert_eq!(last.exchange.unwrap().withdrawn, [RegionId::new(2)]);
        assert!(out.next(Timestamp::new(400, 0), &[]).is_none());
    }
}
