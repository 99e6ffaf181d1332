//! Packets before the session: encryption requests, cancel requests, the startup packet.
//!
//! These packets have no type byte, only a length and a code. Pure: bytes in, a packet out. The guarantees of
//! [`super::frame`] hold: no claimed length is allocated, and the codec sees checked bytes only.

use bytes::{Buf, BytesMut};
use pgwire::messages::startup::Startup;
use pgwire::messages::{DecodeContext, Message, ProtocolVersion};

use super::frame::{BodyReader, MAX_STARTUP_BYTES, violation};
use crate::error::{SqlError, SqlState};

const CANCEL_CODE: i32 = 80_877_102;
const SSL_CODE: i32 = 80_877_103;
const GSS_CODE: i32 = 80_877_104;

/// The supported protocol version as NegotiateProtocolVersion encodes it: 3.0.
pub(crate) const PROTOCOL_3_0: i32 = 3 << 16;

/// A packet before the session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// A request for TLS.
    SslRequest,
    /// A request for GSSAPI encryption.
    GssRequest,
    /// Cancel the request of another connection.
    Cancel {
        /// Its process id.
        pid: i32,
        /// Its secret.
        secret: i32,
    },
    /// Start a session.
    Startup(StartupRequest),
    /// A packet of an invalid length. PostgreSQL closes the connection without an answer.
    Malformed,
}

/// The contents of a startup packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartupRequest {
    /// The role.
    pub(crate) user: String,
    /// The database. Defaults to the user's name.
    pub(crate) database: String,
    /// Settings in the order of application: first those of `options`, then the packet's own.
    pub(crate) settings: Vec<(String, String)>,
    /// Unknown protocol extensions. Set if the client asked for a newer minor version or for extensions.
    pub(crate) negotiate: Option<Vec<String>>,
}

/// The next packet in `input`; `None` while more bytes are needed. After an error the connection must be closed.
pub(crate) fn next_packet(input: &mut BytesMut) -> Result<Option<Packet>, SqlError> {
    let Some(word) = input.get(..4) else {
        return Ok(None);
    };
    let length = i32::from_be_bytes([word[0], word[1], word[2], word[3]]);
    let length = match usize::try_from(length) {
        Ok(length) if (8..=MAX_STARTUP_BYTES).contains(&length) => length,
        _ => return Ok(Some(Packet::Malformed)),
    };
    if input.len() < length {
        return Ok(None);
    }
    let mut packet = input.split_to(length);
    let code = (&packet[4..8]).get_i32();
    match code {
        SSL_CODE => Ok(Some(Packet::SslRequest)),
        GSS_CODE => Ok(Some(Packet::GssRequest)),
        CANCEL_CODE => Ok(Some(cancel_request(&packet[8..]).unwrap_or(Packet::Malformed))),
        _ => startup_request(code, &mut packet).map(|g| Some(Packet::Startup(g))),
    }
}

/// The contents of a cancel request; `None` if its length is wrong.
fn cancel_request(rest: &[u8]) -> Option<Packet> {
    let mut body = BodyReader(rest);
    let (pid, secret) = (body.int().ok()?, body.int().ok()?);
    body.end().ok()?;
    Some(Packet::Cancel { pid, secret })
}

fn startup_request(code: i32, packet: &mut BytesMut) -> Result<StartupRequest, SqlError> {
    let (major, minor) = (code >> 16, code & 0xffff);
    if major != 3 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0"),
        ));
    }
    check_parameters(&packet[8..])?;
    let context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    let decoded = Startup::decode(packet, &context).map_err(|e| violation(format!("invalid startup packet: {e}")))?;
    let Some(startup) = decoded else {
        return Err(violation("invalid startup packet layout"));
    };
    let mut user = None;
    let mut database = None;
    let mut options = Vec::new();
    let mut own = Vec::new();
    let mut unknown = Vec::new();
    for (name, value) in startup.parameters {
        match name.as_str() {
            "user" => user = Some(value),
            "database" => database = Some(value),
            "options" => options = parse_options(&value)?,
            "replication" => check_replication(&value)?,
            _ if name.starts_with("_pq_.") => unknown.push(name),
            _ => own.push((name, value)),
        }
    }
    let Some(user) = user.filter(|u| !u.is_empty()) else {
        return Err(SqlError::new(
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "no PostgreSQL user name specified in startup packet",
        ));
    };
    options.append(&mut own);
    let database = database.filter(|d| !d.is_empty()).unwrap_or_else(|| user.clone());
    let negotiate = (minor > 0 || !unknown.is_empty()).then_some(unknown);
    Ok(StartupRequest { user, database, settings: options, negotiate })
}

/// Checks pairs of strings followed by an empty string, the packet's last byte.
fn check_parameters(bytes: &[u8]) -> Result<(), SqlError> {
    let mut body = BodyReader(bytes);
    loop {
        let name = body.string().map_err(layout)?;
        if name.is_empty() {
            return body
                .end()
                .map_err(|_| violation("invalid startup packet layout: expected terminator as last byte"));
        }
        body.string().map_err(layout)?;
    }
}

fn layout(error: SqlError) -> SqlError {
    if error.code == SqlState::CHARACTER_NOT_IN_REPERTOIRE { error } else { violation("invalid startup packet layout") }
}

fn check_replication(value: &str) -> Result<(), SqlError> {
    match value.to_ascii_lowercase().as_str() {
        "off" | "false" | "no" | "0" => Ok(()),
        _ => Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "replication connections are not supported")),
    }
}

/// Parses `options`: command-line switches separated by white space, with backslash as escape. Accepts `-c name=value`
/// and `--name=value`. In the latter, dashes in the name mean underscores, as in PostgreSQL.
fn parse_options(options: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut settings = Vec::new();
    let mut words = split_options(options).into_iter();
    while let Some(word) = words.next() {
        let (assignment, long) = if let Some(rest) = word.strip_prefix("--") {
            (rest.to_owned(), true)
        } else if word == "-c" {
            (words.next().unwrap_or_default(), false)
        } else if let Some(rest) = word.strip_prefix("-c") {
            (rest.to_owned(), false)
        } else {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("invalid command-line argument for server process: {word}"),
            ));
        };
        match assignment.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                let name = if long { name.replace('-', "_") } else { name.to_owned() };
                settings.push((name, value.to_owned()));
            }
            _ => {
                let switch = if long { "--" } else { "-c " };
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{switch}{assignment} requires a value")));
            }
        }
    }
    Ok(settings)
}

fn split_options(options: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = options.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: i32, body: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        out.extend_from_slice(&i32::try_from(body.len() + 8).unwrap().to_be_bytes());
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    fn request(code: i32, body: &[u8]) -> Result<StartupRequest, SqlError> {
        match next_packet(&mut packet(code, body))? {
            Some(Packet::Startup(request)) => Ok(request),
            other => panic!("not a startup: {other:?}"),
        }
    }

    #[test]
    fn lengths_out_of_range_are_malformed_at_once() {
        for length in [i32::MIN, -1, 0, 3, 7, 10_005, i32::MAX] {
            let mut input = BytesMut::from(&length.to_be_bytes()[..]);
            assert_eq!(next_packet(&mut input), Ok(Some(Packet::Malformed)), "{length}");
        }
        let mut half = BytesMut::from(&packet(PROTOCOL_3_0, b"user\0a\0\0")[..10]);
        assert_eq!(next_packet(&mut half), Ok(None));
    }

    #[test]
    fn requests_are_distinguished() {
        assert_eq!(next_packet(&mut packet(SSL_CODE, b"")), Ok(Some(Packet::SslRequest)));
        assert_eq!(next_packet(&mut packet(GSS_CODE, b"surplus")), Ok(Some(Packet::GssRequest)));
        let cancel = Packet::Cancel { pid: 1, secret: -2 };
        assert_eq!(next_packet(&mut packet(CANCEL_CODE, b"\0\0\0\x01\xff\xff\xff\xfe")), Ok(Some(cancel)));
        for body in [&b"\0\0\0\x01"[..], b"\0\0\0\x01\0\0\0\x01\0"] {
            assert_eq!(next_packet(&mut packet(CANCEL_CODE, body)), Ok(Some(Packet::Malformed)));
        }
    }

    #[test]
    fn a_startup_packet_gives_user_database_and_settings() {
        let body = b"user\0ann\0options\0-c a=1 --b-c=x\\ y\0application_name\0psql\0\0";
        let request = request(PROTOCOL_3_0, body).unwrap();
        assert_eq!((request.user.as_str(), request.database.as_str()), ("ann", "ann"));
        let settings: Vec<String> = request.settings.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(settings, ["a=1", "b_c=x y", "application_name=psql"]);
        assert_eq!(request.negotiate, None);
    }

    #[test]
    fn newer_minor_versions_and_extensions_are_negotiated_down() {
        assert_eq!(request(PROTOCOL_3_0 + 2, b"user\0a\0\0").unwrap().negotiate, Some(Vec::new()));
        let asked = request(PROTOCOL_3_0, b"user\0a\0_pq_.x\0on\0\0").unwrap();
        assert_eq!(asked.negotiate, Some(vec!["_pq_.x".to_owned()]));
        assert_eq!(request(2 << 16, b"user\0a\0\0").unwrap_err().code.0, "0A000");
    }

    #[test]
    fn malformed_startup_packets_are_refused() {
        let bodies: [(&[u8], &str); 9] = [
            (b"", "08P01"),
            (b"user", "08P01"),
            (b"user\0a", "08P01"),
            (b"user\0a\0", "08P01"),
            (b"user\0a\0\0more", "08P01"),
            (b"user\0\xff\0\0", "22021"),
            (b"\0", "28000"),
            (b"user\0a\0replication\0true\0\0", "0A000"),
            (b"user\0a\0options\0-x\0\0", "42601"),
        ];
        for (body, state) in bodies {
            assert_eq!(request(PROTOCOL_3_0, body).unwrap_err().code.0, state, "{}", body.escape_ascii());
        }
    }
}
