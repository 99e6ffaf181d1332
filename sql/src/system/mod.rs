//! The system catalog: `pg_catalog` and `information_schema` as virtual tables, and the functions over them.
//!
//! A relation is a descriptor ([`Relation`]) with the OID, the columns and the types that PostgreSQL 15 has. Its rows
//! are computed when they are read ([`mod@rows`]): from the static tables of [`pgtypes`], from the catalog of the
//! transaction, and from what the session shows of itself ([`SystemSession`]). The functions are rows of
//! [`pgtypes::functions`], computed by [`call`]. Nothing here waits, reads a clock or keeps state.
//!
//! OIDs are the same on all nodes. Those of tables are ids of the catalog; those of what the catalog does not number
//! are computed from them ([`objects`]).
//!
//! # Layers
//!
//! 1. `env`, `facts`: values for rows, and what they are computed from; facts of PostgreSQL's catalogs
//! 2. `producer`, `relations`: what a topic says about a relation; the descriptors
//! 3. `objects`: schemas, roles, indexes, OIDs of defaults
//! 4. `describe`, `pretty`: definitions as text; expressions without superfluous parentheses
//! 5. `names`: names of objects
//! 6. `builtin`, `tables`: types, functions, operators, casts; tables, columns, keys
//! 7. `activity`, `comments`, `constraints`, `information`, `sequences`, `statistics`: the server and its sessions;
//!    comments; indexes and constraints; `information_schema`; sequences; what ANALYZE has found
//! 8. `domains`: domains in `information_schema`
//! 9. `privileges`, `rows`: `has_table_privilege` and its kin; from a relation to its rows
//! 10. `functions`: the functions

mod activity;
mod builtin;
mod comments;
mod constraints;
mod describe;
mod domains;
mod env;
mod facts;
mod functions;
mod information;
mod names;
mod objects;
mod pretty;
mod privileges;
mod producer;
mod relations;
mod rows;
mod sequences;
mod statistics;
mod tables;

pub(crate) use env::{ClusterSource, CursorInfo, Rows, SettingInfo, StatementInfo, SystemEnv, SystemSession};
pub(crate) use functions::{call, set};
pub(crate) use names::{find_domain, find_object, show_object};
pub(crate) use relations::{PG_CATALOG, Relation, find, of_table};
pub(crate) use rows::{cluster_source, rows};

#[cfg(test)]
mod tests;
