//! The gateway against known malformed messages and random bytes.

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;

use super::*;

const CAP: usize = 1 << 20;

fn frame(kind: u8, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_u8(kind);
    out.put_i32(i32::try_from(body.len() + 4).unwrap());
    out.put_slice(body);
    out
}

fn header(kind: u8, length: i32) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_u8(kind);
    out.put_i32(length);
    out
}

fn state_of(mut input: BytesMut) -> &'static str {
    Gateway::new(CAP).next(&mut input).expect_err("must be refused").code.0
}

#[test]
fn lengths_out_of_range_are_refused_before_the_body_arrives() {
    for kind in *b"QPBDECHSXFdcf" {
        for length in [i32::MIN, -1, 0, 1, 2, 3, i32::MAX] {
            assert_eq!(state_of(header(kind, length)), "08P01", "{} {length}", kind as char);
        }
    }
    assert_eq!(state_of(header(b'Q', i32::try_from(CAP).unwrap() + 1)), "08P01");
    assert_eq!(state_of(header(b'E', 10_001)), "08P01");
}

#[test]
fn a_claim_within_the_cap_allocates_nothing() {
    let mut input = header(b'Q', i32::try_from(CAP).unwrap());
    let before = input.capacity();
    assert!(Gateway::new(CAP).next(&mut input).unwrap().is_none());
    assert_eq!(input.capacity(), before);
    assert_eq!(Gateway::new(CAP).missing(&input), CAP - 4);
}

#[test]
fn unknown_types_are_refused_at_the_first_byte() {
    for kind in 0..=255u8 {
        if !b"QPBDECHSXFdcf".contains(&kind) {
            assert_eq!(state_of(BytesMut::from(&[kind][..])), "08P01", "{kind}");
        }
    }
}

#[test]
fn short_bodies_and_missing_terminators_are_refused() {
    let bodies: [(u8, &[u8]); 17] = [
        (b'Q', b""),
        (b'Q', b"select 1"),
        (b'Q', b"select 1\0more"),
        (b'P', b""),
        (b'P', b"s\0"),
        (b'P', b"s\0select 1\0"),
        (b'P', b"s\0select 1\0\x00"),
        (b'P', b"s\0select 1\0\x00\x01\x00\x00"),
        (b'P', b"s\0select 1\0\xff\xff"),
        (b'D', b""),
        (b'D', b"S"),
        (b'D', b"Xname\0"),
        (b'C', b"P"),
        (b'E', b"\0"),
        (b'E', b"\0\x00\x00\x00"),
        (b'S', b"x"),
        (b'H', b"\0"),
    ];
    for (kind, body) in bodies {
        assert_eq!(state_of(frame(kind, body)), "08P01", "{} {:?}", kind as char, body.escape_ascii().to_string());
    }
}

#[test]
fn counts_and_lengths_in_bind_must_fit_its_body() {
    let bodies: [&[u8]; 10] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\0\xff\xff\0\0\0\0",
        b"\0\0\0\0\xff\xff\0\0",
        b"\0\0\0\0\0\0\xff\xff",
        b"\0\0\0\0\0\x01\0\0\0\x09abc\0\0",
        b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0",
        b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0",
        b"\0\0\0\0\0\0\0\0more",
    ];
    for body in bodies {
        assert_eq!(state_of(frame(b'B', body)), "08P01", "{}", body.escape_ascii());
    }
}

#[test]
fn invalid_utf8_is_an_error_of_its_message() {
    for (kind, body, bytes) in [
        (b'Q', &b"select '\xff'\0"[..], "0xff"),
        (b'Q', b"select '\xe4a'\0", "0xe4 0x61 0x27"),
        (b'P', b"\xc3\0select 1\0\0\0", "0xc3"),
        (b'P', b"\0\xed\xa0\x80\0\0\0", "0xed 0xa0 0x80"),
        (b'B', b"\xfe\0\0\0\0\0\0\0\0", "0xfe"),
        (b'D', b"S\xfe\0", "0xfe"),
    ] {
        let mut input = frame(kind, body);
        input.extend_from_slice(&frame(b'S', b""));
        let gateway = Gateway::new(CAP);
        let Ok(Some(Frontend::BadText { is_query, error })) = gateway.next(&mut input) else { panic!("not refused") };
        assert_eq!((is_query, error.code.0), (kind == b'Q', "22021"));
        assert_eq!(error.message, format!("invalid byte sequence for encoding \"UTF8\": {bytes}"));
        assert!(matches!(gateway.next(&mut input), Ok(Some(Frontend::Sync))), "the next message is intact");
    }
}

#[test]
fn complete_messages_are_decoded_one_by_one() {
    let mut input = frame(b'P', b"s\0select $1\0\0\x01\0\0\0\x17");
    input.extend_from_slice(&frame(b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\x01"));
    input.extend_from_slice(&frame(b'E', b"p\0\0\0\0\x05"));
    let sync = frame(b'S', b"");
    input.extend_from_slice(&sync[..3]);
    let gateway = Gateway::new(CAP);
    let Ok(Some(Frontend::Parse(parse))) = gateway.next(&mut input) else { panic!("no Parse") };
    assert_eq!(
        (parse.name.as_deref(), parse.query.as_str(), parse.type_oids.as_slice()),
        (Some("s"), "select $1", &[23][..])
    );
    let Ok(Some(Frontend::Bind(bind))) = gateway.next(&mut input) else { panic!("no Bind") };
    assert_eq!(bind.parameters, vec![Some(Bytes::from_static(b"ab")), None]);
    assert_eq!(bind.result_column_format_codes, vec![1]);
    let Ok(Some(Frontend::Execute(execute))) = gateway.next(&mut input) else { panic!("no Execute") };
    assert_eq!((execute.name.as_deref(), execute.max_rows), (Some("p"), 5));
    assert!(gateway.next(&mut input).unwrap().is_none());
    input.extend_from_slice(&sync[3..]);
    assert!(matches!(gateway.next(&mut input), Ok(Some(Frontend::Sync))));
    assert!(input.is_empty());
}

proptest! {
    #[test]
    fn no_bytes_panic(
        kind in prop::sample::select(b"QPBDECHSXFdcf".to_vec()),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = Gateway::new(CAP).next(&mut frame(kind, &body));
    }

    #[test]
    fn no_stream_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut input = BytesMut::from(&bytes[..]);
        let gateway = Gateway::new(CAP);
        while let Ok(Some(_)) = gateway.next(&mut input) {}
    }
}
