//! A session over the wire of PostgreSQL: simple queries, whose answers are looked for without waiting.
//!
//! A driver does not tell a statement that waits from one that runs, and hides command tags. So the messages are read
//! here.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::process::WAIT_TIMEOUT;

/// Protocol 3.0.
const PROTOCOL: i32 = 196_608;
/// The longest read of a look for messages.
const LOOK: Duration = Duration::from_millis(2);

/// Whether a session is in a transaction block, as its last answer said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    None,
    Open,
    Failed,
}

/// A session. At most one statement of it runs.
pub struct Session {
    stream: TcpStream,
    /// The process id that the server gave it.
    pub pid: u32,
    pub block: Block,
    /// Bytes that are not a whole message yet.
    received: Vec<u8>,
    /// The lines of the answer so far.
    lines: Vec<String>,
    /// The statement that runs.
    running: Option<String>,
}

impl Session {
    /// Opens a session at a port of this machine.
    pub fn open(port: u16) -> Session {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LOOK)).unwrap();
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        body.extend(b"user\0postgres\0database\0postgres\0\0");
        let (received, lines, running) = (Vec::new(), Vec::new(), Some(String::new()));
        let mut session = Session { stream, pid: 0, block: Block::None, received, lines, running };
        session.write(&body);
        session.wait();
        session
    }

    fn write(&mut self, body: &[u8]) {
        let length = (body.len() as i32 + 4).to_be_bytes();
        self.stream.write_all(&length).and_then(|()| self.stream.write_all(body)).unwrap();
    }

    /// Sends a statement. [`Session::answer`] tells when it has ended.
    pub fn send(&mut self, sql: &str) {
        assert_eq!(self.running, None, "a session runs one statement at a time, not also {sql}");
        self.stream.write_all(b"Q").unwrap();
        self.write(format!("{sql}\0").as_bytes());
        self.running = Some(sql.to_string());
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Runs a statement to its end.
    pub fn run(&mut self, sql: &str) -> Vec<String> {
        self.send(sql);
        self.wait()
    }

    fn wait(&mut self) -> Vec<String> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            if let Some(lines) = self.answer() {
                return lines;
            }
            assert!(Instant::now() < deadline, "no answer to {:?}", self.running);
        }
    }

    /// The answer to the statement that runs, if it has ended: rows, sorted unless the statement sorts them, and the
    /// command tag or the SQLSTATE.
    pub fn answer(&mut self) -> Option<Vec<String>> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => panic!("the server has closed the connection"),
            Ok(count) => self.received.extend(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
        while let Some((kind, body)) = self.message() {
            match kind {
                b'K' => self.pid = u32::from_be_bytes(body[..4].try_into().unwrap()),
                b'T' => self.lines.push(columns(&body)),
                b'D' => self.lines.push(row(&body)),
                b'C' => self.lines.push(text(&body).to_string()),
                b'E' => self.lines.push(format!("ERROR {}", field(&body, b'C'))),
                b'Z' => return Some(self.end(body[0])),
                b'R' => assert_eq!(body, [0; 4], "the server asks for a password"),
                // Settings, notices, an empty statement.
                b'S' | b'N' | b'I' => {}
                _ => panic!("a message {:?}", char::from(kind)),
            }
        }
        None
    }

    /// The next whole message: its type and its body.
    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let length = u32::from_be_bytes(self.received.get(1..5)?.try_into().unwrap()) as usize;
        if self.received.len() <= length {
            return None;
        }
        let rest = self.received.split_off(length + 1);
        let message = std::mem::replace(&mut self.received, rest);
        Some((message[0], message[5..].to_vec()))
    }

    fn end(&mut self, status: u8) -> Vec<String> {
        self.block = match status {
            b'I' => Block::None,
            b'T' => Block::Open,
            _ => Block::Failed,
        };
        let sql = self.running.take().expect("a statement");
        let mut lines = std::mem::take(&mut self.lines);
        let rows = lines.len().saturating_sub(1);
        if rows > 1 && !sql.contains("order by") {
            lines[1..rows].sort();
        }
        lines
    }
}

fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap()
}

/// A field of an error.
fn field(body: &[u8], name: u8) -> String {
    let found = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&name));
    text(&found.expect("the field")[1..]).to_string()
}

/// The names of the columns of a row description.
fn columns(body: &[u8]) -> String {
    let mut names = Vec::new();
    let mut rest = &body[2..];
    while !rest.is_empty() {
        let name = text(rest);
        names.push(name.to_string());
        // The terminator, and 18 bytes that describe the column.
        rest = &rest[name.len() + 19..];
    }
    names.join("|")
}

/// The values of a row.
fn row(body: &[u8]) -> String {
    let mut values = Vec::new();
    let mut rest = &body[2..];
    while !rest.is_empty() {
        let (length, behind) = rest.split_at(4);
        match usize::try_from(i32::from_be_bytes(length.try_into().unwrap())) {
            Ok(length) => {
                values.push(text(&behind[..length]).to_string());
                rest = &behind[length..];
            }
            Err(_) => {
                values.push("null".to_string());
                rest = behind;
            }
        }
    }
    values.join("|")
}
