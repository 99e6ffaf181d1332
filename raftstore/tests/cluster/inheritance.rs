//! What a leader hands over with its leadership: who inherits it, and who does not.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use raft::eraftpb::MessageType;
use raftstore::ports::LeaderMemory;
use raftstore::{RegionId, StoreId, Term};

use crate::harness::{Cluster, KEY, is};

/// A memory that packs the term, and notes what happens to it.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl LeaderMemory for Notes {
    fn pack(&self, _: RegionId, term: Term) -> Option<Vec<u8>> {
        self.0.lock().push(format!("packed in term {term}"));
        Some(term.get().to_be_bytes().to_vec())
    }

    fn inherit(&self, _: RegionId, term: Term, packed: &[u8]) {
        let packed = u64::from_be_bytes(packed.try_into().unwrap());
        self.0.lock().push(format!("inherited in term {term} from {packed}"));
    }

    fn keep(&self, _: RegionId, term: Term) {
        self.0.lock().push(format!("kept in term {term}"));
    }
}

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Three stores, the first of which leads, and their notes.
fn cluster() -> (Cluster, [Arc<Notes>; 3], u64) {
    let mut cluster = Cluster::new(3);
    let notes: [Arc<Notes>; 3] = Default::default();
    for (store, notes) in (1..).zip(&notes) {
        let memory: Arc<dyn LeaderMemory> = Arc::<Notes>::clone(notes);
        cluster.handle(store).set_leader_memory(memory);
    }
    cluster.lead(1, 1);
    cluster.write(1, KEY, b"v");
    notes.iter().for_each(|notes| drop(notes.take()));
    let term = cluster.handle(1).region(RegionId::new(1)).unwrap().term.get();
    (cluster, notes, term)
}

fn transfer(cluster: &Cluster, to: u64) {
    cluster.handle(1).transfer_leader(RegionId::new(1), StoreId::new(to)).unwrap();
}

#[test]
fn the_leader_of_the_next_term_inherits_what_was_packed() {
    let (mut cluster, notes, term) = cluster();
    transfer(&cluster, 2);
    let ctx = cluster.ctx(1);
    cluster.run_until("the target leads", |c| c.handle(2).evaluate(ctx).is_ok());
    assert_eq!(notes[0].take(), [format!("packed in term {term}")]);
    assert_eq!(notes[1].take(), [format!("inherited in term {} from {term}", term + 1)]);
    assert_eq!(notes[2].take(), [""; 0]);
}

/// The message is lost. The leader goes on once it has committed an entry that its successor would not have.
#[test]
fn a_leader_whose_offer_is_lost_keeps_it() {
    let (mut cluster, notes, term) = cluster();
    cluster.hold = |m| is(m, MessageType::MsgTimeoutNow);
    transfer(&cluster, 2);
    cluster.run_for(Duration::from_secs(3));
    let packed = format!("packed in term {term}");
    assert_eq!(notes[0].take(), [packed, format!("kept in term {term}")]);
    // The message arrives after all.
    cluster.hold = |_| false;
    let message = cluster.held.remove(0);
    cluster.deliver_one(message);
    cluster.run_for(Duration::from_secs(3));
    assert_eq!(notes[1].take(), [""; 0]);
}

/// The target is not elected, and wins a later election: others may have led, and the old leader has gone on.
#[test]
fn who_wins_another_election_inherits_nothing() {
    let (mut cluster, notes, term) = cluster();
    cluster.hold = |m| is(m, MessageType::MsgRequestVote);
    transfer(&cluster, 2);
    cluster.settle();
    assert_eq!(notes[0].take(), [format!("packed in term {term}")]);
    cluster.hold = |_| false;
    cluster.held.clear();
    cluster.isolated.insert(1);
    let ctx = cluster.ctx(1);
    cluster.run_until("another leads", |c| [2, 3].iter().any(|s| c.handle(*s).evaluate(ctx).is_ok()));
    assert_eq!([notes[1].take(), notes[2].take()].concat(), [""; 0]);
}
