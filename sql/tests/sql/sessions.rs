//! What operators ask about sessions, and do to them, on the own gateway and on another one: signals, activity, locks.

use kv::memory::MemoryCluster;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::support::client::{Raw, Reply, cancel, query};
use super::support::{PATIENCE, TestServer};

async fn two() -> ([TestServer; 2], Client, Client) {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    (servers, a, b)
}

async fn run(client: &Client, text: &str) {
    client.batch_execute(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
}

/// The rows of a statement, with `|` between values.
async fn rows(client: &Client, text: &str) -> Vec<String> {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_owned()).collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

async fn value(client: &Client, text: &str) -> String {
    rows(client, text).await.pop().expect("a row")
}

async fn pid(client: &Client) -> i32 {
    value(client, "select pg_backend_pid()").await.parse().expect("a process id")
}

/// Asks until the answer is this.
async fn until(client: &Client, text: &str, expected: &str) {
    let asks = async {
        loop {
            if rows(client, text).await == [expected] {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, asks).await.is_err() {
        panic!("{text}: {:?}, never {expected}", rows(client, text).await);
    }
}

/// Sends a cancel request and waits until it is handled.
async fn send_cancel(server: &TestServer, pid: i32, secret: i32) {
    let mut raw = Raw::open(server.address).await;
    raw.send(&cancel(pid, secret)).await;
    assert_eq!(raw.byte().await, None, "it is not answered");
}

/// All messages up to the end of the connection.
async fn until_closed(raw: &mut Raw) -> Vec<Reply> {
    let mut replies = Vec::new();
    while let Some(reply) = raw.reply().await {
        replies.push(reply);
    }
    replies
}

fn state_of(pid: i32) -> String {
    format!("select state from pg_stat_activity where pid = {pid}")
}

/// Sends a statement that is cancelled or ended from elsewhere; the result is its SQLSTATE.
fn sends(client: Client, text: String) -> tokio::task::JoinHandle<(Client, Option<SqlState>)> {
    tokio::spawn(async move {
        let error = client.batch_execute(&text).await.expect_err("it is ended");
        (client, error.code().cloned())
    })
}

async fn ended(statement: tokio::task::JoinHandle<(Client, Option<SqlState>)>) -> (Client, Option<SqlState>) {
    tokio::time::timeout(PATIENCE, statement).await.expect("it ends").expect("no panic")
}

#[tokio::test]
async fn a_cancel_reaches_the_statement_of_any_gateway() {
    let (servers, a, b) = two().await;
    for server in &servers {
        let victim = server.connect().await;
        let pid = pid(&victim).await;
        assert_eq!(value(&a, &format!("select pg_cancel_backend({pid})")).await, "t", "an idle one is not harmed");
        let running = sends(victim, "select pg_sleep(1000)".to_owned());
        until(&b, &format!("select wait_event from pg_stat_activity where pid = {pid}"), "PgSleep").await;
        assert_eq!(value(&a, &format!("select pg_cancel_backend({pid})")).await, "t");
        let (victim, code) = ended(running).await;
        assert_eq!(code, Some(SqlState::QUERY_CANCELED));
        assert_eq!(value(&victim, "select 1").await, "1", "the session goes on");
    }
}

#[tokio::test]
async fn a_cancel_request_may_arrive_at_another_gateway() {
    let (servers, a, _b) = two().await;
    let mut victim = Raw::login_as(servers[1].address, "ann", "postgres").await;
    let (pid, secret) = (victim.pid, victim.secret);
    victim.send(&query("select pg_sleep(1000)")).await;
    until(&a, &format!("select wait_event from pg_stat_activity where pid = {pid}"), "PgSleep").await;
    send_cancel(&servers[0], pid, secret.wrapping_add(1)).await;
    assert_eq!(value(&a, &state_of(pid)).await, "active", "the secret is wrong");
    send_cancel(&servers[0], pid, secret).await;
    let replies = victim.until_ready().await;
    assert!(replies.iter().any(|reply| reply.kind == b'E'), "{replies:?}");
}

/// The gateways and their sessions share one thread, which a recursion held until it ended.
#[tokio::test]
async fn a_recursion_lets_others_run_and_can_be_cancelled() {
    let (_servers, a, b) = two().await;
    let of_b = pid(&b).await;
    let endless = "with recursive r (n) as (select 1 union all select n + 1 from r) select count(*) from r";
    let running = sends(b, endless.to_owned());
    until(&a, &state_of(of_b), "active").await;
    assert_eq!(value(&a, &format!("select pg_cancel_backend({of_b})")).await, "t");
    let (b, code) = ended(running).await;
    assert_eq!(code, Some(SqlState::QUERY_CANCELED));
    assert_eq!(value(&b, "select 1").await, "1", "the session goes on");
}

#[tokio::test]
async fn terminated_sessions_end_with_57p01() {
    let (servers, a, _b) = two().await;
    for server in &servers {
        for text in ["", "select pg_sleep(1000)", "begin"] {
            let mut victim = Raw::login_as(server.address, "ann", "postgres").await;
            let pid = victim.pid;
            if !text.is_empty() {
                victim.send(&query(text)).await;
                let state = if text == "begin" { "idle in transaction" } else { "active" };
                until(&a, &state_of(pid), state).await;
            }
            assert_eq!(value(&a, &format!("select pg_terminate_backend({pid}, 60000)")).await, "t", "{text}");
            assert!(rows(&a, &state_of(pid)).await.is_empty(), "it has ended");
            let replies = until_closed(&mut victim).await;
            let fatal = replies.iter().find(|reply| reply.kind == b'E').expect("an error");
            assert_eq!((fatal.field(b'S'), fatal.field(b'C')), (Some("FATAL".into()), Some("57P01".into())));
            let message = "terminating connection due to administrator command";
            assert_eq!(fatal.field(b'M').as_deref(), Some(message));
        }
    }
}

#[tokio::test]
async fn activity_shows_what_sessions_of_all_gateways_do() {
    let (_servers, a, b) = two().await;
    let of_b = pid(&b).await;
    run(&b, "set application_name = 'report'; create table t (id int primary key)").await;
    let columns = "datname, usename, application_name, client_addr, client_port > 0, state, wait_event, query";
    let shown = format!("select {columns} from pg_stat_activity where pid = {of_b}");
    let text = "set application_name = 'report'; create table t (id int primary key)";
    let expected = format!("postgres|postgres|report|127.0.0.1|t|idle|ClientRead|{text}");
    assert_eq!(value(&a, &shown).await, expected);
    let times = format!(
        "select xact_start is null, query_start >= backend_start, state_change >= query_start from pg_stat_activity \
         where pid = {of_b}"
    );
    assert_eq!(value(&a, &times).await, "t|t|t");
    run(&b, "begin").await;
    run(&b, "insert into t values (1)").await;
    assert_eq!(value(&a, &state_of(of_b)).await, "idle in transaction");
    assert_eq!(value(&a, &times).await, "f|t|t");
    assert!(b.batch_execute("insert into nowhere values (1)").await.is_err());
    assert_eq!(value(&a, &state_of(of_b)).await, "idle in transaction (aborted)");
    run(&b, "rollback").await;
    assert_eq!(value(&a, &state_of(of_b)).await, "idle");
    let own = "select state, query from pg_stat_activity where pid = pg_backend_pid()";
    assert_eq!(value(&a, own).await, format!("active|{own}"));
    // The extended protocol, and a long text.
    let long = format!("select 1 /* {} */", "é".repeat(1000));
    b.query(&long, &[]).await.expect("runs");
    let length = format!("select octet_length(query), left(query, 10) from pg_stat_activity where pid = {of_b}");
    assert_eq!(value(&a, &length).await, "1024|select 1 /");
}

#[tokio::test]
async fn locks_show_holders_and_waiters() {
    let (_servers, a, b) = two().await;
    run(&a, "create table t (id int primary key, n int); insert into t values (1, 0)").await;
    let (of_a, of_b) = (pid(&a).await, pid(&b).await);
    let watch = _servers[0].connect().await;
    run(&a, "begin; update t set n = 1; select pg_advisory_lock(7), pg_advisory_lock_shared(1, 2)").await;
    let waiting = sends(b, "update t set n = 2".to_owned());
    until(&watch, &format!("select pg_blocking_pids({of_b})"), &format!("{{{of_a}}}")).await;
    assert_eq!(value(&watch, &format!("select pg_blocking_pids({of_a})")).await, "{}");
    let shown = "select locktype, relation::regclass, mode, granted, pid, waitstart is null from pg_locks \
                 where locktype = 'tuple' order by granted desc";
    let expected = [format!("tuple|t|ExclusiveLock|t|{of_a}|t"), format!("tuple|t|ExclusiveLock|f|{of_b}|f")];
    assert_eq!(rows(&watch, shown).await, expected);
    let advisory = "select database, classid, objid, objsubid, mode, granted, pid from pg_locks \
                    where locktype = 'advisory' order by objid";
    let expected = [format!("5|1|2|2|ShareLock|t|{of_a}"), format!("5|0|7|1|ExclusiveLock|t|{of_a}")];
    assert_eq!(rows(&watch, advisory).await, expected);
    let wait = format!("select wait_event_type, wait_event from pg_stat_activity where pid = {of_b}");
    until(&watch, &wait, "Lock|transactionid").await;
    // The query that operators ask who blocks whom.
    let blocked = "select w.pid, w.query, h.pid, h.state from pg_stat_activity w \
                   join pg_stat_activity h on h.pid = any (pg_blocking_pids(w.pid))";
    assert_eq!(rows(&watch, blocked).await, [format!("{of_b}|update t set n = 2|{of_a}|idle in transaction")]);
    assert_eq!(value(&watch, &format!("select pg_cancel_backend({of_b})")).await, "t");
    let (b, code) = ended(waiting).await;
    assert_eq!(code, Some(SqlState::QUERY_CANCELED));
    let waiting = sends(b, "select pg_advisory_lock(7)".to_owned());
    until(&watch, &wait, "Lock|advisory").await;
    assert_eq!(value(&watch, &format!("select pg_terminate_backend({of_a})")).await, "t");
    drop(waiting);
}
