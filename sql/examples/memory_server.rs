//! A single-process server over an in-memory cluster, without Raft or disk, for trying the front end with psql and
//! drivers.
//!
//! `cargo run -p sql --example memory_server -- 127.0.0.1:5499`, then `psql -h 127.0.0.1 -p 5499 -U postgres`. Nothing
//! survives a restart.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kv::client::Client;
use kv::memory::MemoryCluster;
use prometheus::Registry;
use sql::server::{SessionThreads, SqlConfig, SqlMetrics, SqlServer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tso::TsoClient;
use txn::Database;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:5499".to_owned());
    let cluster = MemoryCluster::builder().ms_per_timestamp(1).build();
    let db = Database::new(Client::new(Arc::new(cluster.clone())), TsoClient::new(cluster.tso()));
    let config = SqlConfig::default();
    config.validate()?;
    let server = SqlServer::new(db, config, SqlMetrics::new(&Registry::new())?);
    let listener = TcpListener::bind(&address).await?;
    println!("psql -h {} -p {} -U postgres", listener.local_addr()?.ip(), listener.local_addr()?.port());
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(listener, SessionThreads::current(), stop.clone(), Duration::from_secs(5)));
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    serving.await?;
    Ok(())
}
