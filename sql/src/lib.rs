//! The PostgreSQL front end: sessions, catalog, binder, plans, executor.
//!
//! [`server`] speaks the wire protocol and owns a [`session`] per connection; a statement is parsed ([`parse`]),
//! bound against the catalog ([`plan`]), executed over a transaction ([`exec`]), and its rows are encoded ([`types`]).

pub mod catalog;
pub mod codec;
pub mod error;
pub mod exec;
mod lexer;
pub mod parse;
pub mod plan;
mod roomy;
pub mod server;
pub mod session;
mod sqlstate;
pub mod types;
