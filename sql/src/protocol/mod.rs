//! The PostgreSQL wire protocol below the session: bytes from a client become checked messages, replies become bytes.
//!
//! [`frame`] checks and decodes the messages of an established connection, [`startup`] the packets before it.
//! [`output`] buffers replies.
//!
//! # Layers
//!
//! 1. `frame`, `output`: checked messages in, replies out
//! 2. `startup`: packets before the session

pub(crate) mod frame;
pub(crate) mod output;
pub(crate) mod startup;
