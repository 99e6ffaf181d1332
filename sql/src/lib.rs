//! The PostgreSQL front end: sessions, catalog, binder, plans, executor.
//!
//! [`server`] speaks the wire protocol and owns a session per connection. A statement is parsed ([`parse`]), bound
//! against the catalog ([`plan`]), executed over a transaction ([`exec`]), and its rows are encoded ([`pgtypes`]).
//!
//! # Layers
//!
//! A module imports from modules with a lower number only.
//!
//! 1. `lock_name`: the names of advisory locks
//! 2. `error`: [`error::SqlError`], and the mapping of transaction errors
//! 3. `clock`: the system's clocks and random numbers
//! 4. `metrics`: counters and histograms of the front end
//! 5. `coop`, `deep_stack`: yields and work on other threads; runs deep recursion on a large stack
//! 6. `lexer`: tokens; splits query strings
//! 7. `object`: descriptors of databases, schemas, views, sequences
//! 8. `table`: descriptors of tables and columns
//! 9. `codec`: rows to keys and values
//! 10. `catalog`: stored descriptors, their cache, schema changes
//! 11. `advisory`, `sequence`: advisory locks; the values of sequences
//! 12. `parse`: text to syntax trees
//! 13. `copy`, `system`: COPY's statement, and its data as rows; the system catalog
//! 14. `expr`: bound expressions and their evaluation
//! 15. `plan`: syntax trees to plans
//! 16. `exec`: runs plans over a transaction
//! 17. `protocol`: wire messages in, replies out
//! 18. `session`: transaction state, settings, prepared statements
//! 19. `server`: sockets, startup, connections

// The future of a statement nests deeper than the default depth of the check that it may move between threads.
#![recursion_limit = "256"]

mod advisory;
pub mod catalog;
mod clock;
pub mod codec;
mod coop;
mod copy;
mod deep_stack;
pub mod error;
pub mod exec;
mod expr;
mod lexer;
pub mod lock_name;
mod metrics;
pub mod object;
pub mod parse;
pub mod plan;
mod protocol;
mod sequence;
pub mod server;
mod session;
mod system;
pub mod table;
