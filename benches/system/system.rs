//! A running system that the benchmarks of whole systems measure, and the connection of a client to it.

use tokio_postgres::{Client, NoTls};

/// A running system.
pub trait System {
    /// The name in the report.
    fn name(&self) -> &'static str;
    /// The port that the clients connect to.
    fn port(&self) -> u16;
    /// The process ids of its servers, the one at `port` first. CPU time includes their descendants.
    fn servers(&self) -> Vec<u32>;
    /// Whether it measures the same servers as the system before it, with their data.
    fn shares_data(&self) -> bool {
        false
    }
    /// Stops all servers in order and starts them again with their data.
    #[allow(dead_code, reason = "benches/system shares this file and does not restart")]
    fn restart(&self);
}

/// Connects to the server at a port of this machine.
pub async fn connect(port: u16) -> Client {
    let config = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
