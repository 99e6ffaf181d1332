//! Membership: which nodes join a cluster. A rejected node prints one line and changes nothing on disk.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::clients::connect_with_retries;
use crate::command_line::{error_line, start};
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{Process, contents, cortado, free_port, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_do_not_mix() {
    let lock = ClusterLock::acquire();
    let mut theirs = Cluster::start(&lock, 1).await;
    let listen = |cluster: &Cluster| format!("127.0.0.1:{}", cluster.nodes[0].listen);

    // The directory of a running node.
    let message = error_line(&mut start(&theirs.nodes[0].dir, free_port(), free_port(), &listen(&theirs)));
    assert!(message.contains("in use by another process"), "{message}");

    // The directory of a node of another cluster.
    theirs.kill(0);
    let mut ours = Cluster::start(&lock, 1).await;
    let before = contents(&theirs.nodes[0].dir);
    let message = error_line(&mut start(&theirs.nodes[0].dir, free_port(), free_port(), &listen(&ours)));
    assert!(message.contains("belongs to cluster"), "{message}");
    assert_eq!(contents(&theirs.nodes[0].dir), before, "a failed start changes nothing");

    // A cluster with another id than `--cluster-id`.
    let dir = tempfile::tempdir().unwrap();
    let assert_rejected = |data: &std::path::Path| {
        let mut command = start(data, free_port(), free_port(), &listen(&ours));
        let message = error_line(command.args(["--cluster-id", "00000000000000ff"]));
        assert!(message.contains("belongs to cluster") && message.contains("00000000000000ff"), "{message}");
    };
    assert_rejected(&dir.path().join("deep/new"));
    assert_eq!(contents(dir.path()), [], "a rejected node leaves no files");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_rejected(&empty);
    assert_eq!(contents(dir.path()), [(empty, Vec::new())], "nor does it change an existing directory");

    // The directory of our node, with the id of another cluster.
    ours.kill(0);
    let before = contents(&ours.nodes[0].dir);
    assert_rejected_by_own_data(&ours);
    assert_eq!(contents(&ours.nodes[0].dir), before, "a failed start changes nothing");
    ours.spawn(0);
    ours.wait_until_serving(0).await;

    // Initialising twice.
    let message = error_line(cortado().args(["init", "--host", &listen(&ours)]));
    assert!(message.contains("already initialised"), "{message}");
}

fn assert_rejected_by_own_data(cluster: &Cluster) {
    let node = &cluster.nodes[0];
    let mut command = start(&node.dir, node.listen, node.pg, &format!("127.0.0.1:{}", node.listen));
    let message = error_line(command.args(["--cluster-id", "00000000000000ff"]));
    assert!(message.contains("belongs to cluster") && message.contains("00000000000000ff"), "{message}");
}

/// A voter that lost its data would break the promises of its votes: `start` does not let it in again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_its_data_is_rejected() {
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start(&lock, 3).await;
    cluster.kill(2);
    let join: Vec<String> = cluster.nodes.iter().map(|n| format!("127.0.0.1:{}", n.listen)).collect();
    let lost = cluster.nodes[2].dir.with_extension("lost");
    let message = error_line(&mut start(&lost, cluster.nodes[2].listen, cluster.nodes[2].pg, &join.join(",")));
    assert!(message.contains("is node 3 of cluster") && message.contains("its data is not in"), "{message}");
    assert!(!lost.exists(), "a rejected node leaves no files");
    cluster.spawn(2);
    cluster.wait_until_serving(2).await;
}

/// Of two uninitialised nodes with the same address, the second fails at once, not when it would begin to serve.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_uninitialised_nodes_cannot_share_a_port() {
    let _lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let (listen, pg) = (free_port(), free_port());
    let join = format!("127.0.0.1:{listen},127.0.0.1:{}", free_port());
    let mut command = start(&dir.path().join("first"), listen, pg, &join);
    let mut first = Process::spawn(command.arg("--until-stdin-closes"), &dir.path().join("first.log"));
    wait_for("the first node to listen", || TcpStream::connect(("127.0.0.1", listen)).is_ok());

    let second = dir.path().join("second");
    for (listen, pg, taken) in [(free_port(), pg, pg), (listen, free_port(), listen)] {
        let message = error_line(&mut start(&second, listen, pg, &join));
        assert!(message.contains(&taken.to_string()) && message.contains("in use"), "{message}");
        assert!(!second.exists(), "a rejected node leaves no files");
    }
    assert!(!first.has_ended(), "{}", first.tail());
    first.signal("TERM");
    assert_eq!(first.wait().code(), Some(0), "an uninitialised node stops gracefully: {}", first.tail());
}

/// Asks a gateway to cancel a session that it does not have. It logs that at debug level.
fn cancel_unknown_session(pg: u16) {
    let request: Vec<u8> = [16u32, 80_877_102, 1, 1].iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut stream = TcpStream::connect(("127.0.0.1", pg)).unwrap();
    stream.write_all(&request).unwrap();
    // The gateway closes the connection once it has handled the request.
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}

/// The locality of a node as another node reports it.
fn locality(cluster: &Cluster, address: &str) -> Option<String> {
    let status = cluster.status(0);
    let node = status["nodes"].as_array()?.iter().find(|node| node["address"] == address)?.clone();
    Some(node["locality"].as_str()?.to_owned())
}

/// The locality of a node reaches the whole cluster, also when it changes. `--log` filters by level and module and
/// overrides RUST_LOG.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locality_and_log_filters_take_effect() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 1).await;
    let dir = tempfile::tempdir().unwrap();
    let (listen, pg) = (free_port(), free_port());
    let join = format!("127.0.0.1:{}", cluster.nodes[0].listen);
    for (name, zone, flag, variable) in
        [("flag", "region=eu,zone=a", Some("error,sql=debug"), "trace"), ("variable", "region=us", None, "sql=debug")]
    {
        let log = dir.path().join(format!("{name}.log"));
        let mut command = start(&dir.path().join("late"), listen, pg, &join);
        command.args(["--until-stdin-closes", "--locality", zone]).env("RUST_LOG", variable);
        let mut late = Process::spawn(command.args(flag.map(|filter| format!("--log={filter}"))), &log);
        drop(connect_with_retries(pg).await);
        cancel_unknown_session(pg);
        wait_for("the locality", || locality(&cluster, &format!("127.0.0.1:{listen}")).as_deref() == Some(zone));
        late.close_stdin();
        assert!(late.wait().success(), "{}", late.tail());

        let text = fs::read_to_string(&log).unwrap();
        assert!(text.contains("DEBUG") && text.contains("reaches no session"), "{name}: {text}");
        let foreign = text.lines().find(|line| line.contains("INFO") || line.contains("TRACE"));
        assert_eq!(foreign, None, "{name}: only what the filter admits");
    }
}

/// A node joins a running cluster through the address of one node that does not lead. Without replicas it is a gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_joins_a_running_cluster() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    cluster
        .connect(0)
        .await
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
        .await
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (listen, pg) = (free_port(), free_port());
    let join = format!("127.0.0.1:{}", cluster.nodes[(cluster.leader_of(1) + 1) % 3].listen);
    // In the second round it has its identity on disk.
    for (round, rows) in [(0, 2), (1, 3)] {
        let mut command = start(&dir.path().join("late"), listen, pg, &join);
        let mut late = Process::spawn(command.arg("--until-stdin-closes"), &dir.path().join("late.log"));
        let client = connect_with_retries(pg).await;
        let count: i64 = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
        assert_eq!(count, rows);
        client.execute("INSERT INTO t VALUES ($1)", &[&(3 + round)]).await.unwrap();
        let count: i64 = cluster.connect(2).await.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
        assert_eq!(count, rows + 1);
        late.close_stdin();
        assert!(late.wait().success(), "{}", late.tail());
    }
}
