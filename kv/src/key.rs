//! Keys as transactions see them, and their storage form.
//!
//! A [`Key`] is any byte string. Its *storage form* is a sequence of groups: eight bytes of the key and one marker
//! byte. The last group is padded with zeros, and its marker is 0xff minus the number of padding bytes. Every other
//! group is full and has the marker 0xff. This is the scheme of MyRocks and TiKV.
//!
//! The storage form keeps the order of keys, and no storage key is a prefix of another. So a timestamp can follow it
//! without mixing the versions of two keys. The *versioned form* appends the complement of the timestamp, big-endian:
//! the newest version of a key sorts first. Region boundaries are storage keys without a timestamp. `docs/formats.md`
//! pins the layout.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use tso::Timestamp;

/// Bytes of the key in one group of the storage form, without the marker.
pub(crate) const GROUP: usize = 8;
/// Marker of every group but the last. A last group with `n` bytes of padding has the marker `FULL - n`.
pub(crate) const FULL: u8 = 0xff;
/// Bytes of the timestamp in the versioned form.
pub const TS_LEN: usize = engine::store::VERSION_LEN;

/// A key as the transaction layer names it: any byte string, also the empty one. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

/// Bytes or text that do not stand for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed key: {0}")]
pub struct MalformedKey(&'static str);

impl Key {
    /// A key of these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Key {
        Key(bytes.into())
    }

    /// A key of a static byte string, without copying it.
    pub const fn from_static(bytes: &'static [u8]) -> Key {
        Key(Bytes::from_static(bytes))
    }

    /// The bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of the key, without copying them.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Whether the key has no bytes. As the end of a range, the empty key means "after every key".
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes as hexadecimal digits, for people and command lines.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads what [`Key::to_hex`] writes.
    ///
    /// # Errors
    ///
    /// [`MalformedKey`] if it is no even number of hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Key, MalformedKey> {
        let malformed = MalformedKey("not an even number of hexadecimal digits");
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(malformed);
        }
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        pairs.iter().map(byte).collect::<Option<Vec<u8>>>().map(Key::new).ok_or(malformed)
    }

    /// The smallest key above this one.
    pub fn successor(&self) -> Key {
        let mut bytes = Vec::with_capacity(self.0.len() + 1);
        bytes.extend_from_slice(&self.0);
        bytes.push(0);
        Key(bytes.into())
    }

    /// The storage form, without a timestamp: memory-comparable and prefix-free.
    pub fn to_storage(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(storage_len(self.0.len()));
        encode(&self.0, &mut out);
        out
    }

    /// Decodes a storage form without a timestamp.
    ///
    /// # Errors
    ///
    /// [`MalformedKey`] if no key has this storage form.
    pub fn from_storage(storage: &[u8]) -> Result<Key, MalformedKey> {
        let mut bytes = Vec::with_capacity(storage.len() / (GROUP + 1) * GROUP);
        decode(storage, &mut bytes)?;
        Ok(Key(bytes.into()))
    }

    /// The same, in memory of `block`, which is empty before and after.
    ///
    /// # Errors
    ///
    /// As [`Key::from_storage`].
    pub(crate) fn from_storage_in(storage: &[u8], block: &mut BytesMut) -> Result<Key, MalformedKey> {
        let decoded = decode(storage, block);
        let bytes = block.split().freeze();
        decoded.map(|()| Key(bytes))
    }
}

/// The bounds of a key range in storage form. An empty `end` means "after every key" and stays empty.
pub fn storage_range(start: &Key, end: &Key) -> (Vec<u8>, Vec<u8>) {
    (start.to_storage(), if end.is_empty() { Vec::new() } else { end.to_storage() })
}

/// Length of the storage form of a key of `len` bytes, without a timestamp.
pub const fn storage_len(len: usize) -> usize {
    (len / GROUP + 1) * (GROUP + 1)
}

/// The versioned form of a storage key: the key of its version at `ts`.
pub fn versioned(storage: &[u8], ts: Timestamp) -> Vec<u8> {
    let mut key = Vec::with_capacity(storage.len() + TS_LEN);
    key.extend_from_slice(storage);
    push_ts(&mut key, ts);
    key
}

/// Appends a timestamp so that newer ones sort first.
pub(crate) fn push_ts(storage: &mut Vec<u8>, ts: Timestamp) {
    storage.extend_from_slice(&(!ts.raw()).to_be_bytes());
}

/// Splits a versioned form into the storage key, which is not checked, and the timestamp.
///
/// # Errors
///
/// [`MalformedKey`] if it is too short for a timestamp.
pub fn split_ts(versioned: &[u8]) -> Result<(&[u8], Timestamp), MalformedKey> {
    match versioned.split_last_chunk::<TS_LEN>() {
        Some((storage, ts)) if !storage.is_empty() => Ok((storage, Timestamp::from_raw(!u64::from_be_bytes(*ts)))),
        _ => Err(MalformedKey("too short for a timestamp")),
    }
}

fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let (groups, rest) = bytes.as_chunks::<GROUP>();
    for group in groups {
        out.extend_from_slice(group);
        out.push(FULL);
    }
    let padding = GROUP - rest.len();
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0; GROUP][..padding]);
    out.push(FULL - padding as u8);
}

fn decode(storage: &[u8], out: &mut impl BufMut) -> Result<(), MalformedKey> {
    let (groups, rest) = storage.as_chunks::<{ GROUP + 1 }>();
    if !rest.is_empty() {
        return Err(MalformedKey("length is not a number of groups"));
    }
    let Some((last, full)) = groups.split_last() else { return Err(MalformedKey("empty")) };
    for [group @ .., marker] in full {
        if *marker != FULL {
            return Err(MalformedKey("padded group before the last"));
        }
        out.put_slice(group);
    }
    let [group @ .., marker] = last;
    let padding = usize::from(FULL - marker);
    if padding == 0 || padding > GROUP {
        return Err(MalformedKey("marker of the last group"));
    }
    let (bytes, zeros) = group.split_at(GROUP - padding);
    if zeros.iter().any(|b| *b != 0) {
        return Err(MalformedKey("padding is not zero"));
    }
    out.put_slice(bytes);
    Ok(())
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_bytes() {
        assert_eq!(Key::from_static(b"").to_storage(), [0, 0, 0, 0, 0, 0, 0, 0, 0xf7]);
        assert_eq!(Key::from_static(b"abc").to_storage(), *b"abc\0\0\0\0\0\xfa");
        assert_eq!(Key::from_static(b"12345678").to_storage(), *b"12345678\xff\0\0\0\0\0\0\0\0\xf7");
        assert_eq!(
            versioned(&Key::from_static(b"a").to_storage(), Timestamp::from_raw(1)),
            *b"a\0\0\0\0\0\0\0\xf8\xff\xff\xff\xff\xff\xff\xff\xfe"
        );
    }

    #[test]
    fn malformed_forms_are_errors() {
        let cases: &[&[u8]] = &[
            b"",
            b"abc",
            b"abc\0\0\0\0\0\xf6",
            b"abc\0\0\0\0\x01\xfa",
            b"12345678\xff",
            b"abc\0\0\0\0\0\xfaabc\0\0\0\0\0\xfa",
        ];
        for case in cases {
            assert!(Key::from_storage(case).is_err(), "{}", case.escape_ascii());
        }
        assert!(split_ts(b"12345678").is_err());
        let (storage, _) = split_ts(b"x\0\0\0\0\0\0\0\0").unwrap();
        assert!(Key::from_storage(storage).is_err());
    }

    /// Short keys over a small alphabet meet the borders of groups and of padding often.
    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xf7), Just(0xff), any::<u8>()], 0..20)
    }

    proptest! {
        #[test]
        fn round_trip(bytes in any_key(), ts in any::<u64>()) {
            let key = Key::new(bytes);
            let storage = key.to_storage();
            prop_assert_eq!(storage.len(), storage_len(key.as_bytes().len()));
            prop_assert_eq!(Key::from_storage(&storage).unwrap(), key.clone());
            let ts = Timestamp::from_raw(ts);
            let row = versioned(&storage, ts);
            prop_assert_eq!(split_ts(&row).unwrap(), (storage.as_slice(), ts));
        }

        #[test]
        fn storage_form_keeps_order_and_newer_versions_sort_first(
            a in any_key(),
            b in any_key(),
            ta in any::<u64>(),
            tb in any::<u64>(),
        ) {
            let (a, b) = (Key::new(a), Key::new(b));
            let (sa, sb) = (a.to_storage(), b.to_storage());
            prop_assert_eq!(sa.cmp(&sb), a.cmp(&b));
            let (ta, tb) = (Timestamp::from_raw(ta), Timestamp::from_raw(tb));
            let (va, vb) = (versioned(&sa, ta), versioned(&sb, tb));
            prop_assert_eq!(va.cmp(&vb), a.cmp(&b).then(tb.cmp(&ta)));
            // Region boundaries have no timestamp. Every version of a key sorts after its storage form and before the
            // next key's.
            if a < b {
                prop_assert!(va < sb);
                prop_assert!(sa < va);
            }
        }

        #[test]
        fn no_key_is_a_prefix_of_another(a in any_key(), b in any_key()) {
            let (a, b) = (Key::new(a), Key::new(b));
            prop_assert!(a == b || !a.to_storage().starts_with(&b.to_storage()));
        }

        #[test]
        fn decoding_inverts_encoding_or_fails(bytes in any_key()) {
            if let Ok(key) = Key::from_storage(&bytes) {
                prop_assert_eq!(key.to_storage(), bytes);
            }
        }

        #[test]
        fn no_key_sorts_between_a_key_and_its_successor(a in any_key(), b in any_key()) {
            let (a, b) = (Key::new(a), Key::new(b));
            prop_assert!(!(a < b && b < a.successor()));
        }
    }
}
