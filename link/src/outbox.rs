//! The messages that wait to be sent over a link, and how they are packed into frames.
//!
//! Short messages leave in their order, many per frame. Long ones leave one after another, cut into parts: each frame
//! has room for one part beside the short messages, so neither kind waits for all of the other.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use crate::frame::{self, FRAME_BYTES_MAX, HEADER_BYTES_MAX, SHORT_BYTES_MAX};
use crate::message::{Message, RequestId};

/// Room in a frame for a part, kept while a long message waits.
const PART_ROOM: usize = HEADER_BYTES_MAX + PART_HEADER + SHORT_BYTES_MAX;
/// The most bytes of a short message with its header.
const SHORT_ROOM: usize = HEADER_BYTES_MAX + SHORT_BYTES_MAX;
/// Bytes of the header of a part, or of the end of an abandoned message.
const PART_HEADER: usize = 5;
/// What a queued message counts beside its payload, so that many empty ones are bounded too.
const MESSAGE_OVERHEAD: usize = 64;

/// What is known of a message that is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It was queued, and nothing of it has left.
    Unsent,
    /// Some parts have left; the receiver drops them.
    Partly,
    /// It is not here: all of it has left.
    Gone,
}

/// A long message whose parts are leaving.
#[derive(Debug)]
struct Sending {
    id: RequestId,
    rest: Bytes,
}

/// See the module documentation.
///
/// Invariants:
/// 1. `bytes` is the sum of [`cost`] over `short` and `long`, and of the rest in `sending`.
/// 2. A message in `short` has at most [`SHORT_BYTES_MAX`] bytes of payload, one in `long` has more.
#[derive(Debug, Default)]
pub struct Outbox {
    short: VecDeque<Message>,
    long: VecDeque<Message>,
    sending: Option<Sending>,
    /// A long message was taken back after some of its parts had left.
    abandoned: bool,
    bytes: usize,
}

impl Outbox {
    /// Queues a message.
    pub fn push(&mut self, message: Message) {
        let len = message.payload_len();
        let is_cut = matches!(message, Message::Request { .. } | Message::Answer { .. });
        self.bytes += cost(&message);
        match is_cut && len > SHORT_BYTES_MAX {
            true => self.long.push_back(message),
            false => self.short.push_back(message),
        }
    }

    /// About the bytes that the queued messages take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.short.is_empty() && self.long.is_empty() && self.sending.is_none() && !self.abandoned
    }

    /// Takes back the request `id` or its answer.
    pub fn remove(&mut self, id: RequestId) -> Removed {
        if self.sending.as_ref().is_some_and(|sending| sending.id == id) {
            self.bytes -= self.sending.take().map_or(0, |sending| sending.rest.len());
            self.abandoned = true;
            return Removed::Partly;
        }
        for queue in [&mut self.short, &mut self.long] {
            // The newest are at the end, and they are the ones that are taken back before they leave.
            if let Some(at) = queue.iter().rposition(|message| carries(message, id)) {
                self.bytes -= queue.remove(at).map_or(0, |message| cost(&message));
                return Removed::Unsent;
            }
        }
        Removed::Gone
    }

    /// Appends one frame with what waits, or as much of it as fits; nothing if nothing waits. Passes each message that
    /// ends in this frame to `left`, and returns their number.
    pub fn next_frame(&mut self, out: &mut BytesMut, mut left: impl FnMut(RequestId)) -> usize {
        if self.is_empty() {
            return 0;
        }
        let start = frame::begin_frame(out);
        let mut messages = 0;
        if std::mem::take(&mut self.abandoned) {
            frame::put_abandon(out);
        }
        let has_long = self.sending.is_some() || !self.long.is_empty();
        let limit = FRAME_BYTES_MAX - if has_long { PART_ROOM } else { 0 };
        while out.len() - start + SHORT_ROOM <= limit
            && let Some(message) = self.short.pop_front()
        {
            frame::put_message(out, &message);
            self.bytes -= cost(&message);
            messages += 1;
            if let Message::Request { id, .. } = message {
                left(id);
            }
        }
        if let Some(id) = self.put_part(out, FRAME_BYTES_MAX - (out.len() - start)) {
            messages += 1;
            left(id);
        }
        frame::end_frame(out, start);
        messages
    }

    /// Appends a part of the long message under way, or of the next one, of at most `room` bytes. Returns the message
    /// if that was the last of its parts.
    fn put_part(&mut self, out: &mut BytesMut, room: usize) -> Option<RequestId> {
        let mut room = room;
        if self.sending.is_none() {
            let message = self.long.pop_front()?;
            frame::put_long(out, &message);
            room -= HEADER_BYTES_MAX;
            self.bytes -= MESSAGE_OVERHEAD;
            self.sending = match message {
                Message::Request { id, payload: rest, .. } | Message::Answer { id, payload: rest } => {
                    Some(Sending { id, rest })
                }
                _ => None,
            };
        }
        let sending = self.sending.as_mut()?;
        let part = sending.rest.get(..room - PART_HEADER).unwrap_or(&sending.rest);
        let len = part.len();
        frame::put_part(out, part);
        sending.rest.advance(len);
        self.bytes -= len;
        if !sending.rest.is_empty() {
            return None;
        }
        self.sending.take().map(|sending| sending.id)
    }
}

fn cost(message: &Message) -> usize {
    message.payload_len() + MESSAGE_OVERHEAD
}

/// Whether a message is the request `id` or its answer.
fn carries(message: &Message, id: RequestId) -> bool {
    match message {
        Message::Request { id: own, .. } | Message::Answer { id: own, .. } => *own == id,
        Message::Refusal { id: own, .. } => *own == id,
        Message::Cancel(_) | Message::Ping | Message::Pong | Message::GoAway => false,
    }
}
