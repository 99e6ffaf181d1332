//! The generated messages of `proto/kv.proto`, the kinds of requests, and the error of a message that cannot be
//! converted.

use link::Kind;

/// Messages generated from `proto/kv.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod pb {
    include!(concat!(env!("OUT_DIR"), "/cortado.kv.v1.rs"));
}

/// A [`pb::Request`] on one region, answered by a [`pb::Response`].
pub const REQUEST: Kind = Kind::new(1);
/// A [`pb::LocateRequest`], answered by a [`pb::LocateResponse`].
pub const LOCATE: Kind = Kind::new(2);
/// A [`pb::AskGrants`], answered by a [`pb::GivenGrants`].
pub const ASK_GRANTS: Kind = Kind::new(3);
/// A [`pb::PushGrants`], answered by a [`pb::PushAnswer`].
pub const PUSH_GRANTS: Kind = Kind::new(4);

/// A message lacks a required field or holds an unknown kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {message}: {what}")]
pub struct MalformedMessage {
    /// The name of the message.
    pub message: &'static str,
    /// What is wrong with it.
    pub what: &'static str,
}

/// The error for `message`.
pub(super) const fn malformed(message: &'static str, what: &'static str) -> MalformedMessage {
    MalformedMessage { message, what }
}

/// The field, or the error that `message` lacks it.
pub(super) fn required<T>(field: Option<T>, message: &'static str, what: &'static str) -> Result<T, MalformedMessage> {
    field.ok_or(malformed(message, what))
}
