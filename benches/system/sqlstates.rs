//! Which errors reach the clients of a system: a relay between sysbench and a server that counts SQLSTATEs.
//!
//! sysbench repeats a transaction after some errors and counts them together, so its report does not tell them apart.
//! The relay costs time, so what runs through it is not measured.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What PostgreSQL answers to concurrent transactions at READ COMMITTED: a deadlock, and a key that another one has
/// inserted meanwhile.
pub const EXPECTED: [&str; 2] = ["40P01", "23505"];
/// Requests before the startup message that are answered by one byte: for TLS, for GSSAPI.
const NEGOTIATIONS: [u32; 2] = [80_877_103, 80_877_104];

/// How often each SQLSTATE was answered.
pub type Counts = BTreeMap<String, u64>;

/// A relay. It ends when it is dropped.
pub struct Relay {
    pub port: u16,
    counts: Arc<Mutex<Counts>>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts a relay to the server at a port of this machine.
    pub async fn start(server: u16) -> Relay {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (port, counts) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Counts>>::default());
        let counted = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let counts = Arc::clone(&counted);
                // The error of a connection that ends is of no interest.
                tokio::spawn(async move { drop(relay(client, server, &counts).await) });
            }
        });
        Relay { port, counts, task }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts.lock().unwrap().clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(client: TcpStream, server: u16, counts: &Mutex<Counts>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    loop {
        let startup = startup(&mut from_client).await?;
        to_server.write_all(&startup).await?;
        let code = startup.get(4..8).and_then(|code| code.try_into().ok()).map_or(0, u32::from_be_bytes);
        if !NEGOTIATIONS.contains(&code) {
            break;
        }
        let answer = from_server.read_u8().await?;
        to_client.write_u8(answer).await?;
    }
    tokio::select! {
        ended = tokio::io::copy(&mut from_client, &mut to_server) => ended.map(drop),
        ended = answers(from_server, to_client, counts) => ended,
    }
}

/// The first message of a client: its length, and the rest.
async fn startup(client: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let length = client.read_u32().await?;
    let mut message = length.to_be_bytes().to_vec();
    message.resize((length as usize).clamp(8, 10_000), 0);
    client.read_exact(&mut message[4..]).await?;
    Ok(message)
}

/// Passes answers on, and counts the errors among them.
async fn answers(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, counts: &Mutex<Counts>) -> io::Result<()> {
    let (mut received, mut bytes) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let count = server.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        client.write_all(&bytes[..count]).await?;
        received.extend_from_slice(&bytes[..count]);
        let mut at = 0;
        while let Some(length) = received.get(at + 1..at + 5) {
            let end = at + 1 + u32::from_be_bytes(length.try_into().unwrap()) as usize;
            let Some(message) = received.get(at..end) else { break };
            if message[0] == b'E' {
                *counts.lock().unwrap().entry(sqlstate(&message[5..])).or_default() += 1;
            }
            at = end;
        }
        received.drain(..at);
    }
}

/// The field C of an error.
fn sqlstate(fields: &[u8]) -> String {
    let found = fields.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(b"C"));
    String::from_utf8_lossy(found.unwrap_or(b"none")).into_owned()
}
