//! Replicated commands: the data of a Raft entry.
//!
//! The leader that evaluates a command encodes it once; every replica receives the same bytes. Empty data is the no-op
//! of a new leader. Every other command starts with a version and a kind. `docs/formats.md` describes the layout; the
//! tests below pin it.
//!
//! A command carries the term and epoch of its evaluation. Apply refuses it if the term is not that of its entry, or if
//! the epoch is not the region's current one. Every replica reaches the same verdict.
//!
//! A write may be *dated*. Apply refuses it if its date is at or below the region's floor of writes, which earlier
//! entries have raised. So whatever was evaluated before the floor rose, and wherever, takes effect before or never.

use engine::{Cf, Op, WriteBatch};

use crate::codec::{Fields, Malformed};
use crate::region::{Epoch, Floor, Floors, Region, Term};

const VERSION: u8 = 1;
const KIND_WRITE: u8 = 1;
const KIND_FLOORS: u8 = 2;
const KIND_DATED_WRITE: u8 = 3;
/// Of no release: its stores stop at it.
#[cfg(feature = "epoch-changes")]
const KIND_RAISE_VERSION: u8 = 255;
/// Bytes of a write command before its batch.
pub(crate) const WRITE_HEADER_BYTES: usize = 2 + 8 + 8 + 8;

/// A decoded command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// No effect. A new leader appends it to commit in its own term.
    Noop,
    /// Puts and deletes, evaluated by the leader of `term` on the region at `epoch`.
    Write {
        /// Term of the leader that evaluated it.
        term: Term,
        /// Epoch of the region at evaluation.
        epoch: Epoch,
        /// Its date; `None` if it is not dated.
        date: Option<Floor>,
        /// The writes.
        batch: WriteBatch,
    },
    /// Raises the region's floors.
    RaiseFloors {
        /// Term of the leader that proposed it.
        term: Term,
        /// Epoch of the region when it was proposed.
        epoch: Epoch,
        /// The floors. Those that are lower than the region's have no effect.
        floors: Floors,
    },
    /// Raises the version of the region's epoch, as a split does, and changes nothing else. For simulations.
    #[cfg(feature = "epoch-changes")]
    RaiseVersion {
        /// Term of the leader that proposed it.
        term: Term,
        /// Epoch of the region when it was proposed.
        epoch: Epoch,
    },
}

/// Encodes a write command.
pub fn encode_write(term: Term, epoch: Epoch, date: Option<Floor>, batch: &WriteBatch) -> Vec<u8> {
    let mut out = Vec::with_capacity(WRITE_HEADER_BYTES + 8 + batch.size());
    encode_header(&mut out, if date.is_some() { KIND_DATED_WRITE } else { KIND_WRITE }, term, epoch);
    date.iter().for_each(|date| out.extend_from_slice(&date.get().to_le_bytes()));
    out.extend_from_slice(batch.as_bytes());
    out
}

/// Encodes a command that raises floors.
pub fn encode_floors(term: Term, epoch: Epoch, floors: Floors) -> Vec<u8> {
    let mut out = Vec::with_capacity(WRITE_HEADER_BYTES + 16);
    encode_header(&mut out, KIND_FLOORS, term, epoch);
    out.extend_from_slice(&floors.writes.get().to_le_bytes());
    out.extend_from_slice(&floors.reads.get().to_le_bytes());
    out
}

fn encode_header(out: &mut Vec<u8>, kind: u8, term: Term, epoch: Epoch) {
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&term.get().to_le_bytes());
    out.extend_from_slice(&epoch.conf_ver.to_le_bytes());
    out.extend_from_slice(&epoch.version.to_le_bytes());
}

/// Encodes a command that raises the version.
#[cfg(feature = "epoch-changes")]
pub(crate) fn encode_raise_version(term: Term, epoch: Epoch) -> Vec<u8> {
    let mut out = Vec::new();
    encode_header(&mut out, KIND_RAISE_VERSION, term, epoch);
    out
}

/// Whether an encoded command may change the region's range.
#[cfg(feature = "epoch-changes")]
pub(crate) fn changes_range(data: &[u8]) -> bool {
    data.get(1) == Some(&KIND_RAISE_VERSION)
}

impl Command {
    /// Decodes the data of an entry.
    pub fn decode(data: &[u8]) -> Result<Command, Malformed> {
        if data.is_empty() {
            return Ok(Command::Noop);
        }
        let mut fields = Fields::new("command", data);
        fields.exactly(VERSION)?;
        #[cfg(feature = "epoch-changes")]
        if changes_range(data) {
            fields.exactly(KIND_RAISE_VERSION)?;
            let term = Term::new(fields.u64()?);
            let epoch = Epoch { conf_ver: fields.u64()?, version: fields.u64()? };
            return Ok(Command::RaiseVersion { term, epoch });
        }
        let malformed = fields.malformed();
        let kind = fields.u8()?;
        if ![KIND_WRITE, KIND_FLOORS, KIND_DATED_WRITE].contains(&kind) {
            return Err(malformed);
        }
        let term = Term::new(fields.u64()?);
        let epoch = Epoch { conf_ver: fields.u64()?, version: fields.u64()? };
        if kind == KIND_FLOORS {
            let floors = Floors { writes: Floor::new(fields.u64()?), reads: Floor::new(fields.u64()?) };
            fields.end()?;
            return Ok(Command::RaiseFloors { term, epoch, floors });
        }
        let date = if kind == KIND_DATED_WRITE { Some(Floor::new(fields.u64()?)) } else { None };
        let start = WRITE_HEADER_BYTES + if date.is_some() { 8 } else { 0 };
        let batch = WriteBatch::from_bytes(fields.rest())
            .map_err(|e| Malformed { what: "command", offset: start + e.offset })?;
        Ok(Command::Write { term, epoch, date, batch })
    }
}

/// Whether an operation touches only the region's own keys, outside the Meta column family.
pub(crate) fn is_within(region: &Region, op: &Op<'_>) -> bool {
    match op {
        Op::Put { cf, key, .. } | Op::Delete { cf, key } => *cf != Cf::Meta && region.contains(key),
        Op::DeleteRange { cf, start, end } => {
            *cf != Cf::Meta && !end.is_empty() && (start >= end || region.contains_range(start, end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Epoch = Epoch { conf_ver: 2, version: 3 };

    #[test]
    fn golden_bytes_of_an_empty_write() {
        let data = encode_write(Term::new(7), EPOCH, None, &WriteBatch::new());
        let mut golden = vec![1, 1];
        golden.extend_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0]);
        golden.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
        golden.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0]);
        golden.extend_from_slice(WriteBatch::new().as_bytes());
        assert_eq!(data, golden);
        assert_eq!(
            Command::decode(&data),
            Ok(Command::Write { term: Term::new(7), epoch: EPOCH, date: None, batch: WriteBatch::new() })
        );
    }

    #[test]
    fn golden_bytes_of_floors_and_of_a_dated_write() {
        let header = |kind| {
            let mut golden = vec![1, kind];
            for number in [7, 2, 3] {
                golden.extend_from_slice(&u64::to_le_bytes(number));
            }
            golden
        };
        let (term, batch) = (Term::new(7), WriteBatch::new());
        let floors = Floors { writes: Floor::new(0x0102), reads: Floor::new(5) };
        let data = encode_floors(term, EPOCH, floors);
        assert_eq!(data, [header(2), vec![2, 1, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!(Command::decode(&data), Ok(Command::RaiseFloors { term, epoch: EPOCH, floors }));
        let date = Some(Floor::new(0x0304));
        let data = encode_write(term, EPOCH, date, &batch);
        assert_eq!(data, [&header(3)[..], &[4, 3, 0, 0, 0, 0, 0, 0], batch.as_bytes()].concat());
        assert_eq!(Command::decode(&data), Ok(Command::Write { term, epoch: EPOCH, date, batch }));
        for len in 1..42 {
            assert!(Command::decode(&encode_floors(term, EPOCH, floors)[..len]).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn write_keeps_its_batch() {
        let mut batch = WriteBatch::new();
        batch.put(engine::Cf::Default, b"k", b"v");
        batch.delete(engine::Cf::Lock, b"l");
        let data = encode_write(Term::new(1), EPOCH, None, &batch);
        let expected = Command::Write { term: Term::new(1), epoch: EPOCH, date: None, batch };
        assert_eq!(Command::decode(&data), Ok(expected));
    }

    #[test]
    fn empty_data_is_a_noop() {
        assert_eq!(Command::decode(b""), Ok(Command::Noop));
    }

    #[test]
    fn malformed_data_is_refused() {
        let mut batch = WriteBatch::new();
        batch.put(engine::Cf::Default, b"k", b"v");
        let data = encode_write(Term::new(1), EPOCH, None, &batch);
        for len in 1..data.len() {
            // A cut between two operations decodes; this batch has one.
            if len != WRITE_HEADER_BYTES + WriteBatch::new().size() {
                assert!(Command::decode(&data[..len]).is_err(), "cut at {len}");
            }
        }
        assert!(Command::decode(&[2, 1]).is_err());
        assert!(Command::decode(&[1, 9]).is_err());
    }
}
