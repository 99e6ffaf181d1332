//! How long writing stops when the leader goes: a graceful stop, `kill -9`, and a process that is paused.
//!
//! ```text
//! cargo bench --bench failover [-- --rounds 5 --events stop,kill,pause]
//! ```
//!
//! Each round starts three fresh nodes (`cortado demo`) and one closed-loop client that inserts rows through a node
//! that does not lead. Then the node that leads the data region goes. The figure of a round is the longest time without
//! an acknowledged insert afterwards. A round ends with an acknowledged insert, so that an outage is counted to its
//! end; one that does not end fails the run. The report shows the median and the maximum of the rounds.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

#[path = "../system/client.rs"]
mod client;
#[path = "../system/demo.rs"]
mod demo;
#[path = "../system/signal.rs"]
mod signal;

use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use tokio_postgres::Client;

use crate::client::connect;
use crate::demo::{DATA_REGION, Demo, NODES, SYSTEM_REGION, free_port_range};
use crate::signal::signal;

/// How long the client writes before the event.
const BEFORE: Duration = Duration::from_secs(2);
/// How long the client writes after the event.
const AFTER: Duration = Duration::from_secs(8);
/// How long after that an outage may last.
const OUTAGE_MAX: Duration = Duration::from_secs(60);
/// The pause of a process that is paused: longer than any lease.
const PAUSE: Duration = Duration::from_secs(4);

#[derive(Parser)]
struct Options {
    /// Rounds of each event
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// What happens to the leader
    #[arg(long, value_delimiter = ',', default_value = "stop,kill,pause")]
    events: Vec<Event>,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// What happens to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Event {
    /// SIGTERM: it hands its leaderships over and ends
    Stop,
    /// kill -9
    Kill,
    /// SIGSTOP, and SIGCONT four seconds later
    Pause,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    println!("| event | median | maximum | failed inserts |\n|---|---|---|---|");
    for &event in &options.events {
        let mut gaps = Vec::new();
        let mut failed = 0;
        for round in 1..=options.rounds {
            let (gap, errors) = measure(event).await;
            eprintln!("{event:?}, round {round}: {gap:.3?}, {errors} failed");
            gaps.push(gap);
            failed += errors;
        }
        gaps.sort();
        let median = gaps[gaps.len() / 2];
        println!("| {event:?} | {median:.3?} | {:.3?} | {failed} |", gaps[gaps.len() - 1]);
    }
}

/// The longest time without an acknowledgement after the event, and the number of failed inserts.
async fn measure(event: Event) -> (Duration, usize) {
    let data = tempfile::tempdir().unwrap();
    let demo = Demo::start(free_port_range(), data.path(), &[]).expect("the demo comes up");
    let (leader, system) = (demo.leader(DATA_REGION), demo.leader(SYSTEM_REGION));
    let gateway = (0..NODES).find(|node| ![leader, system].contains(node)).expect("three nodes, two regions");
    let client = connect(demo.port + gateway).await;
    client.batch_execute("CREATE TABLE log (id bigint PRIMARY KEY, v text NOT NULL)").await.unwrap();
    let writer = tokio::spawn(write(client, BEFORE + AFTER));
    tokio::time::sleep(BEFORE).await;
    let at = Instant::now();
    let victim = demo.nodes()[usize::from(leader)];
    match event {
        Event::Stop => signal("TERM", victim),
        Event::Kill => signal("KILL", victim),
        Event::Pause => {
            signal("STOP", victim);
            tokio::time::sleep(PAUSE).await;
            signal("CONT", victim);
        }
    }
    let (times, failed) = writer.await.expect("the cluster goes on writing");
    let mut last = at;
    let later = times.into_iter().filter(|time| *time > at);
    (later.map(|time| time - std::mem::replace(&mut last, time)).max().expect("the last insert"), failed)
}

/// Inserts rows, one after the other, for `time` and then until one is acknowledged. Returns the times of the
/// acknowledgements and the number of failed inserts.
///
/// # Panics
/// If no insert is acknowledged within [`OUTAGE_MAX`] after `time`, or the gateway closes the connection.
async fn write(client: Client, time: Duration) -> (Vec<Instant>, usize) {
    let insert = client.prepare("INSERT INTO log VALUES ($1, 'row')").await.unwrap();
    let end = Instant::now() + time;
    let (mut times, mut failed, mut id) = (Vec::new(), 0, 0i64);
    loop {
        id += 1;
        let left = (end + OUTAGE_MAX).saturating_duration_since(Instant::now());
        let answer = tokio::time::timeout(left, client.execute(&insert, &[&id])).await;
        match answer.unwrap_or_else(|_| panic!("no insert is acknowledged {OUTAGE_MAX:?} after the end of the round")) {
            Ok(_) => {
                times.push(Instant::now());
                if Instant::now() >= end {
                    return (times, failed);
                }
            }
            Err(error) => {
                assert!(!client.is_closed(), "row {id}: the gateway has closed the connection: {error}");
                eprintln!("row {id}: {error}");
                failed += 1;
            }
        }
    }
}
