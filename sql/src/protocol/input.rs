//! The read half of a connection: received bytes, and the messages in them.
//!
//! The connection waits for messages between statements. A statement that receives data, COPY FROM, reads them itself
//! while it runs; see [`SharedInput`].

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Mutex;

use super::frame::{Frontend, Gateway};
use crate::error::SqlError;

/// Least buffer space before a read.
pub(crate) const READ_BYTES: usize = 8 << 10;

/// Most buffer space reserved at once for a message of known length.
const READ_AHEAD_BYTES: usize = 256 << 10;

/// An input buffer larger than this is freed when empty.
const KEEP_BYTES: usize = 64 << 10;

/// The input of a connection. It is never contended: the connection does not read while its session handles a message.
pub(crate) type SharedInput = Arc<Mutex<Input>>;

/// The read half of a connection.
pub(crate) struct Input {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    gateway: Gateway,
    /// Received bytes that are in no message yet.
    pub(crate) buffer: BytesMut,
}

impl Input {
    /// Over a reader, with a limit on the bytes of a message.
    pub(crate) fn new(reader: Box<dyn AsyncRead + Send + Unpin>, max_message_bytes: usize) -> Input {
        Input { reader, gateway: Gateway::new(max_message_bytes), buffer: BytesMut::new() }
    }

    /// The next complete message among the received bytes; `None` while more are needed. After an error the connection
    /// must be closed.
    pub(crate) fn next(&mut self) -> Result<Option<Frontend>, SqlError> {
        self.gateway.next(&mut self.buffer)
    }

    /// Whether the next message is a Sync.
    pub(crate) fn sync_follows(&self) -> bool {
        self.buffer.first() == Some(&b'S')
    }

    /// Reads once into at least `room` bytes of space. Returns the number of bytes, 0 at the end. The buffer grows with
    /// received bytes, never by claimed lengths. Cancel safe.
    pub(crate) async fn read(&mut self, room: usize) -> io::Result<usize> {
        self.buffer.reserve(room);
        self.reader.read_buf(&mut self.buffer).await
    }

    /// Reads more of the next message. Returns false at the end of the input. Cancel safe.
    pub(crate) async fn read_more(&mut self) -> io::Result<bool> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BYTES {
            self.buffer = BytesMut::new();
        }
        let missing = self.gateway.missing(&self.buffer).clamp(READ_BYTES, READ_AHEAD_BYTES);
        Ok(self.read(missing).await? > 0)
    }
}
