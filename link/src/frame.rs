//! Frames: the bytes of messages, and the reader that turns received bytes into messages again.
//!
//! ```text
//! frame = length (4 bytes) | message ...
//! ```
//!
//! A frame holds whole messages and at most [`FRAME_BYTES_MAX`] bytes. A payload longer than [`SHORT_BYTES_MAX`] is cut
//! into parts over several frames, between which short messages pass. At most one long message is under way in each
//! direction, so parts need no number and the receiver holds one unfinished payload at most. Integers are big-endian.
//! Nothing received makes the reader panic or grow beyond one frame and one payload.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::message::{Kind, Message, PAYLOAD_BYTES_MAX, Reason, Refused, RequestId};

/// The most bytes of a frame after its length.
pub const FRAME_BYTES_MAX: usize = 128 << 10;
/// The longest payload that is not cut into parts.
pub const SHORT_BYTES_MAX: usize = 32 << 10;
/// The most bytes of a message beside its payload or part.
pub const HEADER_BYTES_MAX: usize = 18;

/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;
/// The least room that a read finds.
const READ_BYTES: usize = 8 << 10;

const REQUEST: u8 = 1;
const ANSWER: u8 = 2;
const REFUSAL: u8 = 3;
const CANCEL: u8 = 4;
const PING: u8 = 5;
const PONG: u8 = 6;
const GO_AWAY: u8 = 7;
const LONG_REQUEST: u8 = 8;
const LONG_ANSWER: u8 = 9;
const PART: u8 = 10;
const ABANDON: u8 = 11;

/// The other side breaks the protocol, or the bytes are damaged: the link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed frame: {0}")]
pub struct Malformed(pub &'static str);

/// Begins a frame at the end of `out`. Returns its place for [`end_frame`].
pub fn begin_frame(out: &mut BytesMut) -> usize {
    out.put_u32(0);
    out.len()
}

/// Ends the frame that began at `start`: sets its length.
pub fn end_frame(out: &mut BytesMut, start: usize) {
    let len = out.len() - start;
    assert!(len <= FRAME_BYTES_MAX, "a frame of {len} bytes");
    if let Some(length) = out.get_mut(start - LENGTH_BYTES..start) {
        length.copy_from_slice(&(len as u32).to_be_bytes());
    }
}

/// Appends a message whose payload is short.
pub fn put_message(out: &mut BytesMut, message: &Message) {
    match message {
        Message::Request { id, kind, timeout_ms, payload } => {
            put_request(out, REQUEST, (*id, *kind, *timeout_ms), payload.len());
            out.put_slice(payload);
        }
        Message::Answer { id, payload } => {
            put_answer(out, ANSWER, *id, payload.len());
            out.put_slice(payload);
        }
        Message::Refusal { id, refused } => {
            let cut = refused.why.floor_char_boundary(SHORT_BYTES_MAX);
            let why = refused.why.get(..cut).unwrap_or_default();
            out.put_u8(REFUSAL);
            out.put_u64(id.get());
            out.put_u8(reason_code(refused.reason));
            out.put_u32(why.len() as u32);
            out.put_slice(why.as_bytes());
        }
        Message::Cancel(id) => {
            out.put_u8(CANCEL);
            out.put_u64(id.get());
        }
        Message::Ping => out.put_u8(PING),
        Message::Pong => out.put_u8(PONG),
        Message::GoAway => out.put_u8(GO_AWAY),
    }
}

/// Appends the announcement of a request or an answer with a long payload; its parts follow.
pub fn put_long(out: &mut BytesMut, message: &Message) {
    match message {
        Message::Request { id, kind, timeout_ms, payload } => {
            put_request(out, LONG_REQUEST, (*id, *kind, *timeout_ms), payload.len());
        }
        Message::Answer { id, payload } => put_answer(out, LONG_ANSWER, *id, payload.len()),
        other => unreachable!("{other:?} is not long"),
    }
}

/// Appends a part of the long message under way.
pub fn put_part(out: &mut BytesMut, part: &[u8]) {
    out.put_u8(PART);
    out.put_u32(part.len() as u32);
    out.put_slice(part);
}

/// Appends the end of the long message under way, which stays unfinished.
pub fn put_abandon(out: &mut BytesMut) {
    out.put_u8(ABANDON);
}

fn put_request(out: &mut BytesMut, code: u8, (id, kind, timeout_ms): (RequestId, Kind, u32), len: usize) {
    out.put_u8(code);
    out.put_u64(id.get());
    out.put_u8(kind.get());
    out.put_u32(timeout_ms);
    out.put_u32(len as u32);
}

fn put_answer(out: &mut BytesMut, code: u8, id: RequestId, len: usize) {
    out.put_u8(code);
    out.put_u64(id.get());
    out.put_u32(len as u32);
}

const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::Busy => 1,
        Reason::Stopping => 2,
        Reason::UnknownKind => 3,
        Reason::Malformed => 4,
    }
}

fn decode_reason(code: u8) -> Result<Reason, Malformed> {
    let all = [Reason::Busy, Reason::Stopping, Reason::UnknownKind, Reason::Malformed];
    all.into_iter().find(|reason| reason_code(*reason) == code).ok_or(Malformed("an unknown reason"))
}

/// A long message of which parts are missing. Invariant: `received` is shorter than `total`, which is at most
/// [`PAYLOAD_BYTES_MAX`].
#[derive(Debug)]
struct Unfinished {
    request: Option<(Kind, u32)>,
    id: RequestId,
    total: usize,
    received: BytesMut,
}

/// Turns received bytes into messages. After an error the link is closed and the reader dropped.
#[derive(Debug, Default)]
pub struct FrameReader {
    received: BytesMut,
    /// What is left of the frame that is being read.
    frame: Bytes,
    unfinished: Option<Unfinished>,
    frames: u64,
}

impl FrameReader {
    /// The buffer to which the next received bytes are appended. It has room for some KiB at least.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.received.reserve(READ_BYTES);
        &mut self.received
    }

    /// Complete frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The next message of the bytes received so far; `None` if the rest of it is missing. Payloads share memory with
    /// the buffer.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for bytes that no sender of this version writes.
    pub fn next_message(&mut self) -> Result<Option<Message>, Malformed> {
        loop {
            if self.frame.is_empty() && !self.next_frame()? {
                return Ok(None);
            }
            if let Some(message) = self.read_message()? {
                return Ok(Some(message));
            }
        }
    }

    /// Moves to the next complete frame, if there is one.
    fn next_frame(&mut self) -> Result<bool, Malformed> {
        let Some(length) = self.received.first_chunk::<LENGTH_BYTES>() else { return Ok(false) };
        let length = u32::from_be_bytes(*length) as usize;
        if length == 0 || length > FRAME_BYTES_MAX {
            return Err(Malformed("its length"));
        }
        if self.received.len() < LENGTH_BYTES + length {
            self.received.reserve(LENGTH_BYTES + length - self.received.len());
            return Ok(false);
        }
        self.received.advance(LENGTH_BYTES);
        self.frame = self.received.split_to(length).freeze();
        self.frames += 1;
        Ok(true)
    }

    /// Reads one message of the frame; `None` if it is a piece of a long one that is not complete.
    fn read_message(&mut self) -> Result<Option<Message>, Malformed> {
        Ok(Some(match self.u8()? {
            REQUEST => {
                let (id, kind, timeout_ms) = (self.id()?, Kind::new(self.u8()?), self.u32()?);
                Message::Request { id, kind, timeout_ms, payload: self.bytes()? }
            }
            ANSWER => Message::Answer { id: self.id()?, payload: self.bytes()? },
            REFUSAL => {
                let (id, reason) = (self.id()?, decode_reason(self.u8()?)?);
                let why = String::from_utf8_lossy(&self.bytes()?).into_owned();
                Message::Refusal { id, refused: Refused { reason, why } }
            }
            CANCEL => Message::Cancel(self.id()?),
            PING => Message::Ping,
            PONG => Message::Pong,
            GO_AWAY => Message::GoAway,
            LONG_REQUEST => {
                let (id, request) = (self.id()?, (Kind::new(self.u8()?), self.u32()?));
                return self.begin_long(id, Some(request));
            }
            LONG_ANSWER => {
                let id = self.id()?;
                return self.begin_long(id, None);
            }
            PART => return self.read_part(),
            ABANDON => {
                self.unfinished.take().ok_or(Malformed("the end of no long message"))?;
                return Ok(None);
            }
            _ => return Err(Malformed("an unknown message")),
        }))
    }

    fn begin_long(&mut self, id: RequestId, request: Option<(Kind, u32)>) -> Result<Option<Message>, Malformed> {
        let total = self.u32()? as usize;
        if total == 0 || total > PAYLOAD_BYTES_MAX {
            return Err(Malformed("the length of a long message"));
        }
        if self.unfinished.is_some() {
            return Err(Malformed("a second long message"));
        }
        self.unfinished = Some(Unfinished { request, id, total, received: BytesMut::new() });
        Ok(None)
    }

    fn read_part(&mut self) -> Result<Option<Message>, Malformed> {
        let part = self.bytes()?;
        let long = self.unfinished.as_mut().ok_or(Malformed("a part of no long message"))?;
        if part.is_empty() || part.len() > long.total - long.received.len() {
            return Err(Malformed("the length of a part"));
        }
        long.received.extend_from_slice(&part);
        if long.received.len() < long.total {
            return Ok(None);
        }
        Ok(self.unfinished.take().map(|Unfinished { request, id, received, .. }| {
            let payload = received.freeze();
            match request {
                Some((kind, timeout_ms)) => Message::Request { id, kind, timeout_ms, payload },
                None => Message::Answer { id, payload },
            }
        }))
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.frame.try_get_u8().map_err(|_| Malformed("it ends within a message"))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.frame.try_get_u32().map_err(|_| Malformed("it ends within a message"))
    }

    fn id(&mut self) -> Result<RequestId, Malformed> {
        self.frame.try_get_u64().map(RequestId::new).map_err(|_| Malformed("it ends within a message"))
    }

    fn bytes(&mut self) -> Result<Bytes, Malformed> {
        let len = self.u32()? as usize;
        if len > self.frame.len() {
            return Err(Malformed("it ends within a payload"));
        }
        Ok(self.frame.split_to(len))
    }
}

#[cfg(test)]
mod tests;
