//! The changes to a region's group in the log engine, and the bytes of an entry.

use bytes::Bytes;
use engine::log::{GroupId, LogBatch};
use raft::eraftpb::{Entry, EntryType, HardState};

use crate::codec::{Fields, Malformed};
use crate::records::{self, LogPosition, SnapshotIntent};
use crate::region::RegionId;

/// A change to a region's log group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LogOp {
    /// Replaces all entries from the first one's index on.
    Append(Vec<Entry>),
    /// Sets the hard state.
    HardState(HardState),
    /// Records the intent to install a snapshot.
    Intent(SnapshotIntent),
    /// Drops the whole log and restarts it after a snapshot.
    Restart { start: LogPosition, hard_state: HardState },
}

impl LogOp {
    /// Adds the change to a batch.
    pub(crate) fn add_to(self, region: RegionId, batch: &mut LogBatch) {
        let group = group(region);
        match self {
            LogOp::Append(entries) => {
                let Some(first) = entries.first().map(|e| e.index) else { return };
                batch.append(group, first, entries.iter().map(encode_entry).collect());
            }
            LogOp::HardState(state) => {
                batch.put(group, records::HARD_STATE_KEY, &records::encode_hard_state(&state));
            }
            LogOp::Intent(intent) => batch.put(group, records::INTENT_KEY, &records::encode_intent(&intent)),
            LogOp::Restart { start, hard_state } => restart(group, start, &hard_state, batch),
        }
    }

    /// Estimated bytes of log.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            LogOp::Append(entries) => entries.iter().map(|e| (e.data.len() + 16) as u64).sum(),
            _ => 64,
        }
    }
}

/// Restarts a group: drops everything in it but the given records.
pub(crate) fn restart(group: GroupId, start: LogPosition, hard_state: &HardState, batch: &mut LogBatch) {
    batch.remove(group);
    batch.put(group, records::HARD_STATE_KEY, &records::encode_hard_state(hard_state));
    batch.put(group, records::LOG_START_KEY, &records::encode_position(start));
    batch.compact(group, start.index.get() + 1);
}

/// Drops entries of a region up to and including `start`. Not a [`LogOp`], because truncations go into batches of their
/// own.
pub(crate) fn truncate(region: RegionId, start: LogPosition, batch: &mut LogBatch) {
    let group = group(region);
    batch.put(group, records::LOG_START_KEY, &records::encode_position(start));
    batch.compact(group, start.index.get() + 1);
}

/// The log group of a region.
pub(crate) fn group(region: RegionId) -> GroupId {
    GroupId(region.get())
}

const ENTRY_VERSION: u8 = 0x10;
const ENTRY_HAS_CONTEXT: u8 = 0x80;

/// Encodes an entry for the log. The index is not encoded; it is the entry's place in the group.
pub(crate) fn encode_entry(entry: &Entry) -> Bytes {
    let mut out = Vec::with_capacity(13 + entry.context.len() + entry.data.len());
    let kind = match entry.get_entry_type() {
        EntryType::EntryNormal => 0,
        EntryType::EntryConfChange => 1,
        EntryType::EntryConfChangeV2 => 2,
    };
    let context = if entry.context.is_empty() { 0 } else { ENTRY_HAS_CONTEXT };
    out.push(ENTRY_VERSION | kind | context);
    out.extend_from_slice(&entry.term.to_le_bytes());
    if context != 0 {
        crate::codec::put_bytes(&mut out, &entry.context);
    }
    out.extend_from_slice(&entry.data);
    Bytes::from(out)
}

/// Decodes an entry.
pub(crate) fn decode_entry(index: u64, bytes: &[u8]) -> Result<Entry, Malformed> {
    let mut fields = Fields::new("log entry", bytes);
    let malformed = fields.malformed();
    let head = fields.u8()?;
    let entry_type = match head & !ENTRY_HAS_CONTEXT {
        0x10 => EntryType::EntryNormal,
        0x11 => EntryType::EntryConfChange,
        0x12 => EntryType::EntryConfChangeV2,
        _ => return Err(malformed),
    };
    let term = fields.u64()?;
    let context = if head & ENTRY_HAS_CONTEXT != 0 { fields.bytes()?.to_vec() } else { Vec::new() };
    let mut entry = Entry { index, term, context, data: fields.rest().to_vec(), ..Entry::default() };
    entry.set_entry_type(entry_type);
    Ok(entry)
}
