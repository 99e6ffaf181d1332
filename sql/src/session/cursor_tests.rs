//! Cursors and prepared statements of a session: their lists, and their memory.

use super::*;
use crate::session::cursors::{Collected, Target};
use crate::session::nested::{Direction, Fetch};
use crate::session::state::NodeContext;
use crate::session::values::{list_cursors, list_statements};
use crate::system::{CursorInfo, StatementInfo};
use pgtypes::SqlType;

/// 2024-01-01.
const NOW: i64 = 757_382_400_000_000;

fn session() -> (Session, Output) {
    let node = NodeContext { wall_clock: || NOW, ..NodeContext::in_memory() };
    (Session::over(node), Output::new(Box::new(tokio::io::sink()), 1 << 20))
}

/// Runs a query string. Returns whether its block is open and not failed.
async fn run(session: &mut Session, out: &mut Output, text: &str) -> bool {
    session.simple_query(text, out).await.unwrap();
    session.state.check_not_failed().is_ok() && session.in_block()
}

#[tokio::test]
async fn prepared_statements_are_listed() {
    let (mut session, mut out) = session();
    assert_eq!(list_statements(&session.statements), []);
    run(&mut session, &mut out, "select 1; prepare b (int, unknown) as select $1, $2::text").await;
    run(&mut session, &mut out, "prepare \"A\" as values (1)").await;
    let info = |name: &str, statement: &str, parameter_types: &[SqlType]| StatementInfo {
        name: name.into(),
        statement: statement.into(),
        prepared: NOW,
        parameter_types: parameter_types.to_vec(),
        from_sql: true,
    };
    assert_eq!(
        list_statements(&session.statements),
        [
            info("A", "prepare \"A\" as values (1)", &[]),
            // PostgreSQL keeps the text of the whole query.
            info("b", "select 1; prepare b (int, unknown) as select $1, $2::text", &[SqlType::INT4, SqlType::TEXT],),
        ]
    );
    run(&mut session, &mut out, "deallocate b").await;
    assert_eq!(list_statements(&session.statements).len(), 1);
}

#[tokio::test]
async fn cursors_are_listed() {
    let (mut session, mut out) = session();
    let held = "declare h binary no scroll cursor with hold for values (1)";
    run(&mut session, &mut out, held).await;
    run(&mut session, &mut out, "begin").await;
    run(&mut session, &mut out, "declare c cursor for values (1)").await;
    let plain = CursorInfo {
        name: "c".into(),
        statement: "declare c cursor for values (1)".into(),
        is_holdable: false,
        is_binary: false,
        is_scrollable: true,
        created: NOW,
    };
    let h = CursorInfo {
        name: "h".into(),
        statement: held.into(),
        is_holdable: true,
        is_binary: true,
        is_scrollable: false,
        created: NOW,
    };
    assert_eq!(list_cursors(&session.portals), [plain, h.clone()]);
    run(&mut session, &mut out, "rollback").await;
    assert_eq!(list_cursors(&session.portals), [h]);
    run(&mut session, &mut out, "discard all").await;
    assert_eq!(list_cursors(&session.portals), []);
}

/// The rows that SCROLL and WITH HOLD keep are bounded over all cursors of the session. Without them a result of any
/// size passes.
#[tokio::test]
async fn kept_rows_are_bounded() {
    let (mut session, mut out) = session();
    let rows: Vec<String> = (1..=80).map(|n| format!("({n})")).collect();
    run(&mut session, &mut out, "create table wide (a int primary key)").await;
    run(&mut session, &mut out, &format!("insert into wide values {}", rows.join(", "))).await;
    // 80 MiB in all.
    let query = format!("select a, '{}' from wide", "x".repeat(1 << 20));
    run(&mut session, &mut out, "begin").await;
    for name in ["a", "b"] {
        assert!(run(&mut session, &mut out, &format!("declare {name} scroll cursor for {query}")).await);
        assert!(run(&mut session, &mut out, &format!("declare plain_{name} cursor for {query}")).await);
        assert!(run(&mut session, &mut out, &format!("move all plain_{name}")).await);
        assert!(run(&mut session, &mut out, &format!("close plain_{name}")).await);
    }
    assert!(run(&mut session, &mut out, "move all a").await);
    let fetch = Fetch { name: "b".to_owned(), direction: Direction::Forward(None), moves: true };
    let fault = session.fetch(&fetch, Target::Memory(&mut Collected::default()), &mut out).await.unwrap_err();
    assert_eq!(fault.into_statement().unwrap().code.0, "53200", "together they are too large");
    run(&mut session, &mut out, "rollback").await;
    run(&mut session, &mut out, &format!("declare a cursor with hold for {query}")).await;
    assert_eq!(list_cursors(&session.portals).len(), 1);
    run(&mut session, &mut out, &format!("declare b cursor with hold for {query}")).await;
    assert_eq!(list_cursors(&session.portals).len(), 1, "its commit has failed");
    run(&mut session, &mut out, "close a").await;
    run(&mut session, &mut out, &format!("declare b cursor with hold for {query}")).await;
    assert_eq!(list_cursors(&session.portals).len(), 1);
}

/// Long parameters are parsed and bound on another thread.
#[tokio::test]
async fn parameters_may_be_long() {
    let (mut session, mut out) = session();
    let long = "x".repeat(20 << 10);
    run(&mut session, &mut out, "create table t (a int primary key, b text)").await;
    run(&mut session, &mut out, "prepare p (int, text) as insert into t values ($1, $2)").await;
    run(&mut session, &mut out, "begin").await;
    assert!(run(&mut session, &mut out, &format!("execute p (1, '{long}')")).await);
    assert!(run(&mut session, &mut out, &format!("declare c cursor for select 1 / a from t where b = '{long}'")).await);
    assert!(run(&mut session, &mut out, "fetch c").await);
    assert!(!run(&mut session, &mut out, &format!("execute p ('{long}', '')")).await, "it is no integer");
}

/// The transaction of a cursor with a snapshot apart was replaced by that of a later statement of its string.
#[tokio::test]
async fn a_cursor_keeps_its_transaction() {
    let (mut session, mut out) = session();
    run(&mut session, &mut out, "create table t (a int primary key)").await;
    let stale = "select /*+ STALENESS('max 5s') */ a from t";
    run(&mut session, &mut out, &format!("{stale}; insert into t values (1)")).await;
    run(&mut session, &mut out, &format!("declare c cursor for {stale}; insert into t values (2); fetch c")).await;
    run(&mut session, &mut out, "begin").await;
    assert!(run(&mut session, &mut out, "insert into t values (2)").await, "it was refused behind the cursor");
    assert!(!run(&mut session, &mut out, "insert into t values (1)").await, "it has run behind the query");
}
