//! What writes cost in messages, and how soon followers learn of a commit.

use raft::eraftpb::MessageType;
use raftstore::{LogIndex, ProposeError, RegionId};

use crate::harness::{Cluster, KEY, Task, is, put};

/// Clients of store 1, which leads. Each begins its next write when the last one is acknowledged.
#[derive(Default)]
struct Clients(Vec<Task<Result<LogIndex, ProposeError>>>);

impl Clients {
    fn begin(&mut self, cluster: &Cluster) {
        self.0.push(cluster.start_write(1, 1, put(KEY, b"v")));
    }

    /// One round of all nodes; clients whose write is acknowledged begin the next one if `more`.
    fn round(&mut self, cluster: &mut Cluster, more: bool) {
        cluster.round();
        for write in &mut self.0 {
            if let Some(result) = write.poll() {
                result.unwrap();
                if more {
                    *write = cluster.start_write(1, 1, put(KEY, b"v"));
                }
            }
        }
    }
}

/// A cluster of three stores of which store 1 leads region 1 and has nothing to send.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(3);
    cluster.lead(1, 1);
    cluster.settle();
    cluster.wire.sent.lock().clear();
    cluster
}

fn sent(cluster: &Cluster, kind: MessageType) -> u64 {
    cluster.wire.sent.lock().get(&format!("{kind:?}")).copied().unwrap_or(0)
}

fn applied(cluster: &Cluster, store: u64) -> u64 {
    cluster.handle(store).region(RegionId::new(1)).unwrap().applied.get()
}

/// Appends, answers and log batches of the leader while `count` clients write, and how far the slowest follower ever
/// was behind. The clients begin one after another, so that several batches are under way at a time.
fn under_load(count: usize) -> (u64, u64, u64, u64) {
    let mut cluster = cluster();
    let batches = cluster.metric(1, "raftstore_log_batches_total", None);
    let (mut clients, mut behind) = (Clients::default(), 0);
    for round in 0..400 {
        if clients.0.len() < count {
            clients.begin(&cluster);
        }
        clients.round(&mut cluster, round < 380);
        let slowest = applied(&cluster, 2).min(applied(&cluster, 3));
        behind = behind.max(applied(&cluster, 1).saturating_sub(slowest));
    }
    // No time has passed, hence no heartbeat: nothing is left to be announced.
    let first = applied(&cluster, 1);
    assert_eq!([applied(&cluster, 2), applied(&cluster, 3)], [first; 2], "{count} clients");
    assert_eq!(sent(&cluster, MessageType::MsgHeartbeat), 0);
    let batches = cluster.metric(1, "raftstore_log_batches_total", None) - batches;
    let (appends, answers) = (MessageType::MsgAppend, MessageType::MsgAppendResponse);
    (sent(&cluster, appends), sent(&cluster, answers), batches as u64, behind)
}

/// While batches follow each other, each costs an append and an acknowledgement for each follower. Nothing but the
/// writes under way is missing on a follower. (There was a notice of each commit too, which was answered.)
#[test]
fn batch_under_load_costs_two_messages_for_each_follower() {
    for clients in [3, 4, 16] {
        let (appends, answers, batches, behind) = under_load(clients);
        assert!(batches > 200, "{batches}");
        // The last commit is announced by a notice.
        let expected = 2 * batches..=2 * batches + 2;
        assert!(expected.contains(&appends), "{clients} clients: {appends} appends of {batches} batches");
        assert!(expected.contains(&answers), "{clients} clients: {answers} answers to {batches} batches");
        assert!(behind <= clients as u64, "{clients} clients: a follower is {behind} entries behind");
    }
}

/// One client: each write is an append, its acknowledgement and a notice for each follower. A notice is not answered.
#[test]
fn lone_write_costs_three_messages_for_each_follower() {
    let (appends, answers, batches, _) = under_load(1);
    assert_eq!((appends, answers), (4 * batches, 2 * batches));
}

/// An acknowledgement that is lost is asked for again, although later notices are not answered.
#[test]
fn lost_acknowledgement_is_repeated() {
    let mut cluster = cluster();
    cluster.isolated.insert(3);
    cluster.hold = |message| is(message, MessageType::MsgAppendResponse);
    let mut write = cluster.start_write(1, 1, put(KEY, b"v"));
    cluster.settle();
    assert_eq!((cluster.held.len(), write.poll()), (1, None));
    cluster.held.clear();
    cluster.hold = |_| false;
    cluster.run_for(2 * cluster.config.heartbeat_ticks * cluster.config.tick_interval);
    write.poll().unwrap().unwrap();
    cluster.settle();
    assert_eq!(applied(&cluster, 2), applied(&cluster, 1));
}
