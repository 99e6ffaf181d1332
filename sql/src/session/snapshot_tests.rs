//! Which snapshots and replicas statements get, by settings, hints and the state of the transaction.

use kv::client::ProofPolicy;

use super::*;
use crate::protocol::output::Output;
use crate::session::long_text::bind_body;
use crate::session::state::NodeContext;

struct Probe {
    session: Session,
    out: Output,
}

impl Probe {
    async fn new() -> Probe {
        let session = Session::over(NodeContext::in_memory());
        let mut probe = Probe { session, out: Output::new(Box::new(tokio::io::sink()), 1 << 20) };
        probe.run("create table t (id int primary key)").await;
        probe
    }

    async fn run(&mut self, text: &str) {
        self.session.simple_query(text, &mut self.out).await.expect("the connection lasts");
    }

    /// The snapshot of a statement and the options of its reads, as if it were executed now, and then forgotten.
    async fn decide(&mut self, text: &str, is_alone: bool) -> (Wanted, String) {
        let query = Query::parse(text).expect(text).expect(text);
        let session = &mut self.session;
        session.begin_message(0);
        session.is_alone = is_alone && session.state.block() == Block::Implicit;
        session.begin_for(&query).await.unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        let active = session.active.as_ref().expect("begun");
        let bound = bind_body(&query, None, &active.lease.catalog, false).expect(text);
        let options = session.read_options(&query, &bound);
        let options = options.map_or_else(String::new, |options| {
            if let Some(floor) = options.floor.filter(|_| options.proof != ProofPolicy::Unproven) {
                assert!(floor >= active.lease.since, "its catalog is not newer than the snapshot");
                let is_session = active.wanted == Wanted::Session;
                assert!(!is_session || floor >= session.settings.live.token(), "it has what the session has seen");
            }
            let shared = if options.read_only { " shared" } else { "" };
            let floor = if options.floor.is_some() { " floor" } else { "" };
            format!("{:?} {:?} {:?}{shared}{floor}", options.replica, options.proof, options.hedge)
        });
        let wanted = active.wanted.clone();
        session.active = None;
        if session.state.block() == Block::Implicit {
            session.fail();
        }
        (wanted, options)
    }

    async fn options(&mut self, text: &str, is_alone: bool) -> String {
        self.decide(text, is_alone).await.1
    }
}

#[tokio::test]
async fn plain_sessions_have_no_options() {
    let mut probe = Probe::new().await;
    for text in ["select * from t", "insert into t values (1)", "select 1", "select * from t for update"] {
        assert_eq!(probe.decide(text, true).await, (Wanted::Own, String::new()), "{text}");
    }
    probe.run("set cortado.grants = off; set cortado.replica_wait = '1s'").await;
    assert_eq!(probe.options("select * from t", true).await, "", "leaders need neither");
    probe.run("show cortado.last_read").await;
    let counted = "Leader ReadIndex Off shared";
    assert_eq!(probe.options("select * from t", true).await, counted, "somebody looks");
}

#[tokio::test]
async fn only_reads_choose_replicas_and_only_those_that_cannot_write_share_a_snapshot() {
    let mut probe = Probe::new().await;
    probe.run("set cortado.replica_read = closest; set cortado.hedge = auto").await;
    let read = "select * from t";
    assert_eq!(probe.options(read, true).await, "Closest Grants Auto shared");
    assert_eq!(probe.options(read, false).await, "Closest Grants Auto");
    for write in ["insert into t values (1)", "select * from t for share"] {
        assert_eq!(probe.options(write, true).await, "", "{write}");
    }
    let analyzed = probe.options("explain analyze delete from t", true).await;
    assert_eq!(analyzed, "Leader Grants Off", "its reads are counted, and it shares no snapshot");
    let hinted = "select /*+ REPLICA_READ(leader) HEDGE(off) */ * from t";
    assert_eq!(probe.options(hinted, true).await, "");
    assert_eq!(
        probe.options("select /*+ REPLICA_READ(any) HEDGE(2ms) */ * from t", false).await,
        "Any Grants After(2ms)"
    );
    probe.run("begin").await;
    assert_eq!(probe.options(read, true).await, "Closest Grants Auto", "a write may follow");
    probe.run("rollback; begin read only").await;
    assert_eq!(probe.options(read, false).await, "Closest Grants Auto shared");
    probe.run("rollback; set cortado.grants = off").await;
    assert_eq!(probe.options(read, true).await, "Closest ReadIndex Auto shared");
    assert_eq!(probe.options("explain analyze select * from t", true).await, "Closest ReadIndex Auto shared");
}

/// SET TRANSACTION READ ONLY may follow a write, whose transaction has its snapshot for itself.
#[tokio::test]
async fn what_was_written_before_read_only_is_read_and_committed() {
    let read_only = ["set transaction read only", "set transaction_read_only = on"];
    for (setting, select) in [
        ("set cortado.replica_read = closest", "select * from t"),
        ("set cortado.session_snapshot = on", "select * from t"),
        ("show cortado.last_read", "select * from t"),
        ("", "explain analyze select * from t"),
        ("", "select /*+ REPLICA_READ(closest) */ * from t"),
    ] {
        for then in read_only {
            let mut probe = Probe::new().await;
            probe.run(&format!("{setting}; begin; insert into t values (1)")).await;
            probe.run(then).await;
            probe.run(select).await;
            probe.run(select).await;
            assert_eq!(probe.session.state.block(), Block::Explicit, "{setting} {select}");
            probe.run("commit").await;
            assert_eq!(probe.session.state.block(), Block::Idle, "{setting} {select}");
        }
    }
}

#[tokio::test]
async fn a_session_snapshot_is_for_what_cannot_write() {
    let mut probe = Probe::new().await;
    probe.run("insert into t values (1); set cortado.session_snapshot = on").await;
    let read = "select * from t";
    assert_eq!(probe.decide(read, true).await, (Wanted::Session, "Closest Grants Off shared floor".to_owned()));
    assert_eq!(probe.decide(read, false).await.0, Wanted::Own, "a write may follow");
    assert_eq!(probe.decide("insert into t values (1)", true).await.0, Wanted::Own);
    assert_eq!(probe.decide("select * from t for update", true).await.0, Wanted::Own);
    probe.run("begin").await;
    assert_eq!(probe.decide(read, true).await.0, Wanted::Own);
    probe.run("rollback; begin read only").await;
    assert_eq!(probe.decide(read, false).await.0, Wanted::Session);
    probe.run("rollback; set default_transaction_read_only = on").await;
    assert_eq!(probe.decide(read, false).await.0, Wanted::Session);
    // A schema change raises the least snapshot: `decide` compares it with the catalog's.
    probe.run("set default_transaction_read_only = off").await;
    probe.run("create table u (id int primary key)").await;
    assert_eq!(probe.decide("select * from u", true).await.0, Wanted::Session);
}

#[tokio::test]
async fn staleness_decides_about_proof_and_snapshot() {
    let mut probe = Probe::new().await;
    probe.run("set cortado.replica_read = follower; set cortado.read_staleness = 'max 5s'").await;
    let (wanted, options) = probe.decide("select * from t", false).await;
    assert_eq!((wanted.is_stale(), options.as_str()), (true, "Follower Grants Off shared floor"));
    probe.run("set cortado.read_staleness = unbounded").await;
    let (wanted, options) = probe.decide("select * from t", false).await;
    assert_eq!((wanted.is_unproven(), options.as_str()), (true, "Follower Unproven Off shared floor"));
    let hinted = "select /*+ STALENESS('') */ * from t";
    assert_eq!(probe.decide(hinted, true).await, (Wanted::Own, "Follower Grants Off shared".to_owned()));
    probe.run("begin").await;
    assert!(probe.decide("select * from t", false).await.0.is_unproven(), "the block reads old data, and cannot write");
}
