//! The wire messages, and their conversion to and from the domain's types. Generated types go no further than this folder.
//!
//! Decoding is the gateway: what passes has ids that are not 0, known roles, and an inner message of a known kind, with entries of
//! known kinds, between the peers that the envelope names.

use bytes::Bytes;
use prost_raft::Message as _;
use raft::eraftpb::{EntryType, Message, MessageType};

use crate::ports::RaftMessage;
use crate::region::{Epoch, LogIndex, PeerId, PeerMeta, PeerRole, RegionId, StoreId, Term};
use crate::snapshot::SnapshotKey;

/// What `build.rs` generates.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::too_many_lines,
    reason = "generated; the .proto file has the documentation"
)]
pub(super) mod wire {
    tonic::include_proto!("cortado.raftstore.v1");
}

/// The version of the protocol spoken here.
pub(super) const PROTOCOL: u32 = 1;

/// Bytes that follow the protocol's syntax but not its rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub(super) struct Malformed(pub(super) String);

fn malformed<T>(what: impl Into<String>) -> Result<T, Malformed> {
    Err(Malformed(what.into()))
}

/// The wire form of a message.
pub(super) fn encode_message(message: &RaftMessage) -> wire::RaftMessage {
    wire::RaftMessage {
        region_id: message.region.get(),
        epoch: Some(wire::Epoch { conf_ver: message.epoch.conf_ver, version: message.epoch.version }),
        from: Some(encode_peer(message.from)),
        to: Some(encode_peer(message.to)),
        message: Bytes::from(message.message.encode_to_vec()),
    }
}

/// The message of a wire form, checked.
pub(super) fn decode_message(wire: wire::RaftMessage) -> Result<RaftMessage, Malformed> {
    let Some(epoch) = wire.epoch else { return malformed("no epoch") };
    let message = Message::decode(wire.message).or_else(|error| malformed(format!("inner message: {error}")))?;
    check_kinds(&message)?;
    let decoded = RaftMessage {
        region: region_id(wire.region_id)?,
        epoch: Epoch { conf_ver: epoch.conf_ver, version: epoch.version },
        from: decode_peer(wire.from)?,
        to: decode_peer(wire.to)?,
        message,
    };
    if decoded.message.from != decoded.from.id.get() || decoded.message.to != decoded.to.id.get() {
        return malformed("the inner message is between other peers than its envelope");
    }
    Ok(decoded)
}

/// Refuses kinds that this release does not know: the getters of raft-rs' types panic on them.
fn check_kinds(message: &Message) -> Result<(), Malformed> {
    if MessageType::from_i32(message.msg_type).is_none() {
        return malformed(format!("inner message of unknown kind {}", message.msg_type));
    }
    match message.entries.iter().find(|entry| EntryType::from_i32(entry.entry_type).is_none()) {
        Some(entry) => malformed(format!("entry {} of unknown kind {}", entry.index, entry.entry_type)),
        None => Ok(()),
    }
}

fn encode_peer(peer: PeerMeta) -> wire::Peer {
    let role = match peer.role {
        PeerRole::Voter => wire::PeerRole::Voter,
        PeerRole::Learner => wire::PeerRole::Learner,
    };
    wire::Peer { id: peer.id.get(), store: peer.store.get(), role: role.into() }
}

fn decode_peer(peer: Option<wire::Peer>) -> Result<PeerMeta, Malformed> {
    let Some(peer) = peer else { return malformed("no peer") };
    let role = match peer.role() {
        wire::PeerRole::Voter => PeerRole::Voter,
        wire::PeerRole::Learner => PeerRole::Learner,
        wire::PeerRole::Unspecified => return malformed("peer of an unknown role"),
    };
    if peer.id == 0 || peer.store == 0 {
        return malformed("peer or store id 0");
    }
    Ok(PeerMeta { id: PeerId::new(peer.id), store: StoreId::new(peer.store), role })
}

fn region_id(raw: u64) -> Result<RegionId, Malformed> {
    if raw == 0 { malformed("region id 0") } else { Ok(RegionId::new(raw)) }
}

/// The first chunk of a snapshot, without its Hello.
pub(super) struct SnapshotStart {
    /// The `MsgSnapshot` to hand over in the end.
    pub(super) message: RaftMessage,
    /// The file's name.
    pub(super) key: SnapshotKey,
    /// Its length in bytes.
    pub(super) size: u64,
}

impl SnapshotStart {
    /// The wire form.
    pub(super) fn encode(&self, hello: wire::Hello) -> wire::SnapshotStart {
        wire::SnapshotStart {
            hello: Some(hello),
            message: Some(encode_message(&self.message)),
            region_id: self.key.region.get(),
            term: self.key.term.get(),
            index: self.key.index.get(),
            size: self.size,
        }
    }

    /// From the wire form: a `MsgSnapshot` for the very region, term and index of the file.
    pub(super) fn decode(wire: wire::SnapshotStart) -> Result<SnapshotStart, Malformed> {
        let Some(message) = wire.message else { return malformed("no message with the snapshot") };
        let key = SnapshotKey {
            region: region_id(wire.region_id)?,
            term: Term::new(wire.term),
            index: LogIndex::new(wire.index),
        };
        let message = decode_message(message)?;
        let metadata = message.message.get_snapshot().get_metadata();
        let is_snapshot = message.message.msg_type() == MessageType::MsgSnapshot;
        if !is_snapshot || message.region != key.region || (metadata.term, metadata.index) != (wire.term, wire.index) {
            return malformed("the message does not announce this snapshot");
        }
        Ok(SnapshotStart { message, key, size: wire.size })
    }
}
