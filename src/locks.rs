//! `cortado locks`: who holds which row, and who waits for whom, as a table or as JSON.

use std::collections::HashMap;

use serde::Serialize;
use tso::Timestamp;

use crate::client::{self, ClientError};
use crate::config::HostPort;
use crate::console::Table;
use crate::proto::{LocksRequest, LocksResponse, RowLock};

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Page {
    locks: Vec<Lock>,
    /// The number of locks and waiters, listed or not.
    total: u64,
    /// Nodes that did not answer.
    silent_nodes: Vec<u64>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Lock {
    region: u64,
    /// The table, if the node knew it.
    table: String,
    /// The primary key of the row, or the bytes of its key.
    row: String,
    mode: String,
    transaction: Transaction,
    /// `None` if it has the lock.
    wait: Option<Wait>,
    /// For how long it has the lock: of advisory locks.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ms: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Wait {
    ms: u64,
    r#for: Vec<Transaction>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    more: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Transaction {
    start_ts: String,
    /// The node of its session, and what `pg_backend_pid()` says there; `None` if the transaction has ended by now.
    node: Option<u64>,
    pid: Option<u32>,
}

impl Transaction {
    fn to_text(&self) -> String {
        match (self.node, self.pid) {
            (Some(node), Some(pid)) => format!("{} (node {node}, pid {pid})", self.start_ts),
            _ => self.start_ts.clone(),
        }
    }
}

/// Fetches at most `limit` locks from `host` and renders them.
pub(crate) async fn run(host: &HostPort, limit: u32, json: bool) -> Result<String, ClientError> {
    let mut node = client::connect(host, None).await?;
    let answer = node
        .locks(LocksRequest { limit, ..LocksRequest::default() })
        .await
        .map_err(|s| ClientError::refused(host, &s))?;
    let page = Page::from(answer.into_inner());
    if json {
        return serde_json::to_string_pretty(&page).map_err(|e| ClientError::Malformed(e.to_string()));
    }
    Ok(page.to_text())
}

impl From<LocksResponse> for Page {
    fn from(answer: LocksResponse) -> Page {
        let sessions: HashMap<u64, (u64, u32)> =
            answer.sessions.iter().map(|session| (session.start_ts, (session.store_id, session.session))).collect();
        let transaction = |start_ts: u64| {
            let session = sessions.get(&start_ts);
            let start_ts = Timestamp::from_raw(start_ts).to_string();
            Transaction { start_ts, node: session.map(|(node, _)| *node), pid: session.map(|(_, pid)| *pid) }
        };
        let lock = |lock: RowLock| {
            let row = match (lock.table.is_empty(), lock.row.is_empty()) {
                (false, false) => lock.row.clone(),
                _ => lock.key.escape_ascii().to_string(),
            };
            let behind = lock.behind.iter().map(|start_ts| transaction(*start_ts)).collect();
            let wait = lock.waits_ms.map(|ms| Wait { ms, r#for: behind, more: lock.more_behind });
            let transaction = transaction(lock.start_ts);
            let RowLock { region_id: region, table, mode, held_ms, .. } = lock;
            Lock { region, table, row, mode, transaction, wait, held_ms }
        };
        let (total, silent_nodes) = (answer.total, answer.silent);
        Page { locks: answer.locks.into_iter().map(lock).collect(), total, silent_nodes }
    }
}

fn seconds(ms: u64) -> String {
    format!("{:.1} s", std::time::Duration::from_millis(ms).as_secs_f64())
}

impl Page {
    fn to_text(&self) -> String {
        let mut table = Table::new(&["region", "table", "row", "lock", "transaction", "waits", "for"]);
        for lock in &self.locks {
            let (waits, behind) = match &lock.wait {
                Some(wait) => {
                    let mut behind: Vec<String> = wait.r#for.iter().map(Transaction::to_text).collect();
                    if wait.more > 0 {
                        behind.push(format!("{} more", wait.more));
                    }
                    (seconds(wait.ms), behind.join(", "))
                }
                None => match lock.held_ms {
                    Some(ms) => (format!("holds {}", seconds(ms)), String::new()),
                    None => ("holds".to_owned(), String::new()),
                },
            };
            table.row([
                lock.region.to_string(),
                lock.table.clone(),
                lock.row.clone(),
                lock.mode.clone(),
                lock.transaction.to_text(),
                waits,
                behind,
            ]);
        }
        let mut text = if self.locks.is_empty() { "no row locks\n".to_owned() } else { table.render() };
        let listed = self.locks.len() as u64;
        if listed < self.total {
            text.push_str(&format!("{listed} of {} locks and waits; see --limit\n", self.total));
        }
        for node in &self.silent_nodes {
            text.push_str(&format!("node {node} does not answer: its locks are not listed\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::LockingSession;

    fn lock(start_ms: u64, wait: Option<(u64, &[u64])>) -> RowLock {
        let raw = |ms: u64| Timestamp::new(ms, 0).raw();
        RowLock {
            region_id: 2,
            key: b"t\0".to_vec(),
            table: "accounts".to_owned(),
            row: "(id)=(5)".to_owned(),
            start_ts: raw(start_ms),
            mode: "UPDATE".to_owned(),
            waits_ms: wait.map(|(ms, _)| ms),
            behind: wait.iter().flat_map(|(_, behind)| *behind).map(|ms| raw(*ms)).collect(),
            held_ms: None,
            more_behind: 0,
            is_awaited: false,
        }
    }

    #[test]
    fn the_table_names_who_waits_for_whom() {
        let session = LockingSession { start_ts: Timestamp::new(10, 0).raw(), store_id: 3, session: 77 };
        let advisory = RowLock {
            region_id: 1,
            table: "advisory lock".to_owned(),
            row: "(42)".to_owned(),
            mode: "EXCLUSIVE".to_owned(),
            held_ms: Some(2_000),
            ..lock(10, None)
        };
        let locks = vec![lock(10, None), lock(20, Some((1_500, &[10]))), advisory];
        let page = Page::from(LocksResponse { locks, sessions: vec![session], silent: vec![2], total: 3 });
        let expected = "\
region  table          row       lock       transaction            waits        for
2       accounts       (id)=(5)  UPDATE     10.0 (node 3, pid 77)  holds
2       accounts       (id)=(5)  UPDATE     20.0                   1.5 s        10.0 (node 3, pid 77)
1       advisory lock  (42)      EXCLUSIVE  10.0 (node 3, pid 77)  holds 2.0 s
node 2 does not answer: its locks are not listed
";
        assert_eq!(page.to_text(), expected);
        let json: serde_json::Value = serde_json::from_str(&serde_json::to_string(&page).unwrap()).unwrap();
        assert_eq!(json["locks"][1]["wait"]["for"][0]["pid"], 77);
        assert_eq!(json["locks"][0]["wait"], serde_json::Value::Null);
        assert_eq!((json["locks"][0].get("held_ms"), &json["locks"][2]["held_ms"]), (None, &2_000.into()));
    }

    #[test]
    fn what_is_not_listed_is_counted() {
        let waits = RowLock { more_behind: 7, ..lock(20, Some((1_500, &[10, 11]))) };
        let page = Page::from(LocksResponse { locks: vec![waits], total: 150_000, ..LocksResponse::default() });
        let text = page.to_text();
        assert!(text.contains("10.0, 11.0, 7 more\n"), "{text}");
        assert!(text.ends_with("1 of 150000 locks and waits; see --limit\n"), "{text}");
    }

    #[test]
    fn a_row_without_a_name_shows_its_key_and_no_locks_say_so() {
        let unnamed = RowLock { table: String::new(), row: String::new(), ..lock(10, None) };
        let page = Page::from(LocksResponse { locks: vec![unnamed], ..LocksResponse::default() });
        assert_eq!(page.locks[0].row, "t\\x00");
        assert_eq!(Page::from(LocksResponse::default()).to_text(), "no row locks\n");
    }
}
