//! The connection of a client to a server of this machine.

use tokio_postgres::{Client, NoTls};

/// Connects to the server at a port of this machine.
pub async fn connect(port: u16) -> Client {
    let config = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
