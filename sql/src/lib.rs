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
//! 3. `sessions`: the sessions of the cluster and their locks, as a node sees them
//! 4. `clock`: the system's clocks and random numbers
//! 5. `metrics`: counters and histograms of the front end
//! 6. `coop`, `deep_stack`: yields and work on other threads; runs deep recursion on a large stack
//! 7. `lexer`: tokens; splits query strings
//! 8. `object`: descriptors of databases, schemas, views, sequences, types
//! 9. `table`: descriptors of tables and columns
//! 10. `codec`: rows to keys and values
//! 11. `catalog`: stored descriptors, their cache, schema changes
//! 12. `advisory`, `sequence`: advisory locks; the values of sequences
//! 13. `parse`: text to syntax trees
//! 14. `copy`, `system`: COPY's statement, and its data as rows; the system catalog
//! 15. `expr`: bound expressions and their evaluation
//! 16. `plan`: syntax trees to plans
//! 17. `exec`: runs plans over a transaction
//! 18. `protocol`: wire messages in, replies out
//! 19. `session`: transaction state, settings, prepared statements
//! 20. `server`: sockets, startup, connections

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
pub mod sessions;
mod system;
pub mod table;
