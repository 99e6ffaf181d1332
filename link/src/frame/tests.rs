//! The bytes of every message, and the reader against torn, damaged and random bytes.

use proptest::prelude::*;

use super::*;
use crate::outbox::Outbox;

const ID: RequestId = RequestId::new(0x0102);

fn request(payload: impl Into<Bytes>) -> Message {
    Message::Request { id: ID, kind: Kind::new(7), timeout_ms: 0x0304, payload: payload.into() }
}

fn answer(payload: impl Into<Bytes>) -> Message {
    Message::Answer { id: ID, payload: payload.into() }
}

/// Every reason has a code that is read as itself.
const REASONS: [Reason; 4] = [Reason::Busy, Reason::Stopping, Reason::UnknownKind, Reason::Malformed];

/// The bytes of all frames of `messages`, and the number of frames.
fn encode(messages: impl IntoIterator<Item = Message>) -> (BytesMut, usize) {
    let mut outbox = Outbox::default();
    messages.into_iter().for_each(|message| outbox.push(message));
    let (mut bytes, mut frames) = (BytesMut::new(), 0);
    while !outbox.is_empty() {
        outbox.next_frame(&mut bytes, |_| {});
        frames += 1;
    }
    assert_eq!(outbox.bytes(), 0);
    (bytes, frames)
}

/// Reads `bytes` in pieces of `step` bytes.
fn read(bytes: &[u8], step: usize) -> Result<Vec<Message>, Malformed> {
    let mut reader = FrameReader::default();
    let mut messages = Vec::new();
    for piece in bytes.chunks(step) {
        reader.buffer().extend_from_slice(piece);
        while let Some(message) = reader.next_message()? {
            messages.push(message);
        }
    }
    Ok(messages)
}

#[test]
fn golden_bytes() {
    let refused = Refused { reason: Reason::Busy, why: "no".to_owned() };
    let all: [(Message, &[u8]); 7] = [
        (request("ab"), b"\0\0\0\x14\x01\0\0\0\0\0\0\x01\x02\x07\0\0\x03\x04\0\0\0\x02ab"),
        (answer("ab"), b"\0\0\0\x0f\x02\0\0\0\0\0\0\x01\x02\0\0\0\x02ab"),
        (Message::Refusal { id: ID, refused }, b"\0\0\0\x10\x03\0\0\0\0\0\0\x01\x02\x01\0\0\0\x02no"),
        (Message::Cancel(ID), b"\0\0\0\x09\x04\0\0\0\0\0\0\x01\x02"),
        (Message::Ping, b"\0\0\0\x01\x05"),
        (Message::Pong, b"\0\0\0\x01\x06"),
        (Message::GoAway, b"\0\0\0\x01\x07"),
    ];
    for (message, bytes) in all {
        assert_eq!(encode([message.clone()]).0, bytes, "{message:?}");
        assert_eq!(read(bytes, 1), Ok(vec![message]));
    }
    let codes: Vec<u8> = REASONS.into_iter().map(reason_code).collect();
    assert_eq!(codes, [1, 2, 3, 4]);
    assert!(REASONS.into_iter().all(|reason| decode_reason(reason_code(reason)) == Ok(reason)));

    let long = vec![9; SHORT_BYTES_MAX + 1];
    let (bytes, frames) = encode([request(long.clone())]);
    assert_eq!(frames, 1);
    let mut expected = b"\0\0\x80\x18\x08\0\0\0\0\0\0\x01\x02\x07\0\0\x03\x04\0\0\x80\x01\x0a\0\0\x80\x01".to_vec();
    expected.extend_from_slice(&long);
    assert_eq!(bytes, expected);
    let (bytes, _) = encode([answer(long.clone())]);
    assert_eq!(bytes[..22], *b"\0\0\x80\x13\x09\0\0\0\0\0\0\x01\x02\0\0\x80\x01\x0a\0\0\x80\x01");
}

/// Frames torn at every place.
#[test]
fn torn_frames_are_read_when_the_rest_arrives() {
    let messages = vec![request("abc"), Message::Cancel(ID), answer(vec![1; 70_000]), Message::Ping, request("")];
    let (bytes, _) = encode(messages.clone());
    let mut expected = read(&bytes, bytes.len()).unwrap();
    for step in [1, 2, 3, 7, 19, 1_000, 65_537] {
        assert_eq!(read(&bytes, step), Ok(expected.clone()), "in pieces of {step}");
    }
    // The long answer comes last; nothing else moved.
    let long = expected.pop();
    assert_eq!((long, expected), (Some(messages[2].clone()), [&messages[..2], &messages[3..]].concat()));
}

#[test]
fn a_long_payload_leaves_room_for_short_messages_in_every_frame() {
    let mut outbox = Outbox::default();
    outbox.push(answer(vec![1; 1 << 20]));
    let mut reader = FrameReader::default();
    let mut frames = 0;
    while !outbox.is_empty() {
        // Short messages keep coming, each frame takes what came since the last.
        outbox.push(Message::Pong);
        let buffer = reader.buffer();
        let before = buffer.len();
        outbox.next_frame(buffer, |_| {});
        assert!(buffer.len() - before <= FRAME_BYTES_MAX + 4);
        frames += 1;
        assert_eq!(reader.next_message(), Ok(Some(Message::Pong)));
        if outbox.is_empty() {
            assert_eq!(reader.next_message(), Ok(Some(answer(vec![1; 1 << 20]))));
        }
        assert_eq!(reader.next_message(), Ok(None));
    }
    assert!((8..=10).contains(&frames), "{frames} frames");
    // And short messages without end do not hold up a part.
    outbox.push(answer(vec![1; 40_000]));
    let short = || Message::Request {
        id: RequestId::new(1),
        kind: Kind::new(1),
        timeout_ms: 1,
        payload: vec![2; 30_000].into(),
    };
    (0..100).for_each(|_| outbox.push(short()));
    let mut left = Vec::new();
    for _ in 0..2 {
        outbox.next_frame(&mut BytesMut::new(), |id| left.push(id));
    }
    assert!(left.contains(&ID) && left.len() < 10, "{left:?}");
}

#[test]
fn an_abandoned_message_is_dropped_and_the_next_one_is_whole() {
    let mut outbox = Outbox::default();
    let mut bytes = BytesMut::new();
    outbox.push(request(vec![1; 1 << 20]));
    outbox.next_frame(&mut bytes, |_| {});
    assert_eq!(outbox.remove(ID), crate::outbox::Removed::Partly);
    assert_eq!(outbox.remove(ID), crate::outbox::Removed::Gone);
    assert_eq!((outbox.bytes(), outbox.is_empty()), (0, false));
    let next = Message::Answer { id: RequestId::new(9), payload: vec![2; 40_000].into() };
    outbox.push(next.clone());
    outbox.next_frame(&mut bytes, |_| {});
    assert!(outbox.is_empty());
    assert_eq!(read(&bytes, 999), Ok(vec![next]));
}

#[test]
fn bytes_that_no_sender_writes_are_refused() {
    let frame = |body: &[u8]| [&(body.len() as u32).to_be_bytes(), body].concat();
    let id = [0; 8];
    let breaches: [(&str, Vec<u8>); 14] = [
        ("its length", vec![0, 0, 0, 0]),
        ("its length", (FRAME_BYTES_MAX as u32 + 1).to_be_bytes().to_vec()),
        ("its length", vec![0xff; 4]),
        ("an unknown message", frame(&[0])),
        ("an unknown message", frame(&[12])),
        ("it ends within a message", frame(&[CANCEL, 1, 2])),
        ("it ends within a message", frame(&[REQUEST])),
        ("it ends within a payload", frame(&[&[ANSWER][..], &id, &[0, 0, 0, 2, 1]].concat())),
        ("an unknown reason", frame(&[&[REFUSAL][..], &id, &[5, 0, 0, 0, 0]].concat())),
        ("the length of a long message", frame(&[&[LONG_ANSWER][..], &id, &[0xff; 4]].concat())),
        ("the length of a long message", frame(&[&[LONG_ANSWER][..], &id, &[0; 4]].concat())),
        ("a part of no long message", frame(&[PART, 0, 0, 0, 1, 7])),
        ("the length of a part", frame(&[&[LONG_ANSWER][..], &id, &[0, 0, 0, 1, PART, 0, 0, 0, 2, 7, 7]].concat())),
        ("the end of no long message", frame(&[ABANDON])),
    ];
    for (why, bytes) in breaches {
        assert_eq!(read(&bytes, 3), Err(Malformed(why)), "{bytes:?}");
    }
    let twice = [&[LONG_ANSWER][..], &id, &[0, 0, 0, 9]].concat();
    assert_eq!(read(&frame(&twice.repeat(2)), 100), Err(Malformed("a second long message")));
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = any::<u64>().prop_map(RequestId::new);
    let payload = prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..100),
        1 => (0..200_000_usize).prop_map(|len| vec![5; len]),
    ];
    let payload = payload.prop_map(Bytes::from).boxed();
    prop_oneof![
        (id.clone(), any::<u8>(), any::<u32>(), payload.clone()).prop_map(|(id, kind, timeout_ms, payload)| {
            Message::Request { id, kind: Kind::new(kind), timeout_ms, payload }
        }),
        (id.clone(), payload).prop_map(|(id, payload)| Message::Answer { id, payload }),
        (id.clone(), 0..4_usize, ".{0,20}")
            .prop_map(|(id, at, why)| Message::Refusal { id, refused: Refused { reason: REASONS[at], why } }),
        id.prop_map(Message::Cancel),
        Just(Message::Ping),
        Just(Message::Pong),
        Just(Message::GoAway),
    ]
}

fn is_long(message: &Message) -> bool {
    !matches!(message, Message::Refusal { .. }) && message.payload_len() > SHORT_BYTES_MAX
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_survives_in_the_order_of_its_length(
        messages in proptest::collection::vec(any_message(), 0..40),
        step in 1..5_000_usize,
    ) {
        let (bytes, _) = encode(messages.clone());
        let found = read(&bytes, step).unwrap();
        let of = |all: &[Message], long: bool| -> Vec<Message> {
            all.iter().filter(|message| is_long(message) == long).cloned().collect()
        };
        prop_assert_eq!(of(&found, false), of(&messages, false));
        prop_assert_eq!(of(&found, true), of(&messages, true));
        prop_assert_eq!(found.len(), messages.len());
    }

    /// Damage ends in an error or in other messages, never in a panic or in more memory than was received.
    #[test]
    fn damaged_bytes_do_no_harm(
        messages in proptest::collection::vec(any_message(), 1..10),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (mut bytes, _) = encode(messages);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(found) = read(&bytes, 777) {
            let total: usize = found.iter().map(Message::payload_len).sum();
            // Lossy text may take three bytes for one.
            prop_assert!(total <= 3 * bytes.len());
        }
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), small in any::<bool>()) {
        let mut framed = bytes.clone();
        if small && bytes.len() >= 4 {
            // A length that fits, so that the messages are reached.
            framed[..4].copy_from_slice(&(bytes.len() as u32 - 4).to_be_bytes());
        }
        let _ = read(&framed, 100);
    }
}
