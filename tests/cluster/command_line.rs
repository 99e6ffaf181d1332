//! What is typed wrongly is told in one line on stderr, ends with a non-zero exit code, and changes nothing on disk.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Cluster, contents, cortado, free_port};

/// Runs to the end, which must come by itself.
fn run(command: &mut Command) -> Output {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// The one line that a refused command says.
fn refusal(command: &mut Command) -> String {
    let out = run(command);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success(), "{command:?} must fail");
    assert!(out.status.code().is_some(), "{command:?} must exit, not crash: {said}");
    let lines: Vec<&str> =
        said.lines().filter(|line| line.starts_with("cortado: ") || line.starts_with("error: ")).collect();
    assert_eq!(lines.len(), 1, "{command:?} must say one line, not:\n{said}");
    assert!(!said.contains("panicked"), "{said}");
    lines[0].to_string()
}

fn start(dir: &Path, listen: u16, pg: u16, join: &str) -> Command {
    let mut command = cortado();
    command.arg("start").arg("--data").arg(dir).args([
        "--listen",
        &format!("127.0.0.1:{listen}"),
        "--pg",
        &format!("127.0.0.1:{pg}"),
        "--join",
        join,
    ]);
    command
}

#[test]
fn flags() {
    assert!(refusal(cortado().args(["demo", "--colour"])).contains("--colour"));
    assert!(refusal(cortado().args(["start"])).contains("required"));
    assert!(refusal(cortado().args(["demo", "--nodes", "0"])).contains("--nodes"));
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for (listen, pg) in [("nonsense", "127.0.0.1:1"), ("127.0.0.1:99999", "127.0.0.1:1"), ("127.0.0.1:1", "10.0.0.1")] {
        let said = refusal(cortado().arg("start").arg("--data").arg(&data).args([
            "--join",
            "127.0.0.1:1",
            "--listen",
            listen,
            "--pg",
            pg,
        ]));
        assert!(said.contains("invalid value"), "{said}");
    }
    let said = refusal(cortado().arg("start-single-node").arg("--data").arg(&data).args(["--pg", "0.0.0.0:0"]));
    assert!(said.contains("--insecure"), "{said}");
    assert!(refusal(&mut start(&data, 4000, 4000, "127.0.0.1:1")).contains("both"));
    let said = refusal(cortado().arg("start-single-node").arg("--data").arg(&data).args(["--log", "=="]));
    assert!(said.contains("--log"), "{said}");
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn a_taken_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for (listen, pg) in [(port, free_port()), (free_port(), port)] {
        let said = refusal(&mut start(&data, listen, pg, "127.0.0.1:1"));
        assert!(said.contains(&port.to_string()) && said.contains("in use"), "{said}");
    }
    let said = refusal(cortado().args(["demo", "--pg-port", &port.to_string()]));
    assert!(said.contains(&port.to_string()), "{said}");
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn nobody_there() {
    let host = format!("127.0.0.1:{}", free_port());
    assert!(refusal(cortado().args(["status", "--host", &host])).contains("cannot reach"));
    assert!(refusal(cortado().args(["init", "--host", &host])).contains("cannot reach"));
}

#[test]
fn directories_that_are_not_ours() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "years of work").unwrap();
    let newer = dir.path().join("newer");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("IDENT"), "{\"format\": 1000}").unwrap();
    let before = contents(dir.path());
    for (data, word) in [(&foreign, "not a Cortado data directory"), (&newer, "format 1000")] {
        let said = refusal(&mut start(data, free_port(), free_port(), "127.0.0.1:1"));
        assert!(said.contains(word), "{said}");
    }
    let file = dir.path().join("newer/IDENT");
    refusal(&mut start(&file, free_port(), free_port(), "127.0.0.1:1"));
    assert_eq!(contents(dir.path()), before, "a refusal changes nothing");
}

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
    let data = dir.path().join("new");
    let mut command = start(&data, free_port(), free_port(), &listen(&ours));
    let said = refusal(command.args(["--cluster-id", "00000000000000ff"]));
    assert!(said.contains("belongs to cluster") && said.contains("00000000000000ff"), "{said}");
    assert!(!data.join("IDENT").exists());

    // Initialising twice.
    let said = refusal(cortado().args(["init", "--host", &listen(&ours)]));
    assert!(said.contains("already initialised"), "{said}");
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
    assert!(!lost.join("IDENT").exists());
    cluster.spawn(2);
    cluster.wait_until_serving(2).await;
}

/// A node without replicas is a gateway all the same.
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
    let join: Vec<String> = cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.listen)).collect();
    let join = join.join(",");
    let log = dir.path().join("late.log");
    let mut child = start(&dir.path().join("late"), listen, pg, &join)
        .arg("--until-stdin-closes")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + crate::harness::PATIENCE;
    let client = loop {
        if let Some(client) = crate::harness::connect(pg).await {
            break client;
        }
        let said = fs::read_to_string(&log).unwrap();
        assert!(Instant::now() < deadline, "the new node takes no connection:\n{said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let count: i64 = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
    assert_eq!(count, 2);
    client.execute("INSERT INTO t VALUES ($1)", &[&3i32]).await.unwrap();
    let count: i64 = cluster.connect(2).await.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0);
    assert_eq!(count, 3);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
