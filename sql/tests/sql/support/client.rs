//! A client that sends any bytes and reads messages one by one.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::PATIENCE;

/// A raw connection.
pub(crate) struct Raw {
    stream: TcpStream,
    input: BytesMut,
    pub(crate) pid: i32,
    pub(crate) secret: i32,
}

/// A message from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

impl Raw {
    /// Connects without a startup.
    pub(crate) async fn open(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect(address).await.expect("connects");
        stream.set_nodelay(true).expect("a socket");
        Raw { stream, input: BytesMut::new(), pid: 0, secret: 0 }
    }

    /// Connects as `postgres` and completes the startup.
    pub(crate) async fn login(address: SocketAddr) -> Raw {
        Raw::login_as(address, "postgres", "postgres").await
    }

    /// Connects and completes the startup.
    pub(crate) async fn login_as(address: SocketAddr, user: &str, database: &str) -> Raw {
        let mut raw = Raw::open(address).await;
        raw.send(&startup(0x0003_0000, &[("user", user), ("database", database)])).await;
        for reply in raw.until_ready().await {
            if reply.kind == b'K' {
                let mut body = reply.body.clone();
                (raw.pid, raw.secret) = (body.get_i32(), body.get_i32());
            }
            assert_ne!(reply.kind, b'E', "{}", reply.show());
        }
        raw
    }

    /// Sends bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server reads");
    }

    /// Sends bytes to a server that may have closed the connection.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Shuts the write half down.
    pub(crate) async fn shutdown(&mut self) {
        self.stream.shutdown().await.expect("a socket");
    }

    /// Reads one byte: the answer to an encryption request.
    pub(crate) async fn byte(&mut self) -> Option<u8> {
        self.fill(1).await.then(|| self.input.get_u8())
    }

    /// The next message, or `None` if the server closed the connection.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        if !self.fill(5).await {
            assert!(self.input.is_empty(), "half a message: {:?}", self.input);
            return None;
        }
        let length = usize::try_from((&self.input[1..5]).get_i32()).expect("a length");
        assert!(self.fill(1 + length).await, "half a message: {:?}", self.input);
        let kind = self.input.get_u8();
        self.input.advance(4);
        Some(Reply { kind, body: self.input.split_to(length - 4).freeze() })
    }

    /// Messages up to ReadyForQuery or the end of the connection.
    pub(crate) async fn until_ready(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some(reply) = self.reply().await {
            let ready = reply.kind == b'Z';
            replies.push(reply);
            if ready {
                break;
            }
        }
        replies
    }

    /// The same as text, a line each, with `(closed)` at the end of the connection.
    pub(crate) async fn transcript(&mut self) -> Vec<String> {
        let replies = self.until_ready().await;
        let closed = replies.last().is_none_or(|r| r.kind != b'Z');
        let mut lines: Vec<String> = replies.iter().map(Reply::show).collect();
        if closed {
            lines.push("(closed)".to_owned());
        }
        lines
    }

    /// Runs a query string and returns its replies as text.
    pub(crate) async fn query(&mut self, text: &str) -> Vec<String> {
        self.send(&query(text)).await;
        self.transcript().await
    }

    /// Reads until `count` bytes are buffered. Returns false at the end of the connection.
    async fn fill(&mut self, count: usize) -> bool {
        while self.input.len() < count {
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.input));
            match read.await.expect("the server answers in time") {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return false,
                Err(error) => panic!("{error}"),
            }
        }
        true
    }
}

impl Reply {
    /// A field of an ErrorResponse or NoticeResponse. Of a timestamp only the physical part stays: how many are issued
    /// before it depends on the renewals of leases.
    pub(crate) fn field(&self, code: u8) -> Option<String> {
        let mut body = self.body.clone();
        loop {
            let kind = body.get_u8();
            if kind == 0 {
                return None;
            }
            let value = string(&mut body);
            if kind == code {
                return Some(without_counters(&value));
            }
        }
    }

    /// The OIDs of a ParameterDescription.
    pub(crate) fn parameter_types(&self) -> Vec<u32> {
        let mut body = self.body.clone();
        (0..body.get_u16()).map(|_| body.get_u32()).collect()
    }

    /// Names and type OIDs of a RowDescription.
    pub(crate) fn columns(&self) -> Vec<(String, u32)> {
        let mut body = self.body.clone();
        let mut columns = Vec::new();
        for _ in 0..body.get_u16() {
            let name = string(&mut body);
            body.advance(6);
            columns.push((name, body.get_u32()));
            body.advance(8);
        }
        columns
    }

    /// The values of a DataRow.
    pub(crate) fn values(&self) -> Vec<Option<Bytes>> {
        let mut body = self.body.clone();
        let count = body.get_u16();
        (0..count).map(|_| usize::try_from(body.get_i32()).ok().map(|length| body.split_to(length))).collect()
    }

    /// The tag of a CommandComplete.
    pub(crate) fn command_tag(&self) -> String {
        string(&mut self.body.clone())
    }

    /// As text.
    pub(crate) fn show(&self) -> String {
        let mut body = self.body.clone();
        match self.kind {
            b'1' => "ParseComplete".to_owned(),
            b'2' => "BindComplete".to_owned(),
            b'3' => "CloseComplete".to_owned(),
            b'I' => "EmptyQueryResponse".to_owned(),
            b'n' => "NoData".to_owned(),
            b's' => "PortalSuspended".to_owned(),
            b'R' => format!("Authentication {}", body.get_i32()),
            b'K' => "BackendKeyData".to_owned(),
            b'S' => format!("ParameterStatus {} = {}", string(&mut body), string(&mut body)),
            b'C' => format!("CommandComplete {}", string(&mut body)),
            b'Z' => format!("ReadyForQuery {}", char::from(body.get_u8())),
            b'v' => format!("NegotiateProtocolVersion {} {:?}", body.get_i32(), options(&mut body)),
            b't' => {
                let types: Vec<String> = self.parameter_types().iter().map(u32::to_string).collect();
                format!("ParameterDescription [{}]", types.join(", "))
            }
            b'T' => format!("RowDescription [{}]", columns(&mut body).join(", ")),
            b'D' => {
                let quoted = |value: Bytes| format!("\"{}\"", value.escape_ascii());
                let values = self.values().into_iter().map(|value| value.map_or("NULL".to_owned(), quoted));
                format!("DataRow [{}]", values.collect::<Vec<_>>().join(", "))
            }
            b'E' | b'N' => self.show_fields(),
            b'G' | b'H' => {
                let name = if self.kind == b'G' { "CopyInResponse" } else { "CopyOutResponse" };
                let (format, columns) = (body.get_u8(), body.get_u16());
                let formats: Vec<u16> = (0..columns).map(|_| body.get_u16()).collect();
                format!("{name} {format} {formats:?}")
            }
            b'd' => format!("CopyData \"{}\"", self.body.escape_ascii()),
            b'c' => "CopyDone".to_owned(),
            other => format!("{} {:?}", char::from(other), self.body),
        }
    }

    fn show_fields(&self) -> String {
        let name = if self.kind == b'E' { "ErrorResponse" } else { "NoticeResponse" };
        let field = |code| self.field(code).unwrap_or_default();
        let mut text = format!("{name} {} {} {}", field(b'S'), field(b'C'), field(b'M'));
        for (code, title) in [
            (b'D', "detail"),
            (b'H', "hint"),
            (b'P', "position"),
            (b'W', "context"),
            (b't', "table"),
            (b'n', "constraint"),
        ] {
            if let Some(value) = self.field(code) {
                text.push_str(&format!(" | {title}: {value}"));
            }
        }
        text
    }
}

/// The text without the counters of the memory cluster's timestamps.
fn without_counters(text: &str) -> String {
    let mut parts = text.split("100000.");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("100000.*");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn columns(body: &mut Bytes) -> Vec<String> {
    let count = body.get_u16();
    let mut columns = Vec::new();
    for _ in 0..count {
        let name = string(body);
        body.advance(6);
        let oid = body.get_i32();
        body.advance(6);
        let format = if body.get_u16() == 0 { "text" } else { "binary" };
        columns.push(format!("{name}:{oid}:{format}"));
    }
    columns
}

fn options(body: &mut Bytes) -> Vec<String> {
    let count = body.get_i32();
    (0..count).map(|_| string(body)).collect()
}

fn string(body: &mut Bytes) -> String {
    let end = body.iter().position(|b| *b == 0).expect("terminated");
    let text = body.split_to(end);
    body.advance(1);
    String::from_utf8(text.to_vec()).expect("UTF-8")
}

/// A message with its type and length.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.put_i32(i32::try_from(body.len() + 4).expect("fits"));
    out.extend_from_slice(body);
    out
}

/// A startup packet.
pub(crate) fn startup(version: i32, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in parameters {
        body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
    }
    body.push(0);
    packet(version, &body)
}

/// A packet without a type: startup, cancel or encryption request.
pub(crate) fn packet(code: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(i32::try_from(body.len() + 8).expect("fits"));
    out.put_i32(code);
    out.extend_from_slice(body);
    out
}

/// A CancelRequest.
pub(crate) fn cancel(pid: i32, secret: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_i32(pid);
    body.put_i32(secret);
    packet(80_877_102, &body)
}

/// Query.
pub(crate) fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

/// Parse.
pub(crate) fn parse(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let mut body = format!("{name}\0{text}\0").into_bytes();
    body.put_u16(u16::try_from(types.len()).expect("fits"));
    types.iter().for_each(|oid| body.put_u32(*oid));
    message(b'P', &body)
}

/// Bind; parameters in `parameter_formats`, `None` for NULL.
pub(crate) fn bind(
    portal: &str,
    statement: &str,
    parameter_formats: &[i16],
    values: &[Option<&[u8]>],
    formats: &[i16],
) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0").into_bytes();
    body.put_u16(u16::try_from(parameter_formats.len()).expect("fits"));
    parameter_formats.iter().for_each(|f| body.put_i16(*f));
    body.put_u16(u16::try_from(values.len()).expect("fits"));
    for value in values {
        match value {
            Some(bytes) => {
                body.put_i32(i32::try_from(bytes.len()).expect("fits"));
                body.extend_from_slice(bytes);
            }
            None => body.put_i32(-1),
        }
    }
    body.put_u16(u16::try_from(formats.len()).expect("fits"));
    formats.iter().for_each(|f| body.put_i16(*f));
    message(b'B', &body)
}

/// Describe or Close of a statement (`S`) or portal (`P`).
pub(crate) fn named(kind: u8, target: u8, name: &str) -> Vec<u8> {
    let mut body = vec![target];
    body.extend_from_slice(name.as_bytes());
    body.push(0);
    message(kind, &body)
}

/// Execute.
pub(crate) fn execute(portal: &str, limit: i32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.put_i32(limit);
    message(b'E', &body)
}

/// Sync.
pub(crate) fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// Flush.
pub(crate) fn flush() -> Vec<u8> {
    message(b'H', b"")
}
