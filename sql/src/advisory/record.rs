//! The records of advisory locks in the system region: who holds a lock. Pure.
//!
//! | key | value |
//! |---|---|
//! | `mk{node}` | the node's lease on its locks |
//! | `ml{class}{lock}` | the holders of a lock |
//! | `mq{class}{lock}` | nothing: those who want the lock queue up here, in memory |
//!
//! A node is eight bytes, big-endian. The class of a lock is one byte, 1 for a bigint and 2 for a pair of integers, as
//! in PostgreSQL's `pg_locks.objsubid`; the lock is its eight bytes, big-endian.

use bytes::Bytes;
use kv::Key;
use tso::Timestamp;

use crate::catalog::NodeId;
use crate::codec::{CodecError, take};
use crate::lock_name::Mode;

/// The version of the records.
const VERSION: u8 = 1;
/// The bytes of a holder.
const HOLDER_BYTES: usize = 37;

/// A session that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) node: NodeId,
    /// The term of the node's lease under which the session has taken the lock. It ends with that.
    pub(crate) term: Timestamp,
    /// The name of the session: a timestamp of the oracle that nothing else has.
    pub(crate) name: Timestamp,
    /// Its process id, for people.
    pub(crate) session: u32,
    pub(crate) mode: Mode,
    /// Since when it has the lock.
    pub(crate) since: Timestamp,
}

/// The holders of a lock.
///
/// Invariants: each name once; one that holds the lock alone is the only one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockRecord {
    pub(crate) holders: Vec<Holder>,
}

/// A node's lease on the locks of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeLease {
    /// The start_ts of the transaction that acquired it. Renewals keep it.
    pub(crate) term: Timestamp,
    /// Its end.
    pub(crate) until: Timestamp,
}

/// The range of the records of all locks.
pub(crate) fn all_locks() -> (Key, Key) {
    (Key::new(&b"ml"[..]), Key::new(&b"mm"[..]))
}

/// The key of a node's lease.
pub(crate) fn lease_key(node: NodeId) -> Key {
    let mut out = b"mk".to_vec();
    out.extend_from_slice(&node.0.to_be_bytes());
    Key::new(out)
}

/// The node in a key made by [`lease_key`].
pub(crate) fn lease_node(key: &Key) -> Option<NodeId> {
    let rest = key.as_bytes().strip_prefix(b"mk")?;
    Some(NodeId(u64::from_be_bytes(rest.try_into().ok()?)))
}

/// The range of the leases of all nodes.
pub(crate) fn all_leases() -> (Key, Key) {
    (Key::new(&b"mk"[..]), Key::new(&b"ml"[..]))
}

impl NodeLease {
    /// Encodes the record.
    pub(crate) fn encode(self) -> Bytes {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.term.raw().to_be_bytes());
        out.extend_from_slice(&self.until.raw().to_be_bytes());
        out.into()
    }

    /// Decodes a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<NodeLease, CodecError> {
        let what = "lease on advisory locks";
        let mut rest = versioned(bytes, what)?;
        let (term, until) = (timestamp(&mut rest, what)?, timestamp(&mut rest, what)?);
        at_end(rest, what).map(|()| NodeLease { term, until })
    }

    /// Whether locks that were taken under `term` are held at `now`, as the node's record says then.
    pub(crate) fn holds(record: Option<NodeLease>, term: Timestamp, now: Timestamp) -> bool {
        record.is_some_and(|lease| lease.term == term && lease.until >= now)
    }
}

impl LockRecord {
    /// Encodes the record.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(1 + HOLDER_BYTES * self.holders.len());
        out.push(VERSION);
        for holder in &self.holders {
            out.extend_from_slice(&holder.node.0.to_be_bytes());
            out.extend_from_slice(&holder.term.raw().to_be_bytes());
            out.extend_from_slice(&holder.name.raw().to_be_bytes());
            out.extend_from_slice(&holder.since.raw().to_be_bytes());
            out.extend_from_slice(&holder.session.to_be_bytes());
            out.push(match holder.mode {
                Mode::Shared => 1,
                Mode::Exclusive => 2,
            });
        }
        out.into()
    }

    /// Decodes a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<LockRecord, CodecError> {
        let what = "advisory lock";
        let mut rest = versioned(bytes, what)?;
        let mut holders = Vec::with_capacity(rest.len() / HOLDER_BYTES);
        while !rest.is_empty() {
            let node = NodeId(timestamp(&mut rest, what)?.raw());
            let (term, name, since) =
                (timestamp(&mut rest, what)?, timestamp(&mut rest, what)?, timestamp(&mut rest, what)?);
            let session = take(&mut rest, 4, what)?.try_into().map_err(|_| CodecError::new(what, "cut short"))?;
            let mode = match take(&mut rest, 1, what)? {
                [1] => Mode::Shared,
                [2] => Mode::Exclusive,
                _ => return Err(CodecError::new(what, "unknown mode")),
            };
            holders.push(Holder { node, term, name, session: u32::from_be_bytes(session), mode, since });
        }
        let record = LockRecord { holders };
        if record.is_sound() { Ok(record) } else { Err(CodecError::new(what, "two holders at once")) }
    }

    /// Whether the invariants hold.
    fn is_sound(&self) -> bool {
        let alone = self.holders.len() <= 1 || self.holders.iter().all(|holder| holder.mode == Mode::Shared);
        let mut names: Vec<Timestamp> = self.holders.iter().map(|holder| holder.name).collect();
        names.sort_unstable();
        alone && names.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// The holders in the way of a session.
    pub(crate) fn against(&self, name: Timestamp, mode: Mode) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |holder| holder.name != name && holder.mode.conflicts_with(mode))
    }

    /// The mode in which a session holds the lock.
    pub(crate) fn held(&self, name: Timestamp) -> Option<Mode> {
        self.holders.iter().find(|holder| holder.name == name).map(|holder| holder.mode)
    }

    /// Forgets what a session held under another term than this one. It is not held any more, and must not pass for
    /// what the session takes now.
    pub(crate) fn forget_other_terms(&mut self, name: Timestamp, term: Timestamp) {
        self.holders.retain(|holder| holder.name != name || holder.term == term);
    }

    /// Makes a session a holder. Nobody is in its way, and it holds the lock under no other term.
    pub(crate) fn add(&mut self, holder: Holder) {
        assert!(self.against(holder.name, holder.mode).next().is_none(), "a lock is held by two");
        match self.holders.iter_mut().find(|held| held.name == holder.name) {
            Some(held) if held.term != holder.term => *held = holder,
            Some(held) => held.mode = held.mode.max(holder.mode),
            None => self.holders.push(holder),
        }
        assert!(self.is_sound(), "a lock is held by two");
    }

    /// Leaves a session only `mode`, or nothing.
    pub(crate) fn lower(&mut self, name: Timestamp, mode: Option<Mode>) {
        match mode {
            None => self.holders.retain(|holder| holder.name != name),
            Some(mode) => {
                let held = self.holders.iter_mut().filter(|holder| holder.name == name);
                held.for_each(|holder| holder.mode = holder.mode.min(mode));
            }
        }
    }
}

fn versioned<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a [u8], CodecError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        _ => Err(CodecError::new(what, "unknown version")),
    }
}

fn timestamp(input: &mut &[u8], what: &'static str) -> Result<Timestamp, CodecError> {
    let bytes = take(input, 8, what)?.try_into().map_err(|_| CodecError::new(what, "cut short"))?;
    Ok(Timestamp::from_raw(u64::from_be_bytes(bytes)))
}

fn at_end(rest: &[u8], what: &'static str) -> Result<(), CodecError> {
    if rest.is_empty() { Ok(()) } else { Err(CodecError::new(what, "too long")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ts(raw: u64) -> Timestamp {
        Timestamp::from_raw(raw)
    }

    fn holder(name: u64, mode: Mode) -> Holder {
        Holder { node: NodeId(3), term: ts(0x0102), name: ts(name), session: 0x0a0b, mode, since: ts(0x0304) }
    }

    #[test]
    fn golden_bytes() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let record = LockRecord { holders: vec![holder(9, Mode::Shared), holder(10, Mode::Shared)] };
        let one = "000000000000000300000000000001020000000000000009000000000000030400000a0b01";
        let two = one.replace("0000000000000009", "000000000000000a");
        assert_eq!(hex(&record.encode()), format!("01{one}{two}"));
        assert_eq!(LockRecord::decode(&record.encode()), Ok(record));
        let lease = NodeLease { term: ts(7), until: ts(8) };
        assert_eq!(hex(&lease.encode()), "0100000000000000070000000000000008");
        assert_eq!(NodeLease::decode(&lease.encode()), Ok(lease));
        assert_eq!(hex(lease_key(NodeId(5)).as_bytes()), "6d6b0000000000000005");
    }

    #[test]
    fn keys_and_records_are_read_back_and_others_are_refused() {
        assert_eq!(lease_node(&lease_key(NodeId(9))), Some(NodeId(9)));
        let mut bytes = LockRecord { holders: vec![holder(1, Mode::Exclusive)] }.encode().to_vec();
        assert!(LockRecord::decode(&bytes[..bytes.len() - 1]).is_err());
        bytes[0] = 2;
        assert!(LockRecord::decode(&bytes).is_err());
        let both = [&[1][..], &LockRecord { holders: vec![holder(1, Mode::Exclusive)] }.encode()[1..]].concat();
        let both = [&both[..], &LockRecord { holders: vec![holder(2, Mode::Shared)] }.encode()[1..]].concat();
        assert!(LockRecord::decode(&both).is_err(), "two holders of which one wants to be alone");
    }

    #[test]
    fn sharers_hold_a_lock_together_and_others_alone() {
        let mut record = LockRecord::default();
        record.add(holder(1, Mode::Shared));
        record.add(holder(2, Mode::Shared));
        assert_eq!(record.against(ts(3), Mode::Shared).count(), 0);
        assert_eq!(record.against(ts(1), Mode::Exclusive).map(|h| h.name).collect::<Vec<_>>(), [ts(2)]);
        record.lower(ts(2), None);
        record.lower(ts(2), None);
        record.add(holder(1, Mode::Exclusive));
        assert_eq!(record.against(ts(3), Mode::Shared).count(), 1);
        record.lower(ts(1), Some(Mode::Exclusive));
        assert_eq!(record.held(ts(1)), Some(Mode::Exclusive));
        record.lower(ts(1), Some(Mode::Shared));
        assert_eq!(record.held(ts(1)), Some(Mode::Shared));
    }

    #[test]
    fn a_lock_ends_with_the_lease_under_which_it_was_taken() {
        let lease = NodeLease { term: ts(1), until: ts(100) };
        assert!(NodeLease::holds(Some(lease), ts(1), ts(100)), "the end is part of it");
        assert!(!NodeLease::holds(Some(lease), ts(1), ts(101)));
        assert!(!NodeLease::holds(Some(lease), ts(2), ts(50)), "another term");
        assert!(!NodeLease::holds(None, ts(1), ts(50)));
    }
}
