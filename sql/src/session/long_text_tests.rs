//! Long statements share their thread: another task of the thread runs while they are parsed elsewhere, and they yield
//! often while they run. The tests count polls and turns, never time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use futures::FutureExt;
use tokio::io::AsyncReadExt;
use tokio::task::coop::unconstrained;
use tso::Timestamp;
use txn::TxnError;

use super::Session;
use super::state::NodeContext;
use crate::protocol::frame::Gateway;
use crate::protocol::output::Output;

/// A session whose replies are read at once.
struct Client {
    session: Session,
    out: Output,
    replies: tokio::io::DuplexStream,
}

impl Client {
    fn new() -> Client {
        let (ours, replies) = tokio::io::duplex(64 << 20);
        Client { session: Session::over(NodeContext::in_memory()), out: Output::new(Box::new(ours), 1 << 20), replies }
    }

    /// Passes messages to the session. Returns the replies as text, and how often the session was polled for them.
    async fn send(&mut self, messages: &[u8]) -> (String, usize) {
        let mut input = BytesMut::from(messages);
        let mut polls = 0;
        while let Some(message) = Gateway::new(64 << 20).next(&mut input).unwrap() {
            let mut handled = Box::pin(self.session.handle(message, input.first() == Some(&b'S'), &mut self.out));
            std::future::poll_fn(|cx| {
                polls += 1;
                handled.poll_unpin(cx)
            })
            .await
            .unwrap();
        }
        let mut received = BytesMut::new();
        while let Some(Ok(1..)) = unconstrained(self.replies.read_buf(&mut received)).now_or_never() {}
        (received.escape_ascii().to_string(), polls)
    }

    /// Runs a query string that succeeds. Returns the polls.
    async fn run(&mut self, text: &str) -> usize {
        let (replies, polls) = self.send(&query(text)).await;
        assert!(!replies.contains("SERROR"), "{replies}");
        polls
    }

    /// Prepares a statement and returns the polls of its execution.
    async fn execute(&mut self, text: &str, params: &[String]) -> usize {
        let (prepared, _) = self.send(&[message(b'P', &parse_body(text)), message(b'H', b"")].concat()).await;
        assert!(prepared.starts_with('1'), "{prepared}");
        let mut bind = BytesMut::from(&b"\0\0\0\0"[..]);
        bind.put_u16(params.len().try_into().unwrap());
        for param in params {
            bind.put_i32(param.len().try_into().unwrap());
            bind.extend_from_slice(param.as_bytes());
        }
        bind.put_u16(0);
        let messages = [message(b'B', &bind), message(b'E', b"\0\0\0\0\0"), message(b'H', b"")];
        let (replies, polls) = self.send(&messages.concat()).await;
        assert!(replies.starts_with('2'), "{replies}");
        polls
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

fn parse_body(text: &str) -> Vec<u8> {
    [b"\0", text.as_bytes(), b"\0\0\0"].concat()
}

/// `insert into t values (0, 0), ...`
fn long_insert(rows: usize) -> String {
    let rows: Vec<String> = (0..rows).map(|row| format!("({row}, {row})")).collect();
    format!("insert into t values {}", rows.join(", "))
}

/// A task that runs whenever the thread is free. Counts how often it does.
fn other_task() -> Arc<AtomicUsize> {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = turns.clone();
    tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    turns
}

/// The rows of 4 MB held up every other session of the thread for seconds.
#[tokio::test]
async fn other_sessions_run_while_a_long_text_is_parsed() {
    let mut client = Client::new();
    client.run("create table t (a bigint primary key, b bigint)").await;
    let insert = long_insert(8000);
    let turns = other_task();
    for text in [format!("explain {insert}"), format!("select 1; explain {insert}"), format!("selec {insert}")] {
        let before = turns.load(Ordering::Relaxed);
        client.send(&query(&text)).await;
        let during = turns.load(Ordering::Relaxed) - before;
        assert!(during > 10, "{during} turns of another task during {}", &text[..20]);
    }
    let before = turns.load(Ordering::Relaxed);
    client.send(&message(b'P', &parse_body(&insert))).await;
    let during = turns.load(Ordering::Relaxed) - before;
    assert!(during > 10, "{during} turns of another task during Parse");
}

#[tokio::test]
async fn a_long_text_has_the_results_of_a_short_one() {
    let mut client = Client::new();
    client.run("create table t (a bigint primary key, b bigint)").await;
    client.run(&long_insert(3000)).await;
    let list = (0..5000).map(|key| key.to_string()).collect::<Vec<_>>().join(", ");
    let counts = |texts: &str| texts.matches("SELECT 1").count();
    let text = format!("select count(*) from t where a in ({list})");
    let (replies, _) = client.send(&query(&text)).await;
    assert!(replies.contains("\\x043000C") && counts(&replies) == 1, "{replies}");
    let (replies, _) = client.send(&query(&format!("select 1; {text}; select 1"))).await;
    assert!(replies.contains("\\x043000C") && counts(&replies) == 3, "{replies}");
    let padding = " ".repeat(20_000);
    let texts =
        [("", "I\\x00"), (";;", "I\\x00"), ("select 1 +", "C42601"), ("; selec 1", "P20003"), ("select 1/0", "C22012")];
    for (text, expected) in texts {
        let text = text.replace("; ", &format!("; {padding}"));
        let (replies, _) = client.send(&query(&format!("{text}{padding}"))).await;
        assert!(replies.contains(expected) && replies.ends_with("Z\\x00\\x00\\x00\\x05I"), "{text:.20}: {replies}");
    }
    let (replies, _) =
        client.send(&[message(b'P', &parse_body(&format!("{padding};"))), message(b'S', b"")].concat()).await;
    assert!(replies.starts_with('1'), "{replies}");
    let (replies, _) = client
        .send(&[message(b'P', &parse_body(&format!("select 1; {padding}select 2"))), message(b'S', b"")].concat())
        .await;
    assert!(replies.contains("C42601"), "{replies}");
    let (replies, _) = client
        .send(&[message(b'P', &parse_body(&format!("create view v as{padding} select"))), message(b'S', b"")].concat())
        .await;
    assert!(replies.contains("C0A000"), "{replies}");
}

#[tokio::test]
async fn a_statement_that_is_being_parsed_can_be_cancelled() {
    let mut client = Client::new();
    client.run("create table t (a bigint primary key, b bigint)").await;
    let text = format!("explain {}", long_insert(10_000));
    for messages in [query(&text), [message(b'P', &parse_body(&text)), message(b'S', b"")].concat()] {
        let interrupt = client.session.interrupt.clone();
        let cancel = tokio::spawn(async move { interrupt.cancel() });
        let (replies, polls) = client.send(&messages).await;
        cancel.await.unwrap();
        assert!(replies.contains("C57014") && replies.contains("user request"), "{replies}");
        assert!(polls < 10, "it does not wait for the parser: {polls} polls");
        client.run("select 1").await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_statement_timeout_includes_parsing_and_waiting_for_a_thread() {
    let mut client = Client::new();
    client.run("create table t (a bigint primary key, b bigint)").await;
    client.run("set statement_timeout = '2s'").await;
    let text = format!("explain {}", long_insert(2000));
    let workers = client.session.node.workers.clone();
    // Every thread is busy until the end of the test.
    let (release, wait) = std::sync::mpsc::sync_channel::<()>(1);
    let wait = Arc::new(parking_lot::Mutex::new(wait));
    for _ in 0..workers.free_places() {
        let (workers, wait) = (workers.clone(), wait.clone());
        let busy = async move { workers.run(move || Ok(wait.lock().recv().is_ok())).await };
        tokio::spawn(busy);
    }
    while workers.free_places() > 0 {
        tokio::task::yield_now().await;
    }
    for messages in [query(&text), [message(b'P', &parse_body(&text)), message(b'S', b"")].concat()] {
        let clock = tokio::spawn(tokio::time::advance(Duration::from_secs(3)));
        let (replies, _) = client.send(&messages).await;
        clock.await.unwrap();
        assert!(replies.contains("C57014") && replies.contains("statement timeout"), "{replies}");
    }
    drop(release);
    client.run(&text).await;
}

/// Rows that are processed in a poll, on average, at most.
const ROWS_PER_POLL: usize = 2000;

#[tokio::test]
async fn statements_over_many_rows_yield() {
    const ROWS: usize = 10_000;
    let mut client = Client::new();
    client.run("create table t (a bigint primary key, b bigint)").await;
    client.run("begin").await;
    let mut polls = vec![("insert", client.execute(&long_insert(ROWS), &[]).await)];
    for text in [
        "update t set b = b + 1",
        "update t set a = a + 1000000",
        "update t set a = a - 1000000 returning a, b",
        "select count(*) from t where b % 7 = 3",
        "select b from t order by b desc limit 2500",
        "select distinct b % 5 from t",
        "delete from t where b >= 0",
    ] {
        polls.push((text, client.run(text).await));
    }
    let few: Vec<_> = polls.iter().filter(|(_, polls)| *polls < ROWS / ROWS_PER_POLL).collect();
    assert!(few.is_empty(), "polls for {ROWS} rows: {few:?} of {polls:?}");
}

/// Keys that are listed, and rows of VALUES, are computed without reading.
#[tokio::test]
async fn lists_and_parameters_yield() {
    const VALUES: usize = 10_000;
    let mut client = Client::new();
    client.run("create table t (a bigint primary key, b bigint)").await;
    let join = |value: &dyn Fn(usize) -> String| (0..VALUES).map(value).collect::<Vec<_>>().join(", ");
    let in_list = format!("select count(*) from t where a in ({})", join(&|value| value.to_string()));
    let values = format!("values {}", join(&|value| format!("({value})")));
    let params: Vec<String> = (0..VALUES).map(|value| value.to_string()).collect();
    let listed = format!("select count(*) from t where a in ({})", join(&|value| format!("${}", value + 1)));
    let mut polls = vec![("IN", client.execute(&in_list, &[]).await), ("$n", client.execute(&listed, &params).await)];
    polls.push(("VALUES", client.execute(&values, &[]).await));
    // Those are ten times the work.
    polls.push(("many statements", client.run(&"select 1;".repeat(VALUES / 10)).await));
    let few: Vec<_> = polls.iter().filter(|(_, polls)| *polls < VALUES / ROWS_PER_POLL).collect();
    assert!(few.is_empty(), "polls for {VALUES} values: {few:?} of {polls:?}");
}

/// Short statements take the direct path: each message is one poll, so nothing in it yields or waits.
#[tokio::test]
async fn short_statements_do_not_yield() {
    let mut client = Client::new();
    client.run("create table t (a bigint primary key, b bigint)").await;
    client.run("insert into t values (1, 1), (2, 2)").await;
    client.send(&message(b'P', b"p\0select b from t where a = $1\0\0\0")).await;
    let bind = message(b'B', b"\0p\0\0\0\0\x01\0\0\0\x011\0\0");
    let select = [bind, message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat();
    for _ in 0..500 {
        for (messages, expected) in [(query("select 1"), 1), (select.clone(), 3)] {
            // The budget of the task begins anew.
            tokio::task::yield_now().await;
            let (replies, polls) = client.send(&messages).await;
            assert!(replies.contains("SELECT 1") && polls == expected, "{polls} {replies}");
        }
    }
}

#[tokio::test]
async fn the_error_of_an_unknown_outcome_says_whom_to_ask() {
    let node = NodeContext { status_host: Some("n1:26257".into()), ..NodeContext::in_memory() };
    let mut client = Client { session: Session::over(node), ..Client::new() };
    let unknown = TxnError::Undetermined { start_ts: Timestamp::new(17, 4), primary: kv::Key::new("t1") };
    client.session.report(unknown.into(), &mut client.out).unwrap();
    let (replies, _) = client.send(&message(b'H', b"")).await;
    assert!(replies.contains("Dcortado txn status 17.4 --primary 7431 --host n1:26257"), "{replies}");
}
