//! `cortado check table` on a node: compares tables with their indexes, and tells how far it is.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::Stream;
use futures::stream::unfold;
use sql::exec::CheckedTable as Found;
use sql::server::SqlServer;
use tokio::sync::mpsc;
use tonic::Status;

use crate::proto::{CheckTablesRequest, CheckedTable};

/// How often the client hears how far it is.
const INTERVAL: Duration = Duration::from_millis(500);
/// Messages that wait for the client. It reads them slower than they come only if they are of small tables.
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
    // Results must all arrive; of what is told in between, the client may miss some.
    let (results, mut waiting) = mpsc::unbounded_channel();
    let forwarded = sender.clone();
    let forward = async move {
        while let Some(message) = waiting.recv().await {
            if forwarded.send(message).await.is_err() {
                return;
            }
        }
    };
    let check = async move {
        let mut told = Instant::now();
        let progress = sender;
        let last = results.clone();
        let mut report = |table: &str, found: &Found, is_done: bool| {
            if is_done {
                // The receiver lives as long as this future.
                let _ = results.send(Ok(message(table, found, true)));
            } else if told.elapsed() >= INTERVAL {
                told = Instant::now();
                let _ = progress.try_send(Ok(message(table, found, false)));
            }
        };
        if let Err(error) = sql.check_tables(&request.database, &request.tables, &mut report).await {
            let _ = last.send(Err(Status::failed_precondition(error.message)));
        }
    };
    futures::join!(forward, check);
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
