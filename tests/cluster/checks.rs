//! `cortado check table`: equal indexes, names, databases, and what cannot be checked.

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{cortado, run};

/// What the command prints on success, or its error.
fn check(cluster: &Cluster, node: usize, args: &[&str]) -> Result<String, String> {
    let host = format!("127.0.0.1:{}", cluster.nodes[node].listen);
    let out = run(cortado().args(["check", "table", "--host", &host]).args(args));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if out.status.success() { Ok(text(out.stdout)) } else { Err(text(out.stderr)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_equal_their_indexes() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 1).await;
    let client = cluster.connect(0).await;
    let tables = "CREATE TABLE t (id int PRIMARY KEY, v int UNIQUE, w text);
        CREATE INDEX ON t (lower(w), v DESC) INCLUDE (id) WHERE v > 10;
        CREATE SCHEMA s; CREATE TABLE s.\"T\" (a int, b int); CREATE INDEX ON s.\"T\" (a);
        INSERT INTO t SELECT g, g * 2, 'W' || g FROM generate_series(1, 1000) g;
        INSERT INTO s.\"T\" SELECT g % 3, g FROM generate_series(1, 10) g;
        UPDATE t SET v = -v, w = NULL WHERE id % 5 = 0; DELETE FROM t WHERE id % 7 = 0;
        CREATE DATABASE other";
    for statement in tables.split(';') {
        client.batch_execute(statement).await.unwrap();
    }
    // All 858 rows are in the index of v, and 682 in the other one: 172 have a negative v, and 4 have one up to 10.
    let expected = "public.t: 858 rows, 1540 index entries: ok\n";
    assert_eq!(check(&cluster, 0, &["t"]), Ok(expected.to_owned()));
    assert_eq!(check(&cluster, 0, &["S.\"T\""]), Ok("s.\"T\": 10 rows, 10 index entries: ok\n".to_owned()));
    let all = check(&cluster, 0, &[]).unwrap();
    assert_eq!(all.lines().count(), 2, "{all}");
    let json: serde_json::Value = serde_json::from_str(&check(&cluster, 0, &["--json", "public.T"]).unwrap()).unwrap();
    assert_eq!((&json["table"], &json["rows"], &json["differences"]), (&"public.t".into(), &858.into(), &0.into()));
    assert_eq!(check(&cluster, 0, &["--database", "other"]), Ok(String::new()));
    for (args, why) in [
        (&["t", "nope"][..], "relation \"nope\" does not exist"),
        (&["--database", "nope"], "database \"nope\" does not exist"),
    ] {
        let error = check(&cluster, 0, args).unwrap_err();
        assert!(error.contains(why) && error.trim_end().lines().count() == 1, "{error}");
    }
}
