//! The generated messages of `proto/kv.proto`, and the error of a message that cannot be converted.

/// Messages, client and server generated from `proto/kv.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod pb {
    tonic::include_proto!("cortado.kv.v1");
}

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
