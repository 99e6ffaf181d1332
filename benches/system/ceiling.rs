//! The ceiling of a point select: a bare loop of the protocol over RocksDB, in a process of its own. It knows one
//! statement, plans nothing, has no transactions, no leases and no replicas. What a server spends more than this, it
//! spends on being a database.
//!
//! `system --ceiling PORT DIR` runs it; the benchmark starts itself so.

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::{Buf, BufMut, BytesMut};
use engine::store::rocks::{RocksOptions, RocksStore};
use engine::store::{NewestReader, Store};
use engine::{Cf, WriteBatch};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Sender, channel};

use crate::demo::free_port_range;
use crate::load::row;
use crate::system::System;

/// The version of every row, as a commit_ts would be.
const VERSION: [u8; 8] = (!7u64).to_be_bytes();

struct Ceiling {
    process: Child,
    port: u16,
    _dir: TempDir,
}

/// Starts the loop over a store of `rows` rows.
pub fn start(rows: i64) -> impl System {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port_range();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--ceiling", &port.to_string(), "--rows", &rows.to_string(), "--ceiling-dir"])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "serves"), "the ceiling did not come up");
    Ceiling { process, port, _dir: dir }
}

impl System for Ceiling {
    fn name(&self) -> &'static str {
        "ceiling"
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn servers(&self) -> Vec<u32> {
        vec![self.process.id()]
    }

    fn restart(&self) {
        unreachable!("the ceiling does not restart");
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process of the ceiling: loads the rows and serves until it is killed.
pub async fn serve(port: u16, dir: &Path, rows: i64) {
    let store = RocksStore::open(&dir.join("store"), &RocksOptions::default()).unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    for id in 1..=rows {
        let (_, c, _) = row(&mut rng);
        let mut batch = WriteBatch::new();
        batch.put(Cf::Write, &[&id.to_be_bytes()[..], &VERSION].concat(), c.as_bytes());
        store.write(&batch).unwrap();
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    println!("serves");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores: Vec<_> = (0..cores).map(|_| start_core(store.clone())).collect();
    for core in cores.iter().cycle() {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        core.send(socket.into_std().unwrap()).await.unwrap();
    }
}

/// A thread with a runtime of its own for the clients that it gets. No task moves to another thread: with one runtime
/// for all threads the loop serves a tenth to a fifth fewer requests, because threads wake each other for each of them.
fn start_core(store: RocksStore) -> Sender<std::net::TcpStream> {
    let (sender, mut clients) = channel(16);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            while let Some(socket) = clients.recv().await {
                tokio::spawn(serve_client(TcpStream::from_std(socket).unwrap(), store.clone()));
            }
        });
    });
    sender
}

async fn serve_client(mut socket: TcpStream, store: RocksStore) {
    let (mut input, mut out) = (BytesMut::with_capacity(8 << 10), BytesMut::with_capacity(8 << 10));
    let mut session = Session { store, id: 0, is_binary: false };
    let mut is_started = false;
    loop {
        while let Some(message) = take_message(&mut input, is_started) {
            match message.kind {
                0 => is_started = start_up(&message.body, &mut out),
                b'X' => return,
                kind => session.handle(kind, &message.body, &mut out),
            }
        }
        if !out.is_empty() {
            if socket.write_all(&out).await.is_err() {
                return;
            }
            out.clear();
        }
        input.reserve(8 << 10);
        if !matches!(socket.read_buf(&mut input).await, Ok(1..)) {
            return;
        }
    }
}

struct Message {
    /// Its type; 0 for a startup packet.
    kind: u8,
    body: BytesMut,
}

fn take_message(input: &mut BytesMut, is_started: bool) -> Option<Message> {
    let head = usize::from(is_started);
    let length = input.get(head..head + 4).map(|word| u32::from_be_bytes(word.try_into().unwrap()) as usize)?;
    if input.len() < head + length {
        return None;
    }
    let mut body = input.split_to(head + length);
    let kind = if is_started { body[0] } else { 0 };
    body.advance(head + 4);
    Some(Message { kind, body })
}

/// Answers a startup packet. Returns whether the session has begun: a request for encryption is declined.
fn start_up(body: &[u8], out: &mut BytesMut) -> bool {
    if body[..4] != [0, 3, 0, 0] {
        out.put_u8(b'N');
        return false;
    }
    put(out, b'R', &[0, 0, 0, 0]);
    for setting in [&b"server_version\x0015.0\0"[..], b"client_encoding\0UTF8\0", b"integer_datetimes\0on\0"] {
        put(out, b'S', setting);
    }
    put(out, b'K', &[0, 0, 0, 1, 0, 0, 0, 1]);
    put(out, b'Z', b"I");
    true
}

fn put(out: &mut BytesMut, kind: u8, body: &[u8]) {
    out.put_u8(kind);
    out.put_u32(body.len() as u32 + 4);
    out.put_slice(body);
}

/// A session, which knows one statement: `SELECT c FROM sbtest1 WHERE id = $1`, with a bigint parameter.
struct Session {
    store: RocksStore,
    id: i64,
    is_binary: bool,
}

impl Session {
    fn handle(&mut self, kind: u8, body: &[u8], out: &mut BytesMut) {
        match kind {
            b'P' => put(out, b'1', &[]),
            b'B' => {
                self.bind(body);
                put(out, b'2', &[]);
            }
            b'D' => {
                if body[0] == b'S' {
                    put(out, b't', &[0, 1, 0, 0, 0, 20]);
                }
                self.describe(out);
            }
            b'E' => self.execute(out),
            b'C' => put(out, b'3', &[]),
            b'S' => put(out, b'Z', b"I"),
            // A simple query: what drivers send before they start.
            b'Q' => {
                put(out, b'C', b"SET\0");
                put(out, b'Z', b"I");
            }
            _ => {}
        }
    }

    fn bind(&mut self, mut body: &[u8]) {
        for _ in 0..2 {
            let name = body.iter().position(|byte| *byte == 0).unwrap();
            body.advance(name + 1);
        }
        let formats: Vec<i16> = (0..body.get_u16()).map(|_| body.get_i16()).collect();
        assert_eq!(body.get_u16(), 1, "one parameter");
        let length = body.get_u32() as usize;
        let value = &body[..length];
        self.id = match formats.first() {
            Some(1) => i64::from_be_bytes(value.try_into().unwrap()),
            _ => std::str::from_utf8(value).unwrap().parse().unwrap(),
        };
        body.advance(length);
        self.is_binary = body.get_u16() > 0 && body.get_i16() == 1;
    }

    fn describe(&self, out: &mut BytesMut) {
        let mut fields = BytesMut::new();
        fields.put_u16(1);
        fields.put_slice(b"c\0");
        fields.put_slice(&[0; 6]);
        fields.put_u32(1043);
        fields.put_i16(-1);
        fields.put_i32(124);
        fields.put_i16(i16::from(self.is_binary));
        put(out, b'T', &fields);
    }

    fn execute(&self, out: &mut BytesMut) {
        let key = self.id.to_be_bytes();
        let from = [&key[..], &[0; 8]].concat();
        assert_eq!(self.store.get_newest(Cf::Lock, &key).unwrap(), None);
        let mut visit = |_: &[u8], value: &[u8]| {
            out.put_u8(b'D');
            out.put_u32(value.len() as u32 + 10);
            out.put_u16(1);
            out.put_u32(value.len() as u32);
            out.put_slice(value);
            ControlFlow::Break(())
        };
        self.store.visit_versions(Cf::Write, &key, &from, &mut visit).unwrap();
        put(out, b'C', b"SELECT 1\0");
    }
}
