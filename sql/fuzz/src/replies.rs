//! The replies of a server: whether they are messages of the protocol, and what they say that every run must say.

/// The messages that a server sends.
const KINDS: &[u8] = b"RKSZTDCENIAtsn123GHWdcvVp";

/// The replies as `type`, and of errors and notices their SQLSTATE, of completed commands their tag.
///
/// # Panics
/// If they are no sequence of whole messages. The first bytes may be `N`, answers to requests for encryption.
pub fn summary(mut bytes: &[u8]) -> Vec<String> {
    let mut summary = Vec::new();
    while let [b'N', rest @ ..] = bytes
        && (rest.is_empty() || rest[0] != 0)
    {
        bytes = rest;
        summary.push("N".to_owned());
    }
    while !bytes.is_empty() {
        assert!(bytes.len() >= 5, "half a message: {}", bytes.escape_ascii());
        let (kind, length) = (bytes[0], u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize);
        assert!(KINDS.contains(&kind), "no message of a server: {}", bytes.escape_ascii());
        assert!(length >= 4 && bytes.len() > length, "half a message: {}", bytes.escape_ascii());
        let body = &bytes[5..=length];
        summary.push(match kind {
            b'E' | b'N' => format!("{} {}", char::from(kind), state(body)),
            b'C' => format!("C {}", String::from_utf8_lossy(body)),
            kind => char::from(kind).to_string(),
        });
        bytes = &bytes[1 + length..];
    }
    summary
}

fn state(body: &[u8]) -> String {
    let field = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&b'C'));
    String::from_utf8_lossy(field.expect("an error has a SQLSTATE")).into_owned()
}
