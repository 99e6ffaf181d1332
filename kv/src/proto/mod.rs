//! The wire form of the key-value service: generated messages, and conversions between them and [`crate::api`].
//!
//! Both sides use it: the service adapter decodes requests and encodes answers, the remote endpoint of the client the other
//! way round. Encoding cannot fail. Decoding checks that everything required is there and every kind is known; what is not is a
//! [`MalformedMessage`] that names the message. Generated types go no further than the adapters.

mod region;
mod request;
mod response;
#[cfg(test)]
mod tests;

/// The generated messages, client and server of `proto/kv.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod pb {
    tonic::include_proto!("cortado.kv.v1");
}

/// A message that does not say what it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {message}: {what}")]
pub struct MalformedMessage {
    /// The message.
    pub message: &'static str,
    /// What is wrong with it.
    pub what: &'static str,
}

/// The error for `message`.
const fn malformed(message: &'static str, what: &'static str) -> MalformedMessage {
    MalformedMessage { message, what }
}

/// The field, or an error that says which message misses something.
fn required<T>(field: Option<T>, message: &'static str, what: &'static str) -> Result<T, MalformedMessage> {
    field.ok_or(malformed(message, what))
}
