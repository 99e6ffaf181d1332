//! Golden transcripts of the protocol: messages in, messages out.
//!
//! A script's commands are client messages. A prefix names the connection (`a: query "begin"`). The replies are read at
//! `query` and `sync` (up to ReadyForQuery) and at `flush N` (N messages). Commands:
//!
//! - `query TEXT`, `sync`, `flush N`, `parse NAME TEXT [OID...]`, `describe S|P NAME`, `execute PORTAL [LIMIT]`,
//!   `close S|P NAME`
//! - `bind PORTAL STATEMENT [VALUE...] [in=0,1] [out=0,1]`: values as text, `NULL`, or `0x...`
//! - `skipped TEXT`: a query string that the server has to skip; `call`: a function call; `stray`: copy messages
//!   outside of COPY
//! - `data BYTES`, `done`, `fail TEXT`: CopyData, CopyDone, CopyFail; `wait`: the replies up to ReadyForQuery
//! - `sync_only`: Sync, without its replies
//! - `copy TEXT`: a query string; its replies up to the one that asks for data
//! - `cancel`: a CancelRequest for the connection, sent on another one; `terminate`
//!
//! With `CORTADO_WIRE_SERVER=127.0.0.1:5432` the messages go to that server: with `UPDATE_GOLDENFILES=1` the changes
//! are what PostgreSQL answers otherwise.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;

use super::support::TestServer;
use super::support::client::{Raw, Reply, bind, cancel, execute, flush, message, named, parse, query, sync};
use goldenscript::{Argument, Command, Context};
use tokio::runtime::Runtime;

struct Runner {
    runtime: Runtime,
    _server: TestServer,
    address: SocketAddr,
    connections: BTreeMap<String, Raw>,
}

impl Runner {
    fn new() -> Runner {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
        let server = runtime.block_on(TestServer::start());
        let other = std::env::var("CORTADO_WIRE_SERVER").ok();
        let address = other.map_or(server.address, |other| other.parse().expect("an address"));
        Runner { runtime, _server: server, address, connections: BTreeMap::new() }
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, context: &Context) -> Result<String, Box<dyn Error>> {
        let name = context.prefix.clone().unwrap_or_default();
        let address = self.address;
        let runtime = &self.runtime;
        let raw = self.connections.entry(name).or_insert_with(|| runtime.block_on(Raw::login(address)));
        let words: Vec<&str> = command
            .args
            .iter()
            .filter_map(|argument| match argument {
                Argument::Positional(word) => Some(word.as_str()),
                _ => None,
            })
            .collect();
        let word = |index: usize| words.get(index).copied().unwrap_or("");
        let codes = |key: &str| -> Vec<i16> {
            let list = command.args.iter().find_map(|argument| match argument {
                Argument::KeyValue(name, list) if name == key => Some(list.as_str()),
                _ => None,
            });
            list.unwrap_or("").split(',').filter(|c| !c.is_empty()).map(|c| c.parse().expect("a format")).collect()
        };
        runtime.block_on(async {
            if let Some(messages) = unanswered(&command.name, word(0)) {
                raw.send(&messages).await;
                return Ok(String::new());
            }
            match command.name.as_str() {
                "query" => raw.send(&query(word(0))).await,
                "sync" => raw.send(&sync()).await,
                "flush" => {
                    raw.send(&flush()).await;
                    return Ok(lines(&receive(raw, word(0).parse()?).await));
                }
                "parse" => {
                    let types: Vec<u32> = words.iter().skip(2).map(|oid| oid.parse().expect("an OID")).collect();
                    raw.send(&parse(word(0), word(1), &types)).await;
                    return Ok(String::new());
                }
                "bind" => {
                    let values: Vec<Option<Vec<u8>>> = words.iter().skip(2).map(|v| value(v)).collect();
                    let values: Vec<Option<&[u8]>> = values.iter().map(|v| v.as_deref()).collect();
                    raw.send(&bind(word(0), word(1), &codes("in"), &values, &codes("out"))).await;
                    return Ok(String::new());
                }
                "describe" | "close" => {
                    let kind = if command.name == "close" { b'C' } else { b'D' };
                    raw.send(&named(kind, word(0).as_bytes()[0], word(1))).await;
                    return Ok(String::new());
                }
                "execute" => {
                    let limit = if word(1).is_empty() { 0 } else { word(1).parse()? };
                    raw.send(&execute(word(0), limit)).await;
                    return Ok(String::new());
                }
                "call" => raw.send(&message(b'F', b"\0\0\0\0")).await,
                "copy" => {
                    raw.send(&query(word(0))).await;
                    return Ok(lines(&receive(raw, 1).await));
                }
                "wait" => {}
                "terminate" => raw.send(&message(b'X', b"")).await,
                "cancel" => {
                    let mut other = Raw::open(address).await;
                    other.send(&cancel(raw.pid, raw.secret)).await;
                    assert_eq!(other.reply().await, None);
                    return Ok(String::new());
                }
                other => return Err(format!("unknown command {other}").into()),
            }
            Ok(format!("{}\n", raw.transcript().await.join("\n")))
        })
    }
}

/// The messages of a command whose answer comes later, or never.
fn unanswered(command: &str, word: &str) -> Option<Vec<u8>> {
    Some(match command {
        "skipped" => query(word),
        "stray" => [message(b'd', b"data"), message(b'c', b"")].concat(),
        "data" => message(b'd', &bytes(word)),
        "done" => message(b'c', b""),
        "fail" => message(b'f', format!("{word}\0").as_bytes()),
        "sync_only" => sync(),
        _ => return None,
    })
}

async fn receive(raw: &mut Raw, count: usize) -> Vec<Reply> {
    let mut replies = Vec::new();
    while replies.len() < count {
        match raw.reply().await {
            Some(reply) => replies.push(reply),
            None => break,
        }
    }
    replies
}

fn lines(replies: &[Reply]) -> String {
    replies.iter().map(|r| r.show() + "\n").collect()
}

fn value(text: &str) -> Option<Vec<u8>> {
    (text != "NULL").then(|| bytes(text))
}

/// Text, or bytes as `0x...`.
fn bytes(text: &str) -> Vec<u8> {
    match text.strip_prefix("0x") {
        Some(hex) => {
            let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
            digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
        }
        None => text.as_bytes().to_vec(),
    }
}

fn run(script: &str) {
    let path = Path::new("tests/wire_scripts").join(script);
    goldenscript::run(&mut Runner::new(), path).expect("the transcript is as recorded");
}

#[test]
fn simple() {
    run("simple");
}

#[test]
fn errors() {
    run("errors");
}

#[test]
fn extended() {
    run("extended");
}

#[test]
fn portals() {
    run("portals");
}

#[test]
fn cursors() {
    run("cursors");
}

#[test]
fn cursors_over_queries() {
    run("cursors_over_queries");
}

#[test]
fn cursors_in_transactions() {
    run("cursors_in_transactions");
}

#[test]
fn prepare() {
    run("prepare");
}

#[test]
fn session_commands() {
    run("session_commands");
}

#[test]
fn date_styles() {
    run("date_styles");
}

#[test]
fn transactions() {
    run("transactions");
}

#[test]
fn settings() {
    run("settings");
}

#[test]
fn pipelines() {
    run("pipelines");
}

#[test]
fn copy() {
    run("copy");
}

#[test]
fn schema_changes() {
    run("schema_changes");
}
