//! The bytes of a stream of Raft messages: handshake, frames, probes. `docs/formats.md` has the tables.
//!
//! The sender opens with link's Hello under a magic of its own, and names both stores; the receiver answers with a
//! Welcome. Then the sender writes frames. A frame of length 0 is a probe, which the receiver answers with one byte.
//! Nothing received makes the reader panic, or grow beyond one frame.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use link::hello::{Hello, Protocol};
use prost::Message as _;
use prost_raft::Message as _;

use super::options::TransportOptions;
use super::proto::{Malformed, decode_message, encode_envelope, wire};
use crate::ports::RaftMessage;
use crate::region::StoreId;

/// The first byte of every stream.
pub const FIRST_BYTE: u8 = PROTOCOL.magic[0];
/// Bytes of the Hello after link's.
pub(super) const STORES_BYTES: usize = 16;
/// The answer to a probe.
pub(super) const PROBE_ANSWER: u8 = 1;

const PROTOCOL: Protocol = Protocol { magic: *b"\xc1rtdraft", name: "Raft stream", version: 1 };
/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;
/// A buffer of more bytes than this is not kept for the next frame.
pub(super) const KEPT_BYTES: usize = 1 << 20;
/// The least room that a read finds.
const READ_BYTES: usize = 32 << 10;
/// Keys of `MessageFrame.messages` and `RaftMessage.message`, both of protobuf's length-delimited kind.
const MESSAGES_KEY: u8 = 2 << 3 | 2;
const MESSAGE_KEY: u8 = 5 << 3 | 2;

/// The Hello that both sides of a cluster say.
pub(super) const fn hello(options: &TransportOptions) -> Hello {
    Hello::of(PROTOCOL, link::ClusterTag::new(options.cluster.get()))
}

/// The stores of a stream: what follows the sender's Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stores {
    pub(super) from: StoreId,
    pub(super) to: StoreId,
}

impl Stores {
    pub(super) fn encode(self) -> [u8; STORES_BYTES] {
        let mut bytes = [0; STORES_BYTES];
        let (from, to) = bytes.split_at_mut(8);
        from.copy_from_slice(&self.from.get().to_be_bytes());
        to.copy_from_slice(&self.to.get().to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: [u8; STORES_BYTES]) -> Stores {
        let mut bytes = bytes.as_slice();
        Stores { from: StoreId::new(bytes.get_u64()), to: StoreId::new(bytes.get_u64()) }
    }

    /// Checks that a message of the stream is between its stores.
    pub(super) fn check(self, message: &RaftMessage) -> Result<(), Malformed> {
        if message.from.store != self.from || message.to.store != self.to {
            let (from, to) = (message.from.store, message.to.store);
            return Err(Malformed(format!("message of store {from} to store {to}")));
        }
        Ok(())
    }
}

/// Appends a probe.
pub(super) fn put_probe(out: &mut BytesMut) {
    out.put_u32(0);
}

/// Appends a frame of these messages. Entries are copied once, into `out`.
pub(super) fn put_frame(out: &mut BytesMut, messages: &[RaftMessage]) {
    let start = out.len();
    out.put_u32(0);
    for message in messages {
        put_message(out, message);
    }
    let len = out.len() - start - LENGTH_BYTES;
    if let Some(length) = out.get_mut(start..start + LENGTH_BYTES) {
        length.copy_from_slice(&(len as u32).to_be_bytes());
    }
}

fn put_message(out: &mut BytesMut, message: &RaftMessage) {
    let (envelope, inner) = (encode_envelope(message), &message.message);
    let (envelope_len, inner_len) = (envelope.encoded_len(), inner.encoded_len());
    let len = envelope_len + 1 + prost::length_delimiter_len(inner_len) + inner_len;
    out.reserve(1 + prost::length_delimiter_len(len) + len);
    out.put_u8(MESSAGES_KEY);
    put_varint(out, len);
    let end = out.len() + len;
    envelope.encode_raw(out);
    out.put_u8(MESSAGE_KEY);
    put_varint(out, inner_len);
    inner.encode_raw(out);
    assert_eq!(out.len(), end, "the length of a message");
}

fn put_varint(out: &mut BytesMut, mut value: usize) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// What a sender sends.
#[derive(Debug)]
pub(super) enum Frame {
    Probe,
    Messages(Bytes),
}

/// Cuts received bytes into frames.
pub(super) struct FrameReader {
    received: BytesMut,
    max_bytes: usize,
}

impl FrameReader {
    /// A reader that refuses frames of more than `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> FrameReader {
        FrameReader { received: BytesMut::new(), max_bytes }
    }

    /// The buffer to which the next received bytes are appended.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        if self.received.is_empty() && self.received.capacity() > KEPT_BYTES {
            self.received = BytesMut::new();
        }
        self.received.reserve(READ_BYTES);
        &mut self.received
    }

    /// The next whole frame; `None` if the rest of it is missing.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, Malformed> {
        let Some(length) = self.received.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.max_bytes {
            return Err(Malformed(format!("a frame of {length} bytes; at most {} are taken", self.max_bytes)));
        }
        if self.received.len() < LENGTH_BYTES + length {
            self.received.reserve(LENGTH_BYTES + length - self.received.len());
            return Ok(None);
        }
        self.received.advance(LENGTH_BYTES);
        if length == 0 {
            return Ok(Some(Frame::Probe));
        }
        Ok(Some(Frame::Messages(self.received.split_to(length).freeze())))
    }

    /// Whether a frame has begun and not ended.
    pub(super) fn is_in_frame(&self) -> bool {
        !self.received.is_empty()
    }
}

/// Decodes and checks the messages of a frame, and appends them. Those before a malformed one are kept.
pub(super) fn decode_frame(frame: Bytes, stores: Stores, into: &mut Vec<RaftMessage>) -> Result<(), Malformed> {
    let frame = wire::MessageFrame::decode(frame).map_err(|error| Malformed(error.to_string()))?;
    for message in frame.messages {
        let message = decode_message(message)?;
        stores.check(&message)?;
        into.push(message);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::proto::encode_message;
    use crate::transport::tests::{message, numbered};

    const STORES: Stores = Stores { from: StoreId::new(1), to: StoreId::new(2) };

    /// The frames of `bytes`, which arrive in pieces of `step` bytes.
    fn read(bytes: &[u8], step: usize) -> Vec<RaftMessage> {
        let (mut reader, mut messages) = (FrameReader::new(1 << 20), Vec::new());
        for piece in bytes.chunks(step) {
            reader.buffer().extend_from_slice(piece);
            while let Some(frame) = reader.next_frame().unwrap() {
                if let Frame::Messages(frame) = frame {
                    decode_frame(frame, STORES, &mut messages).unwrap();
                }
            }
        }
        assert!(!reader.is_in_frame());
        messages
    }

    /// The frame is what protobuf makes of it, without a copy of the entries in between.
    #[test]
    fn frames_are_protobuf() {
        let messages = [numbered(1, 0), numbered(2, 70_000), message(1, 2, 200)];
        let mut bytes = BytesMut::new();
        put_frame(&mut bytes, &messages);
        let frame = wire::MessageFrame { messages: messages.iter().map(encode_message).collect() };
        assert_eq!(bytes[..4], (frame.encoded_len() as u32).to_be_bytes());
        assert_eq!(bytes[4..], frame.encode_to_vec());
    }

    #[test]
    fn torn_frames_are_read_whole() {
        let messages = [numbered(1, 3), numbered(2, 500), numbered(3, 0)];
        let mut bytes = BytesMut::new();
        put_frame(&mut bytes, &messages[..2]);
        put_probe(&mut bytes);
        put_frame(&mut bytes, &messages[2..]);
        for step in [1, 2, 3, 5, 64, 1000] {
            assert_eq!(read(&bytes, step), messages, "pieces of {step} bytes");
        }
    }

    #[test]
    fn oversized_frame_is_refused_before_it_arrives() {
        let mut reader = FrameReader::new(100);
        reader.buffer().put_u32(101);
        assert!(reader.next_frame().is_err());
    }

    #[test]
    fn golden_bytes() {
        assert_eq!(STORES.encode(), *b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02");
        assert_eq!(Stores::decode(STORES.encode()), STORES);
        let hello = Hello::of(PROTOCOL, link::ClusterTag::new(0x0102));
        assert_eq!(hello.encode(), *b"\xc1rtdraft\0\0\0\x01\0\0\0\0\0\0\x01\x02");
        let mut bytes = BytesMut::new();
        put_frame(&mut bytes, &[numbered(7, 3)]);
        put_probe(&mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = concat!(
            "00000029",
            "12270805",
            "120408031004", // message: region 5, epoch
            "1a06080a10011801",
            "2206081410021801",               // from, to
            "2a0d1014180a3a0522030707074007", // the message of raft-rs
            "00000000"
        );
        assert_eq!(hex, golden, "the protocol changed");
    }
}
