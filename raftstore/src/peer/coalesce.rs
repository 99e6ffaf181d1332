//! Coalesces the appends of one turn to the same follower.
//!
//! raft-rs sends an empty append when a follower answers a heartbeat and lacks entries, and for each notice of the
//! commit index (`commit_notice`). One turn may produce several to the same follower, before or after an append with
//! entries. Each would be encoded, sent, stepped and acknowledged. Here the entries carry the commit index instead.
//! Entries are not moved between messages, because raft-rs counts messages and their sizes against the in-flight
//! window.

use raft::eraftpb::{Message, MessageType};

/// Drops appends whose information another append to the same follower carries.
pub(super) fn coalesce(messages: Vec<Message>) -> Vec<Message> {
    let mut coalesced: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match coalesced.iter_mut().rev().find(|earlier| same_stream(earlier, &message)) {
            // The later one continues at the position of the earlier, empty one, and its commit index is no lower.
            Some(earlier) if earlier.entries.is_empty() && earlier.index == message.index => *earlier = message,
            Some(earlier) if message.entries.is_empty() && message.index == last_index(earlier) => {
                earlier.commit = earlier.commit.max(message.commit);
            }
            _ => coalesced.push(message),
        }
    }
    coalesced
}

/// Whether both are appends of one leader to one follower.
fn same_stream(earlier: &Message, message: &Message) -> bool {
    let append = MessageType::MsgAppend as i32;
    (earlier.msg_type, message.msg_type) == (append, append) && (earlier.to, earlier.term) == (message.to, message.term)
}

/// Index of the last entry of an append, or of the entry before it if it is empty.
fn last_index(append: &Message) -> u64 {
    append.index + append.entries.len() as u64
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::Entry;

    use super::*;

    fn append(to: u64, index: u64, entries: u64, commit: u64) -> Message {
        let entries = (1..=entries).map(|at| Entry { index: index + at, term: 2, ..Entry::default() }).collect();
        let mut message = Message { to, term: 2, index, log_term: 2, entries, commit, ..Message::default() };
        message.set_msg_type(MessageType::MsgAppend);
        message
    }

    fn coalesced_fields(messages: Vec<Message>) -> Vec<(u64, u64, usize, u64)> {
        coalesce(messages).into_iter().map(|m| (m.to, m.index, m.entries.len(), m.commit)).collect()
    }

    #[test]
    fn empty_appends_merge_into_appends_with_entries() {
        let before = vec![append(2, 5, 0, 4), append(3, 5, 0, 4), append(2, 5, 3, 5)];
        assert_eq!(coalesced_fields(before), [(2, 5, 3, 5), (3, 5, 0, 4)]);
        let after = vec![append(2, 5, 3, 4), append(2, 8, 0, 6), append(2, 8, 0, 7)];
        assert_eq!(coalesced_fields(after), [(2, 5, 3, 7)]);
        assert_eq!(coalesced_fields(vec![append(2, 5, 0, 4), append(2, 5, 0, 5)]), [(2, 5, 0, 5)]);
    }

    #[test]
    fn other_messages_are_not_merged() {
        let gap = vec![append(2, 5, 1, 4), append(2, 7, 0, 4)];
        assert_eq!(coalesced_fields(gap).len(), 2);
        let entries = vec![append(2, 5, 1, 4), append(2, 6, 1, 4)];
        assert_eq!(coalesced_fields(entries).len(), 2);
        let mut heartbeat = append(2, 0, 0, 9);
        heartbeat.set_msg_type(MessageType::MsgHeartbeat);
        assert_eq!(coalesced_fields(vec![append(2, 0, 0, 4), heartbeat]).len(), 2);
    }
}
