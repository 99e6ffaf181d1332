//! The PostgreSQL wire protocol below the session: bytes from a client become checked messages, replies become bytes.
//!
//! [`frame`] checks and decodes the messages of an established connection, [`startup`] the packets before it.
//! [`input`] is the read half of a connection, [`output`] buffers replies.
//!
//! # Layers
//!
//! 1. `frame`, `output`: checked messages in, replies out
//! 2. `input`, `startup`: messages as they are received; packets before the session

pub(crate) mod frame;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod startup;
