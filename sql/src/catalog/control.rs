//! The control records of the catalog at one snapshot, and what follows from them: whether a step of a schema change is
//! complete, and which schema changes have lost their node. Pure but for [`Control::read`].

use tso::Timestamp;
use txn::Transaction;

use super::keys::{self, LeaseRecord, NodeId, OwnerRecord, VersionRecord};
use super::snapshot::read_range;
use crate::codec::CodecError;
use crate::error::SqlError;
use crate::table::TableId;

/// The control records at one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Control {
    /// The timestamp of the snapshot.
    pub(super) now: Timestamp,
    /// The newest catalog version.
    pub(super) version: u64,
    /// The nodes' leases, also those that are over.
    pub(super) leases: Vec<(NodeId, LeaseRecord)>,
    /// The closed tables.
    pub(super) closed: Vec<(TableId, OwnerRecord)>,
    /// The committed schema changes that are not published.
    pub(super) publications: Vec<OwnerRecord>,
}

/// The state of a step: the publication of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A node with a lease has not adopted the version.
    Waiting,
    /// Every node has adopted it or has no lease. `silent`: some node has none, and may still have a commit on its way
    /// that it began under its last lease.
    Complete {
        /// Whether the lease of some node is over.
        silent: bool,
    },
}

impl Control {
    /// Reads the control records at a transaction's snapshot. Waits for the locks of transactions that change them.
    pub(super) async fn read(txn: &Transaction) -> Result<Control, SqlError> {
        let malformed = || CodecError::new("control record", "malformed key");
        let mut control =
            Control { now: txn.start_ts(), version: 0, leases: vec![], closed: vec![], publications: vec![] };
        for (key, value) in read_range(txn, keys::control()).await? {
            match key.as_bytes().get(1) {
                Some(b'v') => control.version = VersionRecord::decode(&value)?.version,
                Some(b'w') => {
                    let node = keys::lease_node(&key).ok_or_else(malformed)?;
                    control.leases.push((node, LeaseRecord::decode(&value)?));
                }
                Some(b'x') => {
                    let table = keys::closed_table(&key).ok_or_else(malformed)?;
                    control.closed.push((table, OwnerRecord::decode(&value)?));
                }
                _ => {
                    let record = OwnerRecord::decode(&value)?;
                    if keys::publication_owner(&key) != Some(record.owner) {
                        return Err(malformed().into());
                    }
                    control.publications.push(record);
                }
            }
        }
        Ok(control)
    }

    /// The state of the step to `version`.
    pub(super) fn step(&self, version: u64) -> Step {
        let behind = || self.leases.iter().map(|(_, lease)| lease).filter(|lease| lease.version < version);
        if behind().any(|lease| lease.until >= self.now) {
            return Step::Waiting;
        }
        Step::Complete { silent: behind().next().is_some() }
    }

    /// The transaction, other than `owner`, that closes one of these tables.
    pub(super) fn closed_by_another(&self, owner: Timestamp, tables: &[TableId]) -> Option<OwnerRecord> {
        let closed = self.closed.iter().find(|(table, record)| record.owner != owner && tables.contains(table));
        closed.map(|(_, record)| *record)
    }

    /// The tables that `owner` closes.
    pub(super) fn closed_by(&self, owner: Timestamp) -> Vec<TableId> {
        self.closed.iter().filter(|(_, record)| record.owner == owner).map(|(table, _)| *table).collect()
    }

    /// Whether the schema change of `owner` has committed and is not published.
    pub(super) fn is_unpublished(&self, owner: Timestamp) -> bool {
        self.publications.iter().any(|record| record.owner == owner)
    }

    /// All schema changes under way, each once.
    pub(super) fn owners(&self) -> Vec<OwnerRecord> {
        let mut owners: Vec<OwnerRecord> = self.closed.iter().map(|(_, record)| *record).collect();
        owners.extend(&self.publications);
        owners.sort_by_key(|record| record.owner);
        owners.dedup_by_key(|record| record.owner);
        owners
    }

    /// Whether the node of a schema change no longer has the lease under which it began it.
    pub(super) fn has_lost_its_node(&self, record: &OwnerRecord) -> bool {
        let holds = |lease: &LeaseRecord| lease.term == record.term && lease.until >= self.now;
        !self.leases.iter().any(|(node, lease)| *node == record.node && holds(lease))
    }

    /// The nodes whose leases ended at least `age_ms` milliseconds ago.
    pub(super) fn over_since(&self, age_ms: u64) -> impl Iterator<Item = NodeId> {
        let now_ms = self.now.physical_ms();
        let over = move |lease: &LeaseRecord| lease.until.physical_ms().saturating_add(age_ms) < now_ms;
        self.leases.iter().filter(move |(_, lease)| over(lease)).map(|(node, _)| *node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ts(raw: u64) -> Timestamp {
        Timestamp::from_raw(raw)
    }

    fn control(leases: &[(u64, u64)]) -> Control {
        let lease = |(at, (until, version)): (usize, &(u64, u64))| {
            (NodeId(at as u64), LeaseRecord { term: ts(1), until: ts(*until), version: *version })
        };
        let leases = leases.iter().enumerate().map(lease).collect();
        Control { now: ts(100), version: 7, leases, closed: vec![], publications: vec![] }
    }

    #[test]
    fn a_step_waits_for_every_node_with_a_lease() {
        assert_eq!(control(&[]).step(7), Step::Complete { silent: false });
        assert_eq!(control(&[(200, 7), (200, 8)]).step(7), Step::Complete { silent: false });
        assert_eq!(control(&[(200, 7), (200, 6)]).step(7), Step::Waiting);
        assert_eq!(control(&[(200, 7), (100, 6)]).step(7), Step::Waiting, "the end of the lease is part of it");
        assert_eq!(control(&[(200, 7), (99, 6)]).step(7), Step::Complete { silent: true });
        assert_eq!(control(&[(99, 7)]).step(7), Step::Complete { silent: false }, "it has adopted the version");
    }

    #[test]
    fn a_schema_change_is_lost_with_the_term_of_its_node() {
        let mut control = control(&[(200, 7), (99, 7)]);
        let record = |owner, node, term| OwnerRecord { owner: ts(owner), node: NodeId(node), term: ts(term) };
        assert!(!control.has_lost_its_node(&record(5, 0, 1)));
        for lost in [record(5, 0, 2), record(5, 1, 1), record(5, 2, 1)] {
            assert!(control.has_lost_its_node(&lost), "{lost:?}");
        }
        control.closed = vec![(TableId(1), record(5, 0, 1)), (TableId(2), record(4, 0, 1))];
        control.publications = vec![record(5, 0, 1)];
        let owners: Vec<Timestamp> = control.owners().iter().map(|record| record.owner).collect();
        assert_eq!(owners, vec![ts(4), ts(5)]);
        assert_eq!((control.closed_by(ts(5)), control.is_unpublished(ts(4))), (vec![TableId(1)], false));
        assert_eq!(control.closed_by_another(ts(4), &[TableId(2)]), None);
        assert_eq!(control.closed_by_another(ts(5), &[TableId(1), TableId(2)]), Some(record(4, 0, 1)));
    }
}
