//! `cortado check table` on a node: compares tables with their indexes, and tells how far it is.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use futures::stream::unfold;
use sql::error::SqlError;
use sql::exec::CheckedTable as Found;
use sql::server::SqlServer;
use tokio::sync::mpsc;
use tonic::Status;

use crate::proto::{CheckTablesRequest, CheckedTable};

/// The client hears how far it is after so many rows and entries.
const INTERVAL: u64 = 50_000;
/// Messages that wait for the client.
const WAITING: usize = 64;

/// The messages of a comparison.
pub(super) type Checked = Pin<Box<dyn Stream<Item = Result<CheckedTable, Status>> + Send>>;

/// Begins a comparison. It ends when the client goes away.
pub(super) fn begin(sql: Arc<SqlServer>, request: CheckTablesRequest) -> Checked {
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let gone = sender.clone();
        tokio::select! {
            () = gone.closed() => {}
            () = run(sql, request, sender) => {}
        }
    });
    Box::pin(unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|message| (message, receiver)) }))
}

async fn run(sql: Arc<SqlServer>, request: CheckTablesRequest, sender: mpsc::Sender<Result<CheckedTable, Status>>) {
    let refused = |error: SqlError| Status::failed_precondition(error.message);
    let mut checks = match sql.check_tables(&request.database, &request.tables).await {
        Ok(checks) => checks,
        // A client that is gone needs no answer, here and below.
        Err(error) => return drop(sender.send(Err(refused(error))).await),
    };
    let mut told = 0;
    loop {
        let mut progress = |table: &str, found: &Found| {
            let done = found.rows + found.entries;
            if done / INTERVAL != told {
                told = done / INTERVAL;
                // One that reads slowly misses some.
                let _ = sender.try_send(Ok(message(table, found, false)));
            }
        };
        let sent = match checks.next(&mut progress).await {
            Ok(Some((table, found))) => sender.send(Ok(message(&table, &found, true))).await,
            Ok(None) => return,
            Err(error) => return drop(sender.send(Err(refused(error))).await),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn message(table: &str, found: &Found, is_done: bool) -> CheckedTable {
    CheckedTable {
        table: table.to_owned(),
        rows: found.rows,
        entries: found.entries,
        differences: found.differences,
        is_done,
        described: if is_done { found.described.clone() } else { Vec::new() },
    }
}
