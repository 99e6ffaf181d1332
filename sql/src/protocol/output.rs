//! The reply buffer. It is written at Sync, Flush and the end of a simple query, and whenever it is full. One write per
//! request keeps a point select cheap.
//!
//! A position is a count of bytes since the connection began. Unwritten output can be truncated to a position: a
//! retried statement discards its earlier reply.

use std::io;

use bytes::{Buf, BufMut, BytesMut};
use pgwire::messages::Message;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::error::{SqlError, SqlState};

/// A buffer larger than this is freed when empty.
const KEEP_BYTES: usize = 256 << 10;

/// Most bytes passed to the socket at once.
const WRITE_BYTES: usize = 256 << 10;

/// The buffered write half of a connection.
pub(crate) struct Output {
    buffer: BytesMut,
    written: u64,
    bound: usize,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// The severity of an ErrorResponse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The statement failed.
    Error,
    /// The connection ends.
    Fatal,
}

/// The level of a NoticeResponse, in the order of `client_min_messages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// NOTICE.
    Notice,
    /// WARNING.
    Warning,
}

/// A message to the client that is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The level.
    pub(crate) level: Level,
    /// Its SQLSTATE.
    pub(crate) code: SqlState,
    /// Its text.
    pub(crate) message: String,
}

impl Notice {
    /// A notice.
    pub(crate) fn note(code: SqlState, message: impl Into<String>) -> Notice {
        Notice { level: Level::Notice, code, message: message.into() }
    }

    /// A warning.
    pub(crate) fn warning(code: SqlState, message: impl Into<String>) -> Notice {
        Notice { level: Level::Warning, code, message: message.into() }
    }
}

impl Output {
    /// A buffer over a writer. `bound`: the size at which the buffer is full.
    pub(crate) fn new(writer: Box<dyn AsyncWrite + Send + Unpin>, bound: usize) -> Output {
        Output { buffer: BytesMut::new(), written: 0, bound, writer }
    }

    /// Encodes a message.
    pub(crate) fn put<M: Message>(&mut self, message: &M) -> Result<(), SqlError> {
        let start = self.buffer.len();
        message.encode(&mut self.buffer).map_err(|e| {
            self.buffer.truncate(start);
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, format!("reply cannot be encoded: {e}"))
        })
    }

    /// Appends an encoded message.
    pub(crate) fn put_encoded(&mut self, message: &[u8]) {
        self.buffer.put_slice(message);
    }

    /// The buffer, to append to.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Encodes an error. Adds `char_offset`, the characters before the statement in the client's string, to its
    /// position.
    pub(crate) fn put_error(&mut self, severity: Severity, error: &SqlError, char_offset: u32) -> Result<(), SqlError> {
        let name = match severity {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        };
        let mut fields = message_fields(name, error.code, &error.message);
        let mut add = |code: u8, value: &str| fields.push((code, without_nul(value)));
        if let Some(detail) = &error.detail {
            add(b'D', detail);
        }
        if let Some(hint) = &error.hint {
            add(b'H', hint);
        }
        if let Some(position) = error.position {
            add(b'P', &position.saturating_add(char_offset).to_string());
        }
        if let Some(context) = &error.context {
            add(b'W', context);
        }
        if let Some(constraint) = &error.constraint {
            add(b's', &constraint.schema);
            add(b't', &constraint.table);
            if let Some(column) = &constraint.column {
                add(b'c', column);
            }
            if let Some(name) = &constraint.constraint {
                add(b'n', name);
            }
        }
        if let Some(routine) = error.routine() {
            fields.push((b'R', routine.to_owned()));
        }
        self.put(&ErrorResponse::new(fields))
    }

    /// Encodes a notice.
    pub(crate) fn put_notice(&mut self, notice: &Notice) -> Result<(), SqlError> {
        let name = match notice.level {
            Level::Notice => "NOTICE",
            Level::Warning => "WARNING",
        };
        self.put(&NoticeResponse::new(message_fields(name, notice.code, &notice.message)))
    }

    /// The position of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Discards the output since `position`. Returns false, and does nothing, if some of it has been written.
    pub(crate) fn truncate_to(&mut self, position: u64) -> bool {
        match position.checked_sub(self.written).and_then(|keep| usize::try_from(keep).ok()) {
            Some(keep) if keep <= self.buffer.len() => {
                self.buffer.truncate(keep);
                true
            }
            _ => false,
        }
    }

    /// Discards all unwritten output, also half messages.
    pub(crate) fn discard(&mut self) {
        self.buffer.clear();
    }

    /// Whether the buffer has reached its bound.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() >= self.bound
    }

    /// Writes the buffer. If the future is dropped, the unwritten part stays in the buffer.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        // Advancing reduces the reported capacity although the memory stays allocated.
        let held = self.buffer.capacity();
        while !self.buffer.is_empty() {
            let end = self.buffer.len().min(WRITE_BYTES);
            let count = self.writer.write(&self.buffer[..end]).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.buffer.advance(count);
            self.written += count as u64;
        }
        if held > KEEP_BYTES {
            self.buffer = BytesMut::new();
        } else {
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes the buffer and shuts the write half down.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.writer.shutdown().await
    }
}

fn message_fields(severity: &str, code: SqlState, message: &str) -> Vec<(u8, String)> {
    vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', code.0.to_owned()),
        (b'M', without_nul(message)),
    ]
}

/// Removes NULs: a field is a terminated string, so a NUL would corrupt the rest of the message.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgwire::messages::response::CommandComplete;

    #[tokio::test]
    async fn only_unwritten_output_can_be_truncated() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut out = Output::new(Box::new(ours), 16);
        out.put(&CommandComplete::new("BEGIN".into())).unwrap();
        out.flush().await.unwrap();
        let mark = out.position();
        out.put(&CommandComplete::new("SELECT 1".into())).unwrap();
        assert!(!out.is_full());
        out.put(&CommandComplete::new("SELECT 2".into())).unwrap();
        assert!(out.is_full());
        assert!(!out.truncate_to(mark - 1));
        assert!(out.truncate_to(mark));
        assert_eq!(out.position(), mark);
        out.finish().await.unwrap();
        drop(out);
        let mut received = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut theirs, &mut received).await.unwrap();
        assert_eq!(received, b"C\0\0\0\x0aBEGIN\0");
    }

    #[test]
    fn an_error_has_all_fields_and_no_nul() {
        let mut out = Output::new(Box::new(tokio::io::sink()), 1024);
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, "du\0p").detail("d").hint("h").at(3);
        let mut error = error.context(|| Some("w".to_owned())).context(|| unreachable!("it has one"));
        error.constraint = Some(Box::new(crate::error::ConstraintFields {
            schema: "public".into(),
            table: "t".into(),
            column: Some("c".into()),
            constraint: Some("t_pkey".into()),
        }));
        out.put_error(Severity::Error, &error, 10).unwrap();
        let text = out.buffer().escape_ascii().to_string();
        assert!(
            text.ends_with(
                "SERROR\\x00VERROR\\x00C23505\\x00Mdup\\x00Dd\\x00Hh\\x00P13\\x00Ww\\x00\
                 spublic\\x00tt\\x00cc\\x00nt_pkey\\x00\\x00"
            ),
            "{text}"
        );
    }
}
