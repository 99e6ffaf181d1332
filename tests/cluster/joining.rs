//! Who is taken into a cluster, and who is refused: with one line, and with nothing changed on disk.

use std::fs;
use std::net::TcpStream;

use crate::clients::connect_patiently;
use crate::command_line::{refusal, start};
use crate::harness::Cluster;
use crate::process::{Process, contents, cortado, free_port, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_do_not_mix() {
    let ours = Cluster::start(1).await;
    let mut theirs = Cluster::start(1).await;
    let listen = |cluster: &Cluster| format!("127.0.0.1:{}", cluster.nodes[0].listen);

    // A directory that a running node holds.
    let said = refusal(&mut start(&theirs.nodes[0].dir, free_port(), free_port(), &listen(&theirs)));
    assert!(said.contains("in use by another process"), "{said}");

    // A directory of another cluster.
    theirs.kill(0);
    let before = contents(&theirs.nodes[0].dir);
    let said = refusal(&mut start(&theirs.nodes[0].dir, free_port(), free_port(), &listen(&ours)));
    assert!(said.contains("belongs to cluster"), "{said}");
    assert_eq!(contents(&theirs.nodes[0].dir), before, "a refusal changes nothing");

    // A cluster with another id than the one asked for.
    let dir = tempfile::tempdir().unwrap();
    let refused = |data: &std::path::Path| {
        let mut command = start(data, free_port(), free_port(), &listen(&ours));
        let said = refusal(command.args(["--cluster-id", "00000000000000ff"]));
        assert!(said.contains("belongs to cluster") && said.contains("00000000000000ff"), "{said}");
    };
    refused(&dir.path().join("deep/new"));
    assert_eq!(contents(dir.path()), [], "a refused node leaves nothing");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    refused(&empty);
    assert_eq!(contents(dir.path()), [(empty, Vec::new())], "nor does it touch a directory that was there");

    // The directory of a node of ours, with the id of another cluster.
    let mut ours = ours;
    ours.kill(0);
    let before = contents(&ours.nodes[0].dir);
    refused_by_own_data(&ours);
    assert_eq!(contents(&ours.nodes[0].dir), before, "a refusal changes nothing");
    ours.spawn(0);
    ours.wait_until_serving(0).await;

    // Initialising twice.
    let said = refusal(cortado().args(["init", "--host", &listen(&ours)]));
    assert!(said.contains("already initialised"), "{said}");
}

fn refused_by_own_data(cluster: &Cluster) {
    let node = &cluster.nodes[0];
    let mut command = start(&node.dir, node.listen, node.pg, &format!("127.0.0.1:{}", node.listen));
    let said = refusal(command.args(["--cluster-id", "00000000000000ff"]));
    assert!(said.contains("belongs to cluster") && said.contains("00000000000000ff"), "{said}");
}

/// A voter that comes back empty would break the promises it made: neither `start` nor `init` makes it one again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_its_data_is_not_let_in() {
    let mut cluster = Cluster::start(3).await;
    cluster.kill(2);
    let join: Vec<String> = cluster.nodes.iter().map(|n| format!("127.0.0.1:{}", n.listen)).collect();
    let lost = cluster.nodes[2].dir.with_extension("lost");
    let said = refusal(&mut start(&lost, cluster.nodes[2].listen, cluster.nodes[2].pg, &join.join(",")));
    assert!(said.contains("is node 3 of cluster") && said.contains("its data is not in"), "{said}");
    assert!(!lost.exists(), "a refused node leaves nothing");
    cluster.spawn(2);
    cluster.wait_until_serving(2).await;
}

/// Two nodes that wait for `init` and were given one address: whoever came second is told at once, not when it would serve.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_waiting_nodes_cannot_share_a_port() {
    let dir = tempfile::tempdir().unwrap();
    let (listen, pg) = (free_port(), free_port());
    let join = format!("127.0.0.1:{listen},127.0.0.1:{}", free_port());
    let mut command = start(&dir.path().join("first"), listen, pg, &join);
    let mut first = Process::spawn(command.arg("--until-stdin-closes"), &dir.path().join("first.log"));
    wait_for("the first node to listen", || TcpStream::connect(("127.0.0.1", listen)).is_ok());

    let second = dir.path().join("second");
    for (listen, pg, taken) in [(free_port(), pg, pg), (listen, free_port(), listen)] {
        let said = refusal(&mut start(&second, listen, pg, &join));
        assert!(said.contains(&taken.to_string()) && said.contains("in use"), "{said}");
        assert!(!second.exists(), "a refused node leaves nothing");
    }
    assert!(!first.has_ended(), "{}", first.tail());
    first.signal("TERM");
    assert_eq!(first.wait().code(), Some(0), "a node that waits stops politely too: {}", first.tail());
}

/// A node without replicas is a gateway all the same, and one address of a node that does not lead is enough to join.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_joins_later() {
    let cluster = Cluster::start(3).await;
    cluster
        .connect(0)
        .await
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
        .await
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (listen, pg) = (free_port(), free_port());
    let join = format!("127.0.0.1:{}", cluster.nodes[(cluster.leader_of(1) + 1) % 3].listen);
    // The second time it knows who it is.
    for (round, rows) in [(0, 2), (1, 3)] {
        let mut command = start(&dir.path().join("late"), listen, pg, &join);
        let mut late = Process::spawn(command.arg("--until-stdin-closes"), &dir.path().join("late.log"));
        let client = connect_patiently(pg).await;
        let count: i64 = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
        assert_eq!(count, rows);
        client.execute("INSERT INTO t VALUES ($1)", &[&(3 + round)]).await.unwrap();
        let count: i64 = cluster.connect(2).await.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
        assert_eq!(count, rows + 1);
        late.close_stdin();
        assert!(late.wait().success(), "{}", late.tail());
    }
}
