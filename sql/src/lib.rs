//! The PostgreSQL front end: sessions, catalog, binder, plans, executor.
//!
//! [`server`] speaks the wire protocol and owns a session per connection. A statement is parsed ([`parse`]), bound
//! against the catalog ([`plan`]), executed over a transaction ([`exec`]), and its rows are encoded ([`types`]).
//!
//! # Layers
//!
//! A module imports from modules with a lower number only.
//!
//! 2. `lock_name`: the names of advisory locks
//! 3. `error`: [`error::SqlError`], and the mapping of transaction errors
//! 4. `clock`: the system's clocks and random numbers
//! 5. `metrics`: counters and histograms of the front end
//! 6. `coop`, `deep_stack`: yields and work on other threads; runs deep recursion on a large stack
//! 7. `lexer`: tokens; splits query strings
//! 8. `types`: SQL types and values, their text and binary forms
//! 9. `table`: descriptors of tables and columns
//! 10. `codec`: rows to keys and values
//! 11. `catalog`: stored descriptors, their cache, schema changes
//! 12. `advisory`: advisory locks
//! 13. `parse`: text to syntax trees
//! 14. `expr`: bound expressions and their evaluation
//! 15. `plan`: syntax trees to plans
//! 16. `exec`: runs plans over a transaction
//! 17. `protocol`: wire messages in, replies out
//! 18. `session`: transaction state, settings, prepared statements
//! 19. `server`: sockets, startup, connections

mod advisory;
pub mod catalog;
mod clock;
pub mod codec;
mod coop;
mod deep_stack;
pub mod error;
pub mod exec;
mod expr;
mod lexer;
pub mod lock_name;
mod metrics;
pub mod parse;
pub mod plan;
mod protocol;
pub mod server;
mod session;
pub mod table;
