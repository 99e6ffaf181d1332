//! `cortado start-single-node`: a cluster in one process, with its status, metrics, health and logs.

use std::fs;
use std::path::Path;
use std::process::Command;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::clients::connect_with_retries;
use crate::command_line::error_line;
use crate::exclusive::ClusterLock;
use crate::process::{Process, contents, cortado, free_port, http_get, metric, run, wait_for};

/// The prefix of each layer's metric names.
const LAYERS: [(&str, &str); 7] = [
    ("engine", "log_"),
    ("raftstore", "raftstore_"),
    ("transport", "transport_"),
    ("kv", "kv_"),
    ("txn", "txn_"),
    ("tso", "tso_"),
    ("sql", "sql_"),
];

struct SingleNode {
    pg: u16,
    listen: u16,
    http: u16,
    process: Process,
}

/// The command that starts a node with these SQL, cluster and HTTP ports.
fn start(data: &Path, ports: [u16; 3]) -> Command {
    let [pg, listen, http] = ports.map(|port| format!("127.0.0.1:{port}"));
    let mut command = cortado();
    command.args(["start-single-node", "--cache", "64MiB"]).arg("--data").arg(data);
    command.args(["--pg", &pg, "--listen", &listen, "--http", &http]);
    command
}

fn spawn(_lock: &ClusterLock, data: &Path, logs: &[&str]) -> SingleNode {
    let (pg, listen, http) = (free_port(), free_port(), free_port());
    let mut command = start(data, [pg, listen, http]);
    command.arg("--until-stdin-closes").args(logs);
    let process = Process::spawn(&mut command, &data.with_extension(format!("{pg}.log")));
    SingleNode { pg, listen, http, process }
}

impl SingleNode {
    async fn connect(&self) -> Client {
        connect_with_retries(self.pg).await
    }

    fn status(&self, flags: &[&str]) -> String {
        let out = run(cortado().args(["status", "--host", &format!("127.0.0.1:{}", self.listen)]).args(flags));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }
}

async fn rows(client: &Client) -> Vec<(i32, String)> {
    let rows = client.query("SELECT id, v FROM t ORDER BY id", &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The node serves, stops gracefully, and has its data after a restart and after a crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_survives_restart_and_crash() {
    let lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut node = spawn(&lock, &data, &[]);
    let client = node.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'one')").await.unwrap();
    node.process.signal("TERM");
    assert_eq!(node.process.wait().code(), Some(0), "{}", node.process.tail());

    let mut node = spawn(&lock, &data, &[]);
    let client = node.connect().await;
    assert_eq!(rows(&client).await, [(1, "one".to_string())], "after a stop");
    client.batch_execute("INSERT INTO t VALUES (2, 'two')").await.unwrap();
    node.process.kill();
    node.process.wait();

    let mut node = spawn(&lock, &data, &[]);
    let client = node.connect().await;
    assert_eq!(rows(&client).await, [(1, "one".to_string()), (2, "two".to_string())], "after a crash");
    node.process.signal("INT");
    assert_eq!(node.process.wait().code(), Some(0), "Ctrl-C stops it gracefully: {}", node.process.tail());
}

/// A node that ran before fails if its log is missing. It does not create a new log, which would have lost votes and
/// entries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_log_is_not_created_again() {
    let lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut node = spawn(&lock, &data, &[]);
    node.connect().await;
    node.process.signal("TERM");
    assert_eq!(node.process.wait().code(), Some(0), "{}", node.process.tail());
    let files = || -> Vec<_> { fs::read_dir(data.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect() };
    files().iter().for_each(|file| fs::remove_file(file).unwrap());
    let mut node = spawn(&lock, &data, &[]);
    assert_eq!(node.process.wait().code(), Some(1), "{}", node.process.tail());
    assert!(node.process.tail().contains("Raft log: there is no log here"), "{}", node.process.tail());
    let logs = files().into_iter().filter(|file| file.extension().is_some_and(|known| known == "log"));
    assert_eq!(logs.count(), 0, "nothing was created");
}

/// A data directory of an older or newer release is refused with one line that says what to do, and nothing changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_of_another_format_is_refused() {
    let lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut node = spawn(&lock, &data, &[]);
    node.connect().await;
    // Without a clean stop the next start has work to do in the log.
    node.process.kill();
    node.process.wait();
    for (format, advice) in [(3, "use the release that wrote it, or"), (5, "use a newer release")] {
        fs::write(data.join("kv/FORMAT"), format!("cortado-store {format}\n")).unwrap();
        let before = contents(&data);
        let line = error_line(&mut start(&data, [free_port(), free_port(), free_port()]));
        assert!(line.contains(&format!("has format {format}, this release reads format 4; {advice}")), "{line}");
        assert!(contents(&data) == before, "format {format}: the data directory was changed");
    }
}

/// A text around another one, so many times.
fn nested(levels: usize, open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

/// WITH of so many queries, each of which reads the one before.
fn chain(queries: usize) -> String {
    let later = (1..queries).map(|at| format!(", c{at} as (select a + 1 as a from c{})", at - 1));
    format!("with c0 as (select 0 as a){} select a from c{}", later.collect::<String>(), queries - 1)
}

/// Before, each of these overflowed the stack of the session's thread, which ended the node.
#[tokio::test]
async fn deep_statements_run_or_are_refused() {
    let lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let node = spawn(&lock, &dir.path().join("node"), &[]);
    let client = node.connect().await;
    client.batch_execute("create table ex (id int primary key); insert into ex values (1), (2)").await.unwrap();
    let union: Vec<String> = (0..200).map(|at| format!("select {at} as a")).collect();
    let runs = [
        (format!("select count(*)::int from ({}) u", union.join(" union all ")), 200),
        (format!("select count(*)::int from ({}) u", union.join(" union ")), 200),
        (nested(60, "select (", "select count(*)::int from ex", ")"), 2),
        (nested(60, "select id from ex where id in (", "select 2", ")"), 2),
        (nested(60, "select 1 from ex where exists (", "select 1 from ex where id = 2", ") limit 1"), 1),
        (nested(60, "select * from (", "select 7 as a", ") x"), 7),
        (chain(300), 299),
    ];
    for (text, expected) in runs {
        let row = client.query_one(&text, &[]).await.unwrap_or_else(|error| panic!("{error:?}: {text:.80}"));
        assert_eq!(row.get::<_, i32>(0), expected, "{text:.80}");
    }
    let refused = client.query(&chain(5_000), &[]).await.expect_err("too deep");
    assert_eq!(refused.code(), Some(&SqlState::STATEMENT_TOO_COMPLEX), "{refused:?}");
    // Views multiply what one text may nest.
    for (prefix, levels, queries) in [("v", 40, 1), ("w", 0, 40)] {
        client.batch_execute(&format!("create view {prefix}0 as select id from ex")).await.unwrap();
        let mut views = 0;
        let refused = loop {
            let lower = format!("select id from {prefix}{views}");
            let inner = nested(levels, "select id from ex where id in (", &lower, ")");
            let first = format!("select id as a from ({inner}) x limit 1");
            let chain = chain(queries).replacen("select 0 as a", &first, 1);
            views += 1;
            let created = client.batch_execute(&format!("create view {prefix}{views} (id) as {chain}")).await;
            match client.query(&format!("select * from {prefix}{views}"), &[]).await {
                Ok(rows) if created.is_ok() => assert_eq!(rows.len(), 1),
                Ok(_) => panic!("a view that was refused is there"),
                Err(error) => break created.err().unwrap_or(error),
            }
        };
        assert_eq!(refused.code(), Some(&SqlState::STATEMENT_TOO_COMPLEX), "{prefix}{views}: {refused:?}");
        assert!((2..31).contains(&views), "{prefix}{views}");
    }
    assert_eq!(client.query("select * from ex", &[]).await.unwrap().len(), 2);
}

/// A transaction above the size that the node was started with fails with an error that says what to do, and leaves
/// nothing. A smaller one goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_above_the_configured_size_is_refused() {
    let lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let node = spawn(&lock, &dir.path().join("data"), &["--max-transaction-size", "1MiB"]);
    let client = node.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    let row = |id: i32| format!("INSERT INTO t VALUES ({id}, '{}')", "x".repeat(600_000));
    client.batch_execute(&row(1)).await.unwrap();
    client.batch_execute("BEGIN").await.unwrap();
    client.batch_execute(&row(2)).await.unwrap();
    let error = client.batch_execute(&row(3)).await.expect_err("it is too large");
    let error = error.as_db_error().expect("an error of the server");
    assert_eq!(error.code(), &SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert!(error.hint().is_some_and(|hint| hint.contains("--max-transaction-size")), "{error:?}");
    client.batch_execute("COMMIT").await.unwrap();
    client.batch_execute(&row(4)).await.unwrap();
    let ids = client.query("SELECT id FROM t ORDER BY id", &[]).await.unwrap();
    assert_eq!(ids.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 4]);
    let mut refused = start(&dir.path().join("other"), [free_port(), free_port(), free_port()]);
    assert!(error_line(refused.args(["--max-transaction-size", "1KiB"])).contains("from 1MiB to 4GiB"));
}

/// The status as tables and as JSON, the health page, and the metrics of every layer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_health_and_metrics_are_served() {
    let lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let node = spawn(&lock, &dir.path().join("data"), &[]);
    let client = node.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'one')").await.unwrap();

    // The node sends a heartbeat to itself once a second.
    let mut json = serde_json::Value::Null;
    wait_for("the status to be complete", || {
        json = serde_json::from_str(&node.status(&["--json"])).unwrap();
        json["nodes"][0]["leaders"] == 2
    });
    let only = &json["nodes"][0];
    assert_eq!(json["nodes"].as_array().unwrap().len(), 1, "{json:#}");
    assert_eq!((&only["id"], &only["state"]), (&1.into(), &"alive".into()), "{json:#}");
    assert_eq!(only["pg_address"], format!("127.0.0.1:{}", node.pg), "{json:#}");
    assert_eq!(only["address"], format!("127.0.0.1:{}", node.listen), "{json:#}");
    let regions: Vec<_> = json["regions"].as_array().unwrap().iter().map(|r| (&r["id"], &r["leader"])).collect();
    assert_eq!(regions, [(&1.into(), &1.into()), (&2.into(), &1.into())], "{json:#}");

    let host = format!("127.0.0.1:{}", node.listen);
    let asked = run(cortado().args(["txn", "status", "17.4", "--primary", "7431", "--host", &host]));
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    assert!(asked.stdout.starts_with(b"missing: "), "{}", String::from_utf8_lossy(&asked.stdout));
    for (start_ts, primary) in [("0.0", "7431"), ("99999999999999.0", "7431"), ("17.4", "")] {
        let asked = run(cortado().args(["txn", "status", start_ts, "--primary", primary, "--host", &host]));
        let said = String::from_utf8_lossy(&asked.stderr);
        assert!(!asked.status.success() && asked.stdout.is_empty() && said.lines().count() == 1, "{said}");
        assert!(!said.contains("internal"), "{said}");
    }

    let table = node.status(&[]);
    let cells = |start: &str| -> Vec<String> {
        let line = table.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start}:\n{table}"));
        line.split_whitespace().map(str::to_string).collect()
    };
    assert_eq!(cells("cluster")[1], json["cluster_id"].as_str().unwrap(), "{table}");
    assert_eq!(cells("node")[..4], ["node", "state", "address", "postgres"], "{table}");
    assert_eq!(cells("region")[..5], ["region", "from", "to", "epoch", "leader"], "{table}");
    let address = |port: u16| format!("127.0.0.1:{port}");
    assert_eq!(cells("1  ")[..4], ["1", "alive", &address(node.listen), &address(node.pg)], "{table}");
    assert_eq!(cells("2  ")[..3], ["2", "t", "+inf"], "{table}");

    assert_eq!(http_get(node.http, "/healthz"), Some((200, "ok\n".to_string())));
    assert_eq!(http_get(node.http, "/nothing").unwrap().0, 404);
    metrics(&node, &client).await;
}

/// The names in the table of a documentation page.
fn documented(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let names: Vec<String> = rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_string()).collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

async fn metrics(node: &SingleNode, client: &Client) {
    let (status, page) = http_get(node.http, "/metrics").unwrap();
    assert_eq!(status, 200);
    let samples: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    for sample in &samples {
        let value = sample.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok(), "not a sample: {sample}");
    }
    for (layer, prefix) in LAYERS {
        let is_its = |sample: &&str| sample.strip_prefix("cortado_").unwrap_or(sample).starts_with(prefix);
        assert!(samples.iter().any(is_its), "no metrics of {layer}:\n{page}");
    }
    for name in documented("metrics.md") {
        let is_of =
            |sample: &&str| sample.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['_', '{', ' ']));
        assert!(samples.iter().any(is_of), "no {name}:\n{page}");
    }
    let selects = || {
        let (_, page) = http_get(node.http, "/metrics").unwrap();
        let sample = page.lines().find(|line| line.contains("statements_total{kind=\"select\"}"));
        sample.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let before = selects();
    for _ in 0..3 {
        rows(client).await;
    }
    assert_eq!(selects(), before + 3);
    assert_eq!(metric(node.http, "raftstore_leaders"), Some(2.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_can_be_json() {
    let lock = ClusterLock::acquire();
    let dir = tempfile::tempdir().unwrap();
    let mut node = spawn(&lock, &dir.path().join("data"), &["--log-format", "json", "--log", "debug"]);
    node.connect().await.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    node.process.signal("TERM");
    assert_eq!(node.process.wait().code(), Some(0));
    let output = node.process.output();
    for line in output.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        for field in ["timestamp", "level", "target"] {
            assert!(line[field].is_string(), "{line} has no {field}");
        }
        assert!(line["fields"]["message"].is_string(), "{line} has no message");
    }
    assert!(output.lines().count() > 3, "{output}");
}
