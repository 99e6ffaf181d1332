//! The two lanes to a store, and which messages take which.
//!
//! A lane is a connection of its own, because what shares a connection shares its buffers: on a slow network, megabytes
//! of entries would stand between a leader and the heartbeats that keep it leading. Messages of different lanes may
//! overtake each other, as Raft allows.

use raft::eraftpb::MessageType;

use crate::ports::RaftMessage;

/// A lane to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneKind {
    /// Small messages that keep leaderships and leases, elect leaders, and acknowledge entries.
    Urgent,
    /// Appends, and what must not overtake them: a `MsgTimeoutNow` is void unless its target has the entries before
    /// it.
    Bulk,
}

impl LaneKind {
    /// The lane of a message.
    pub fn of(message: &RaftMessage) -> LaneKind {
        match MessageType::from_i32(message.message.msg_type) {
            Some(
                MessageType::MsgHeartbeat
                | MessageType::MsgHeartbeatResponse
                | MessageType::MsgAppendResponse
                | MessageType::MsgRequestVote
                | MessageType::MsgRequestVoteResponse
                | MessageType::MsgRequestPreVote
                | MessageType::MsgRequestPreVoteResponse,
            ) => LaneKind::Urgent,
            _ => LaneKind::Bulk,
        }
    }

    /// The name in logs.
    pub(super) const fn label(self) -> &'static str {
        match self {
            LaneKind::Urgent => "urgent",
            LaneKind::Bulk => "bulk",
        }
    }
}
