//! Checks incoming messages before raft-rs sees them.
//!
//! raft-rs trusts its input: it panics on some malformed messages and computes with unchecked numbers. The gate drops
//! every message that no correct replica sends. It also drops three kinds of well-formed messages:
//!
//! - **Votes against a promise.** A replica that hears from a leader promises not to vote for one election timeout. The
//!   leader's lease relies on that. raft-rs keeps the promise only while it remembers the leader, and any message of a
//!   higher term makes it forget, even a late rejection of an old candidate. So the peer keeps the promise itself, as a
//!   time before which it gives no vote. A restarted voter does not know whether it promised (tikv#15035), so it counts
//!   as having promised at its start. A campaign requested by the leader passes, because that leader has given up its
//!   lease first.
//! - **Late `MsgTimeoutNow`.** Its receiver campaigns at once and voters ignore the lease. A delayed one could elect a
//!   second leader long after the first regained its lease (raft-rs#234). The leader stamps the message with its last
//!   log position, and the receiver obeys only while its own last position is the same.
//! - **Appends while a snapshot is being installed.** They would be written to a log that is about to be replaced.

use raft::eraftpb::{EntryType, Message, MessageType};

use crate::ports::RaftMessage;
use crate::records;
use crate::region::{PeerMeta, PeerRole, Region};
use crate::time::MonoTime;

/// The context with which raft-rs marks the votes of a leadership transfer.
const CAMPAIGN_TRANSFER: &[u8] = b"CampaignTransfer";

/// No cluster reaches terms or indexes beyond this. raft-rs adds to them without overflow checks.
const MAX_NUMBER: u64 = 1 << 62;

/// Why a message was dropped; for tests and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// For another region, or to or from a replica that the region does not have.
    Misaddressed,
    /// Malformed: its fields contradict each other or are out of range.
    Malformed,
    /// Of a kind that stores never send to each other.
    Foreign,
    /// A vote request while a promise to a leader holds.
    Promised,
    /// A `MsgTimeoutNow` for another last log position than this replica's.
    LateTimeoutNow,
    /// A snapshot is being installed.
    Installing,
}

/// The state of the peer that the gate depends on.
pub(crate) struct GateContext<'a> {
    pub(crate) region: &'a Region,
    pub(crate) me: PeerMeta,
    pub(crate) installing: bool,
    /// Index and term of the last log entry.
    pub(crate) last: (u64, u64),
    /// Votes are refused before this time, except for a leadership transfer.
    pub(crate) promised_until: MonoTime,
    pub(crate) now: MonoTime,
}

/// Checks whether the peer may step `message`.
pub(crate) fn admit(message: &RaftMessage, at: &GateContext<'_>) -> Result<(), Refusal> {
    let raft = &message.message;
    let sender = at.region.peer(message.from.id).filter(|p| p.store == message.from.store && p.id != at.me.id);
    let addressed = message.region == at.region.id
        && (message.to.id, message.to.store) == (at.me.id, at.me.store)
        && raft.from == message.from.id.get()
        && raft.to == message.to.id.get();
    let Some(sender) = sender.filter(|_| addressed) else { return Err(Refusal::Misaddressed) };
    let kind = MessageType::from_i32(raft.msg_type).ok_or(Refusal::Malformed)?;
    refuse_if(raft.term == 0 || raft.term > MAX_NUMBER || raft.request_snapshot != 0, Refusal::Malformed)?;
    match kind {
        MessageType::MsgAppend => {
            check_append(raft)?;
            refuse_if(at.installing, Refusal::Installing)
        }
        MessageType::MsgSnapshot => {
            check_snapshot(message)?;
            refuse_if(at.installing, Refusal::Installing)
        }
        MessageType::MsgTimeoutNow => {
            refuse_if(sender.role != PeerRole::Voter, Refusal::Malformed)?;
            refuse_if(at.installing, Refusal::Installing)?;
            refuse_if((raft.index, raft.log_term) != at.last, Refusal::LateTimeoutNow)
        }
        MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => {
            let transfer = raft.context == CAMPAIGN_TRANSFER;
            refuse_if(at.now < at.promised_until && !transfer, Refusal::Promised)
        }
        // A follower cannot have entries that this replica never had, nor hint beyond what it rejected.
        MessageType::MsgAppendResponse => {
            refuse_if(raft.index > at.last.0 || (raft.reject && raft.reject_hint > raft.index), Refusal::Malformed)
        }
        MessageType::MsgHeartbeatResponse => refuse_if(raft.index > MAX_NUMBER, Refusal::Malformed),
        MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse | MessageType::MsgHeartbeat => {
            Ok(())
        }
        _ => Err(Refusal::Foreign),
    }
}

fn refuse_if(refuse: bool, why: Refusal) -> Result<(), Refusal> {
    if refuse { Err(why) } else { Ok(()) }
}

/// Checks that entries follow the position before them and that none is of a newer term than the leader. Only the
/// position before the first entry has term 0: raft-rs uses it as the term of every index it does not have.
fn check_append(raft: &Message) -> Result<(), Refusal> {
    let mut index = raft.index;
    let mut term = raft.log_term;
    refuse_if(index > MAX_NUMBER || (index == 0) != (term == 0) || term > raft.term, Refusal::Malformed)?;
    for entry in &raft.entries {
        let known_type = EntryType::from_i32(entry.entry_type).is_some();
        if entry.index != index + 1 || entry.term == 0 || entry.term < term || entry.term > raft.term || !known_type {
            return Err(Refusal::Malformed);
        }
        (index, term) = (entry.index, entry.term);
    }
    Ok(())
}

/// Checks that the snapshot has a position, members, and a descriptor that agrees with both.
fn check_snapshot(message: &RaftMessage) -> Result<(), Refusal> {
    let snapshot = message.message.snapshot.as_ref().ok_or(Refusal::Malformed)?;
    let metadata = snapshot.metadata.as_ref().ok_or(Refusal::Malformed)?;
    let region = records::decode_region(&snapshot.data).map_err(|_| Refusal::Malformed)?;
    let agrees = region.is_sound()
        && region.id == message.region
        && metadata.conf_state.as_ref() == Some(&records::conf_state(&region))
        && (1..=MAX_NUMBER).contains(&metadata.index)
        && metadata.term > 0
        && metadata.term <= message.message.term;
    refuse_if(!agrees, Refusal::Malformed)
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::Entry;

    use super::*;
    use crate::region::{Epoch, PeerId, RegionId, StoreId};

    fn peer(id: u64) -> PeerMeta {
        PeerMeta { id: PeerId::new(id), store: StoreId::new(id), role: PeerRole::Voter }
    }

    fn region() -> Region {
        let peers = vec![peer(1), peer(2), peer(3)];
        Region { id: RegionId::new(2), start: Vec::new(), end: Vec::new(), epoch: Epoch::default(), peers }
    }

    fn message(kind: MessageType) -> RaftMessage {
        let mut message = Message { from: 2, to: 1, term: 5, ..Message::default() };
        message.set_msg_type(kind);
        RaftMessage { region: RegionId::new(2), epoch: Epoch::default(), from: peer(2), to: peer(1), message }
    }

    fn verdict(message: &RaftMessage, now: u64, installing: bool) -> Result<(), Refusal> {
        let promised_until = MonoTime::from_millis(1000);
        let now = MonoTime::from_millis(now);
        admit(message, &GateContext { region: &region(), me: peer(1), installing, last: (7, 4), promised_until, now })
    }

    /// tikv#15035: a voter must not forget the promise that the lease relies on.
    #[test]
    fn votes_are_refused_until_the_promise_ends() {
        for kind in [MessageType::MsgRequestVote, MessageType::MsgRequestPreVote] {
            let mut vote = message(kind);
            assert_eq!(verdict(&vote, 999, false), Err(Refusal::Promised));
            assert_eq!(verdict(&vote, 1000, false), Ok(()));
            vote.message.context = CAMPAIGN_TRANSFER.to_vec();
            assert_eq!(verdict(&vote, 0, false), Ok(()));
        }
    }

    /// raft-rs#234: a late `MsgTimeoutNow`.
    #[test]
    fn timeout_now_is_obeyed_only_at_its_stamped_position() {
        let mut now = message(MessageType::MsgTimeoutNow);
        (now.message.index, now.message.log_term) = (7, 4);
        assert_eq!(verdict(&now, 0, false), Ok(()));
        now.message.index = 6;
        assert_eq!(verdict(&now, 0, false), Err(Refusal::LateTimeoutNow));
        assert_eq!(verdict(&message(MessageType::MsgTimeoutNow), 0, false), Err(Refusal::LateTimeoutNow));
    }

    #[test]
    fn malformed_appends_are_dropped() {
        let entry = |index, term| Entry { index, term, ..Entry::default() };
        let append = |entries: Vec<Entry>| {
            let mut append = message(MessageType::MsgAppend);
            (append.message.index, append.message.log_term, append.message.entries) = (7, 4, entries);
            append
        };
        assert_eq!(verdict(&append(vec![entry(8, 4), entry(9, 5)]), 0, false), Ok(()));
        assert_eq!(verdict(&append(vec![entry(8, 4)]), 0, true), Err(Refusal::Installing));
        for bad in [vec![entry(9, 5)], vec![entry(8, 5), entry(10, 5)], vec![entry(8, 6)], vec![entry(8, 3)]] {
            assert_eq!(verdict(&append(bad), 0, false), Err(Refusal::Malformed));
        }
        let mut conflict = append(vec![entry(8, 5)]);
        conflict.message.entries[0].entry_type = 99;
        assert_eq!(verdict(&conflict, 0, false), Err(Refusal::Malformed));
        let snapshot = message(MessageType::MsgSnapshot);
        assert_eq!(verdict(&snapshot, 0, false), Err(Refusal::Malformed));
    }

    /// Each of these made raft-rs panic or overflow.
    #[test]
    fn out_of_range_numbers_are_refused() {
        let spoilt = |kind, spoil: fn(&mut Message)| {
            let mut message = message(kind);
            (message.message.index, message.message.log_term) = (7, 4);
            spoil(&mut message.message);
            verdict(&message, 5000, false)
        };
        let (append, response) = (MessageType::MsgAppend, MessageType::MsgAppendResponse);
        assert_eq!(spoilt(append, |_| {}), Ok(()));
        assert_eq!(spoilt(response, |_| {}), Ok(()));
        let malformed = Err(Refusal::Malformed);
        assert_eq!(spoilt(append, |m| m.term = u64::MAX), malformed);
        assert_eq!(spoilt(append, |m| m.index = u64::MAX), malformed);
        assert_eq!(spoilt(append, |m| (m.index, m.log_term) = (9, 0)), malformed);
        assert_eq!(spoilt(append, |m| m.request_snapshot = 3), malformed);
        assert_eq!(spoilt(response, |m| m.index = 8), malformed);
        assert_eq!(spoilt(response, |m| (m.reject, m.reject_hint) = (true, u64::MAX)), malformed);
        assert_eq!(spoilt(MessageType::MsgRequestVote, |m| m.term = u64::MAX), malformed);
        assert_eq!(spoilt(append, |m| m.msg_type = 99), malformed);
    }

    #[test]
    fn own_messages_are_refused() {
        let mut own = message(MessageType::MsgHeartbeat);
        (own.from, own.message.from) = (peer(1), 1);
        assert_eq!(verdict(&own, 0, false), Err(Refusal::Misaddressed));
    }

    #[test]
    fn local_and_misaddressed_messages_are_refused() {
        for kind in
            [MessageType::MsgPropose, MessageType::MsgReadIndex, MessageType::MsgReadIndexResp, MessageType::MsgHup]
        {
            assert_eq!(verdict(&message(kind), 0, false), Err(Refusal::Foreign));
        }
        let mut other = message(MessageType::MsgHeartbeat);
        other.from = peer(9);
        other.message.from = 9;
        assert_eq!(verdict(&other, 0, false), Err(Refusal::Misaddressed));
        let mut other = message(MessageType::MsgHeartbeat);
        other.message.to = 3;
        assert_eq!(verdict(&other, 0, false), Err(Refusal::Misaddressed));
    }
}
