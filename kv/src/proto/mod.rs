//! The wire form of the key-value service: generated messages, and conversions between them and [`crate::api`].
//!
//! The server's adapter decodes requests and encodes responses; the client's remote endpoint does the reverse.
//! Encoding cannot fail. Decoding checks that required fields are present and kinds are known; otherwise it fails with
//! a
//! [`MalformedMessage`] that names the message. Only the adapters use the generated types.
//!
//! # Layers
//!
//! 1. `message`: the generated messages, the kinds of requests, the error of a malformed one
//! 2. `grants`, `region`, `request`: conversions
//! 3. `locks`, `response`: further conversions, of parts of those

mod grants;
mod locks;
mod message;
mod region;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use message::{ASK_GRANTS, LOCATE, MalformedMessage, PUSH_GRANTS, REQUEST, pb};
