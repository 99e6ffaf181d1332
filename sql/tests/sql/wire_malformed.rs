//! Malformed, hostile and incomplete messages over real sockets. Each gets an error where the protocol allows one, the
//! connection is closed, and the server keeps serving others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::support::client::{Raw, bind, cancel, execute, message, packet, parse, query, startup, sync};
use super::support::{PATIENCE, TestServer, eventually, gateway_config};
use kv::memory::MemoryCluster;
use sql::server::SqlConfig;

const V3_0: i32 = 0x0003_0000;
const SSL: i32 = 80_877_103;
const GSS: i32 = 80_877_104;

fn hello() -> Vec<u8> {
    startup(V3_0, &[("user", "postgres"), ("database", "postgres")])
}

/// Sends `bytes` on a new connection. The reply must be one FATAL error with `state`, then the end of the connection.
async fn refused_at_startup(server: &TestServer, bytes: &[u8], state: &str) {
    let mut raw = Raw::open(server.address).await;
    raw.send(bytes).await;
    expect_fatal(&mut raw, state, &bytes.escape_ascii().to_string()).await;
}

/// Sends `bytes` on a new connection, which must be closed without an answer.
async fn closed_at_startup(server: &TestServer, bytes: &[u8]) {
    let mut raw = Raw::open(server.address).await;
    raw.send(bytes).await;
    assert_eq!(raw.reply().await, None, "{}", bytes.escape_ascii());
}

/// The same as [`refused_at_startup`] for `bytes` sent in a session.
async fn refused_in_session(server: &TestServer, bytes: &[u8], state: &str) {
    let mut raw = Raw::login(server.address).await;
    raw.send(bytes).await;
    expect_fatal(&mut raw, state, &bytes.escape_ascii().to_string()).await;
}

async fn expect_fatal(raw: &mut Raw, state: &str, what: &str) {
    let reply = raw.reply().await.unwrap_or_else(|| panic!("closed without a word: {what}"));
    assert_eq!(reply.kind, b'E', "{what}: {}", reply.show());
    assert_eq!(reply.field(b'S').as_deref(), Some("FATAL"), "{what}: {}", reply.show());
    assert_eq!(reply.field(b'C').as_deref(), Some(state), "{what}: {}", reply.show());
    assert_eq!(raw.reply().await, None, "{what}: the connection must be closed");
}

async fn still_serves(server: &TestServer) {
    let mut raw = Raw::login(server.address).await;
    assert_eq!(raw.query("").await, ["EmptyQueryResponse", "ReadyForQuery I"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_startups_are_refused() {
    let server = TestServer::start().await;
    for length in [0, 3, 7, -1, i32::MIN, i32::MAX, 10_005] {
        closed_at_startup(&server, &length.to_be_bytes()).await;
    }
    let long = "x".repeat(9_990);
    closed_at_startup(&server, &startup(V3_0, &[("user", "a"), ("application_name", &long)])).await;
    closed_at_startup(&server, b"GET / HTTP/1.1\r\n\r\n").await;
    refused_at_startup(&server, &packet(V3_0, b"user\0a"), "08P01").await;
    refused_at_startup(&server, &packet(V3_0, b"user\0a\0\0tail"), "08P01").await;
    refused_at_startup(&server, &packet(V3_0, b"user\0\xff\0\0"), "22021").await;
    refused_at_startup(&server, &packet(V3_0, b"database\0postgres\0\0"), "28000").await;
    refused_at_startup(&server, &packet(2 << 16, b"user\0a\0\0"), "0A000").await;
    refused_at_startup(&server, &startup(V3_0, &[("user", "a"), ("database", "nope")]), "3D000").await;
    let unknown = [("user", "a"), ("database", "postgres"), ("no_such", "1")];
    refused_at_startup(&server, &startup(V3_0, &unknown), "42704").await;
    let latin = [("user", "a"), ("database", "postgres"), ("client_encoding", "LATIN1")];
    refused_at_startup(&server, &startup(V3_0, &latin), "0A000").await;
    still_serves(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encryption_is_refused_and_pipelined_bytes_are_an_error() {
    let server = TestServer::start().await;
    let mut raw = Raw::open(server.address).await;
    raw.send(&packet(GSS, b"")).await;
    assert_eq!(raw.byte().await, Some(b'N'));
    raw.send(&packet(SSL, b"")).await;
    assert_eq!(raw.byte().await, Some(b'N'));
    raw.send(&hello()).await;
    assert_eq!(raw.transcript().await.last().map(String::as_str), Some("ReadyForQuery I"));

    for code in [SSL, GSS] {
        let mut smuggled = packet(code, b"");
        smuggled.extend_from_slice(&hello());
        smuggled.extend_from_slice(&query("select 1"));
        refused_at_startup(&server, &smuggled, "08P01").await;
    }
    let mut raw = Raw::open(server.address).await;
    raw.send(&packet(SSL, b"")).await;
    assert_eq!(raw.byte().await, Some(b'N'));
    raw.send(&packet(SSL, b"")).await;
    expect_fatal(&mut raw, "08P01", "a second SSLRequest").await;
    still_serves(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_protocols_are_negotiated_down() {
    let server = TestServer::start().await;
    let mut raw = Raw::open(server.address).await;
    let parameters = [("user", "a"), ("database", "postgres"), ("_pq_.extra", "1")];
    raw.send(&startup(V3_0 + 2, &parameters)).await;
    let lines = raw.transcript().await;
    assert_eq!(lines[0], "NegotiateProtocolVersion 196608 [\"_pq_.extra\"]");
    assert_eq!(lines[1], "Authentication 0");
    assert_eq!(lines.last().map(String::as_str), Some("ReadyForQuery I"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lengths_out_of_range_end_the_session() {
    let config = SqlConfig { max_message_bytes: 1 << 20, ..gateway_config() };
    let server = TestServer::with(config, MemoryCluster::new(), Duration::from_secs(1)).await;
    for kind in *b"QPBDECHSXFdcf" {
        for length in [0, 3, -1, i32::MIN, i32::MAX, (1 << 20) + 1] {
            let mut bytes = vec![kind];
            bytes.extend_from_slice(&i32::to_be_bytes(length));
            refused_in_session(&server, &bytes, "08P01").await;
        }
    }
    for kind in *b"\0pZx!\xff" {
        refused_in_session(&server, &message(kind, b"abc\0"), "08P01").await;
    }
    still_serves(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_bodies_end_the_session() {
    let server = TestServer::start().await;
    let bodies: [(u8, &[u8]); 14] = [
        (b'Q', b""),
        (b'Q', b"select 1"),
        (b'Q', b"select 1\0 \0"),
        (b'P', b"s\0select 1\0\xff\xff"),
        (b'P', b"s\0select 1\0\0\x01\0\0"),
        (b'B', b"\0\0\xff\xff\0\0\0\0"),
        (b'B', b"\0\0\0\0\xff\xff\0\0"),
        (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"),
        (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        (b'B', b"\0\0\0\0\0\0\xff\xff"),
        (b'D', b"Xs\0"),
        (b'C', b"S"),
        (b'E', b"\0\0\0"),
        (b'S', b"\0"),
    ];
    for (kind, body) in bodies {
        refused_in_session(&server, &message(kind, body), "08P01").await;
    }
    still_serves(&server).await;
}

/// Text that is not UTF-8 ended the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_text_is_an_error_and_the_session_continues() {
    let server = TestServer::start().await;
    let mut raw = Raw::login(server.address).await;
    let error = |bytes: &str| format!("ErrorResponse ERROR 22021 invalid byte sequence for encoding \"UTF8\": {bytes}");
    raw.send(&message(b'Q', b"select '\xff'\0")).await;
    assert_eq!(raw.transcript().await, [error("0xff"), "ReadyForQuery I".to_owned()]);
    raw.query("begin").await;
    raw.send(&message(b'Q', b"select '\xe4a'\0")).await;
    assert_eq!(raw.transcript().await, [error("0xe4 0x61 0x27"), "ReadyForQuery E".to_owned()], "a failed block");
    raw.query("rollback").await;
    for bytes in [
        message(b'P', b"\0select '\xff'\0\0\0"),
        message(b'P', b"\xff\0select 1\0\0\0"),
        message(b'B', b"\xff\0\0\0\0\0\0\0\0"),
        message(b'E', b"\xff\0\0\0\0\0"),
        message(b'D', b"P\xff\0"),
        message(b'C', b"P\xff\0"),
    ] {
        raw.send(&[bytes, execute("", 0), sync()].concat()).await;
        assert_eq!(raw.transcript().await, [error("0xff"), "ReadyForQuery I".to_owned()]);
    }
    for (format, value) in [(0, &b"a\xff"[..]), (1, b"a\xff")] {
        let pipeline = [parse("", "select $1::text", &[]), bind("", "", &[format], &[Some(value)], &[]), sync()];
        raw.send(&pipeline.concat()).await;
        let lines = ["ParseComplete".to_owned(), error("0xff"), "ReadyForQuery I".to_owned()];
        assert_eq!(raw.transcript().await, lines);
    }
    let bytea =
        [parse("", "select $1::bytea", &[]), bind("", "", &[1], &[Some(b"a\xff")], &[]), execute("", 0), sync()];
    raw.send(&bytea.concat()).await;
    assert_eq!(raw.transcript().await[2], "DataRow [\"\\\\x61ff\"]", "bytes are not text");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claimed_length_is_not_allocated() {
    const SESSIONS: usize = 128;
    // Address space that threads reserve, in this test and those beside it.
    const NOISE: usize = 2 << 30;
    let server = TestServer::start().await;
    let before = virtual_bytes();
    let mut waiting = Vec::new();
    for _ in 0..SESSIONS {
        let mut raw = Raw::login(server.address).await;
        // Within the limit, so the server waits for it: the sessions claim 8 GiB together.
        let mut bytes = vec![b'Q'];
        bytes.extend_from_slice(&(64_i32 << 20).to_be_bytes());
        bytes.extend_from_slice(b"select ");
        raw.send(&bytes).await;
        waiting.push(raw);
    }
    still_serves(&server).await;
    let grown = virtual_bytes().saturating_sub(before);
    assert!(grown < NOISE, "{grown} bytes for claims that were never sent");
    eventually("all sessions are there", || server.server.connections() >= SESSIONS).await;
    drop(waiting);
    eventually("all sessions are gone", || server.server.connections() == 0).await;
}

/// The address space in use. It shows allocations that were never written to.
fn virtual_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    statm.split(' ').next().and_then(|pages| pages.parse::<usize>().ok()).expect("a number of pages") * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_startups_are_bounded_in_number_and_time() {
    // In number: their time is long enough for any machine.
    let config = SqlConfig { max_handshakes: 20, authentication_timeout: PATIENCE, ..gateway_config() };
    let server = TestServer::with(config, MemoryCluster::new(), Duration::from_secs(1)).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut raw = Raw::open(server.address).await;
        raw.send(&hello()[..9]).await;
        slow.push(raw);
    }
    eventually("all are in their startup", || server.metric("sql_handshakes ") == Some(20.0)).await;
    let mut refused = Raw::open(server.address).await;
    assert_eq!(refused.reply().await, None, "one more is closed");
    assert!(server.metric("sql_connections_refused_total ").is_some_and(|n| n >= 1.0));
    drop(slow);
    eventually("their places are free", || server.metric("sql_handshakes ") == Some(0.0)).await;
    still_serves(&server).await;
    // In time: nothing else limits them.
    let config = SqlConfig { authentication_timeout: Duration::from_millis(1), ..gateway_config() };
    let server = TestServer::with(config, MemoryCluster::new(), Duration::from_secs(1)).await;
    for _ in 0..20 {
        let mut raw = Raw::open(server.address).await;
        raw.try_send(&hello()[..9]).await;
        assert_eq!(raw.reply().await, None, "closed when its time is over");
    }
    eventually("their places are free", || server.metric("sql_handshakes ") == Some(0.0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_limit_are_refused() {
    let config = SqlConfig { max_connections: 2, ..gateway_config() };
    let server = TestServer::with(config, MemoryCluster::new(), Duration::from_secs(1)).await;
    let first = Raw::login(server.address).await;
    let _second = Raw::login(server.address).await;
    refused_at_startup(&server, &hello(), "53300").await;
    drop(first);
    eventually("a place is free", || server.server.connections() == 1).await;
    still_serves(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_with_a_wrong_secret_does_nothing() {
    let server = TestServer::start().await;
    let session = Raw::login(server.address).await;
    for bytes in [cancel(session.pid, session.secret ^ 1), cancel(session.pid + 1, session.secret), cancel(0, 0)] {
        let mut raw = Raw::open(server.address).await;
        raw.send(&bytes).await;
        assert_eq!(raw.reply().await, None, "closed without an answer");
    }
    still_serves(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_may_arrive_byte_by_byte() {
    let server = TestServer::start().await;
    let mut raw = Raw::open(server.address).await;
    let mut bytes = hello();
    bytes.extend_from_slice(&query("show server_encoding"));
    bytes.extend_from_slice(&parse("", "show server_encoding", &[]));
    bytes.extend_from_slice(&bind("", "", &[], &[], &[1]));
    bytes.extend_from_slice(&execute("", 0));
    bytes.extend_from_slice(&sync());
    for byte in bytes {
        raw.send(&[byte]).await;
    }
    assert_eq!(raw.transcript().await.last().map(String::as_str), Some("ReadyForQuery I"));
    let rows =
        ["RowDescription [server_encoding:25:text]", "DataRow [\"UTF8\"]", "CommandComplete SHOW", "ReadyForQuery I"];
    assert_eq!(raw.transcript().await, rows);
    let rows = ["ParseComplete", "BindComplete", "DataRow [\"UTF8\"]", "CommandComplete SHOW", "ReadyForQuery I"];
    assert_eq!(raw.transcript().await, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_bytes_never_stop_the_server() {
    use rand::{Rng, SeedableRng};
    let seed = 42;
    println!("seed {seed}");
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    let server = TestServer::start().await;
    let panics = count_panics();
    for _ in 0..200 {
        let mut raw = Raw::login(server.address).await;
        for _ in 0..rng.random_range(1..6) {
            let kind = b"QPBDECHSFdcf"[rng.random_range(0..12)];
            // Some messages without a body are valid.
            let length = if rng.random_bool(0.2) { 0 } else { rng.random_range(0..60) };
            let body: Vec<u8> = (0..length).map(|_| [0, 0, 0, 1, b'a', 255][rng.random_range(0..6)]).collect();
            raw.try_send(&message(kind, &body)).await;
        }
        raw.try_send(&sync()).await;
        raw.shutdown().await;
        while raw.reply().await.is_some() {}
    }
    still_serves(&server).await;
    // A caught panic, as a connection's is, would show nowhere else.
    assert_eq!(panics.load(Ordering::SeqCst), 0, "something panicked");
    assert_eq!(server.metric("sql_panics_total "), Some(0.0));
}

/// Counts the panics of all threads from now on.
fn count_panics() -> &'static AtomicUsize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(info);
    }));
    &PANICS
}
