//! The frame gateway: the only place where bytes from a client become messages.
//!
//! It sits between the input buffer and the codec. A frame leaves the buffer only when complete, and reaches the codec
//! only after every length, count and string in it has been checked against the received bytes. Guarantees to the codec
//! and the session:
//!
//! 1. A claimed length is never allocated. The buffer grows with received bytes. A claim above the cap of its message
//!    type is refused before the body is read.
//! 2. Every string is terminated and valid UTF-8. Every count fits its body. No body has surplus bytes.
//! 3. Parameter lengths in Bind are -1 or within the body. The target of Describe and Close is `S` or `P`.
//!
//! A violation is a [`SqlError`] (08P01), and the connection must then be closed. A string that is not UTF-8 is an
//! error of its message only ([`Frontend::BadText`]): the frame's end is known. Pure: bytes in, messages out.

use bytes::{Buf, Bytes, BytesMut};
use pgwire::messages::extendedquery::{Bind, Close, Describe, Execute, Parse};
use pgwire::messages::simplequery::Query;
use pgwire::messages::{DecodeContext, Message, ProtocolVersion};

use crate::error::{SqlError, SqlState};
use pgtypes::utf8;

/// Limit of a startup packet, in bytes with its length word. PostgreSQL's limit.
pub(crate) const MAX_STARTUP_BYTES: usize = 10_004;

/// The type and the length of a message, in bytes.
const HEADER_BYTES: usize = 5;

/// Limit of messages that carry at most a name, in bytes.
const MAX_SMALL_MESSAGE_BYTES: usize = 10_000;

/// A message of an established connection.
#[derive(Debug)]
pub(crate) enum Frontend {
    /// A query string.
    Query(Query),
    /// Prepare a statement.
    Parse(Parse),
    /// Make a portal of a statement and parameters.
    Bind(Bind),
    /// Describe a statement or portal.
    Describe(Describe),
    /// Run a portal.
    Execute(Execute),
    /// Drop a statement or portal.
    Close(Close),
    /// Send what is buffered.
    Flush,
    /// End of a pipeline.
    Sync,
    /// The client leaves.
    Terminate,
    /// A function call by OID. Not supported.
    FunctionCall,
    /// Data of COPY FROM. The protocol has servers ignore this one and the next two outside of COPY.
    CopyData(Bytes),
    /// The end of the data of COPY FROM.
    CopyDone,
    /// The client gives COPY FROM up. Holds its reason.
    CopyFail(String),
    /// A message with a string that is not UTF-8. Holds the error, 22021.
    BadText {
        /// Whether the message is a query string, which gets ReadyForQuery.
        is_query: bool,
        /// The error.
        error: Box<SqlError>,
    },
}

impl Frontend {
    /// The type of the message.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Frontend::Query(_) | Frontend::BadText { is_query: true, .. } => b'Q',
            Frontend::Parse(_) | Frontend::BadText { .. } => b'P',
            Frontend::Bind(_) => b'B',
            Frontend::Describe(_) => b'D',
            Frontend::Execute(_) => b'E',
            Frontend::Close(_) => b'C',
            Frontend::Flush => b'H',
            Frontend::Sync => b'S',
            Frontend::Terminate => b'X',
            Frontend::FunctionCall => b'F',
            Frontend::CopyData(_) => b'd',
            Frontend::CopyDone => b'c',
            Frontend::CopyFail(_) => b'f',
        }
    }
}

/// Splits messages off a buffer.
#[derive(Debug)]
pub(crate) struct Gateway {
    max_message_bytes: usize,
    context: DecodeContext,
}

impl Gateway {
    /// A gateway with a limit on the bytes of a message.
    pub(crate) fn new(max_message_bytes: usize) -> Gateway {
        Gateway { max_message_bytes, context: DecodeContext::new(ProtocolVersion::PROTOCOL3_0) }
    }

    /// The next complete message; `None` while more bytes are needed. After an error the buffer's state is undefined
    /// and the connection must be closed.
    pub(crate) fn next(&self, input: &mut BytesMut) -> Result<Option<Frontend>, SqlError> {
        let Some((kind, length)) = self.header(input)? else {
            return Ok(None);
        };
        if input.len() < 1 + length {
            return Ok(None);
        }
        let mut frame = input.split_to(1 + length);
        match check_body(kind, frame.get(HEADER_BYTES..).unwrap_or_default()) {
            Ok(()) => self.decode(kind, &mut frame),
            Err(error) if error.code == SqlState::CHARACTER_NOT_IN_REPERTOIRE => {
                Ok(Some(Frontend::BadText { is_query: kind == b'Q', error: Box::new(error) }))
            }
            Err(error) => Err(error),
        }
    }

    /// How many bytes the first message in the buffer lacks; at least 1.
    pub(crate) fn missing(&self, input: &BytesMut) -> usize {
        match self.header(input) {
            Ok(Some((_, length))) => (1 + length).saturating_sub(input.len()).max(1),
            _ => 1,
        }
    }

    /// Type and checked length (without the type byte) of the first message in the buffer.
    fn header(&self, input: &BytesMut) -> Result<Option<(u8, usize)>, SqlError> {
        let Some(&kind) = input.first() else {
            return Ok(None);
        };
        let cap = match kind {
            b'Q' | b'P' | b'B' | b'F' | b'd' => self.max_message_bytes,
            b'D' | b'E' | b'C' | b'H' | b'S' | b'X' | b'c' | b'f' => MAX_SMALL_MESSAGE_BYTES,
            other => return Err(violation(format!("invalid frontend message type {other}"))),
        };
        let Some(word) = input.get(1..5) else {
            return Ok(None);
        };
        let length = i32::from_be_bytes([word[0], word[1], word[2], word[3]]);
        match usize::try_from(length) {
            Ok(length) if length >= 4 && length <= cap => Ok(Some((kind, length))),
            _ => Err(violation("invalid message length")
                .detail(format!("A message of type \"{}\" claims {length} bytes.", kind.escape_ascii()))),
        }
    }

    /// Decodes a checked frame.
    fn decode(&self, kind: u8, frame: &mut BytesMut) -> Result<Option<Frontend>, SqlError> {
        let message = match kind {
            b'Q' => self.codec(frame)?.map(Frontend::Query),
            b'P' => self.codec(frame)?.map(Frontend::Parse),
            b'B' => self.codec(frame)?.map(Frontend::Bind),
            b'D' => self.codec(frame)?.map(Frontend::Describe),
            b'E' => self.codec(frame)?.map(Frontend::Execute),
            b'C' => self.codec(frame)?.map(Frontend::Close),
            b'H' => Some(Frontend::Flush),
            b'S' => Some(Frontend::Sync),
            b'X' => Some(Frontend::Terminate),
            b'F' => Some(Frontend::FunctionCall),
            b'd' => Some(Frontend::CopyData(frame.split_off(HEADER_BYTES).freeze())),
            b'c' => Some(Frontend::CopyDone),
            _ => Some(Frontend::CopyFail(reason(frame.get(HEADER_BYTES..).unwrap_or_default()))),
        };
        match message {
            Some(message) => Ok(Some(message)),
            None => Err(violation("invalid message format")),
        }
    }

    fn codec<M: Message>(&self, frame: &mut BytesMut) -> Result<Option<M>, SqlError> {
        M::decode(frame, &self.context).map_err(|e| violation(format!("invalid message format: {e}")))
    }
}

/// The text of CopyFail. Its body is not checked, because it is ignored outside of COPY.
fn reason(body: &[u8]) -> String {
    let end = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
    String::from_utf8_lossy(body.get(..end).unwrap_or_default()).into_owned()
}

/// 08P01, a protocol violation.
pub(crate) fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// Checks a complete body.
fn check_body(kind: u8, bytes: &[u8]) -> Result<(), SqlError> {
    let mut body = BodyReader(bytes);
    match kind {
        b'Q' => {
            body.string()?;
        }
        b'P' => {
            body.string()?;
            body.string()?;
            let types = body.count()?;
            body.skip(4 * types)?;
        }
        b'B' => check_bind(&mut body)?,
        b'D' | b'C' => {
            let target = body.byte()?;
            if target != b'S' && target != b'P' {
                let name = if kind == b'D' { "DESCRIBE" } else { "CLOSE" };
                return Err(violation(format!("invalid {name} message subtype {target}")));
            }
            body.string()?;
        }
        b'E' => {
            body.string()?;
            body.skip(4)?;
        }
        b'H' | b'S' | b'X' => {}
        // The bodies of other types are dropped unread.
        _ => return Ok(()),
    }
    body.end()
}

/// Portal, statement, parameter formats, parameters, result formats.
fn check_bind(body: &mut BodyReader<'_>) -> Result<(), SqlError> {
    body.string()?;
    body.string()?;
    let formats = body.count()?;
    body.skip(2 * formats)?;
    let parameters = body.count()?;
    for _ in 0..parameters {
        let length = body.int()?;
        match usize::try_from(length) {
            Ok(length) => body.skip(length)?,
            Err(_) if length == -1 => {}
            Err(_) => return Err(violation("insufficient data left in message")),
        }
    }
    let formats = body.count()?;
    body.skip(2 * formats)
}

/// Reads a message's body.
pub(crate) struct BodyReader<'a>(pub(crate) &'a [u8]);

impl<'a> BodyReader<'a> {
    /// Takes a terminated UTF-8 string.
    pub(crate) fn string(&mut self) -> Result<&'a str, SqlError> {
        let Some(end) = self.0.iter().position(|b| *b == 0) else {
            return Err(violation("invalid string in message"));
        };
        let (text, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Ok(utf8(text)?)
    }

    fn byte(&mut self) -> Result<u8, SqlError> {
        let byte = self.0.first().copied().ok_or_else(|| violation("no data left in message"))?;
        self.skip(1)?;
        Ok(byte)
    }

    fn count(&mut self) -> Result<usize, SqlError> {
        if self.0.len() < 2 {
            return Err(violation("insufficient data left in message"));
        }
        Ok(usize::from(self.0.get_u16()))
    }

    pub(crate) fn int(&mut self) -> Result<i32, SqlError> {
        if self.0.len() < 4 {
            return Err(violation("insufficient data left in message"));
        }
        Ok(self.0.get_i32())
    }

    fn skip(&mut self, bytes: usize) -> Result<(), SqlError> {
        match self.0.get(bytes..) {
            Some(rest) => {
                self.0 = rest;
                Ok(())
            }
            None => Err(violation("insufficient data left in message")),
        }
    }

    /// Fails if bytes are left.
    pub(crate) fn end(&self) -> Result<(), SqlError> {
        if self.0.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
