//! The catalog: table descriptors stored in the system region, the node's lease on them, and schema changes.
//!
//! Records live under the prefix `m` ([`keys`]). [`descriptor`] encodes a table's record. No statement reads them: the
//! node holds a lease on the newest catalog version and plans from memory ([`lease`]). A cached plan is valid as long
//! as the tables that it names are the same, whatever else changes.
//!
//! A schema change is a transaction that writes descriptors, and *steps* around it ([`steps`]): each step raises the
//! catalog version and waits until every node has adopted it or has lost its lease. A change that takes data away
//! closes its tables first: nodes start no statement on them, and wait for their transactions that write to them
//! ([`uses`]) or abort them. So no transaction that overlaps DROP or TRUNCATE, on any node, is acknowledged and lost.
//!
//! Rows of dropped storages are removed later ([`reclaim`]).
//!
//! # Layers
//!
//! 1. `keys`, `planted`: keys and small records, deliberate bugs
//! 2. `tagged`: records of fields
//! 3. `comments`, `descriptor`, `object_record`, `statistics`: records of comments, of tables, of other objects, and of
//!    what ANALYZE has found
//! 4. `snapshot`: the objects of a version
//! 5. `control`, `fixed_names`, `user_types`, `uses`, `versions`: leases and schema changes under way, ids in stored
//!    texts, types of users, the live transactions of the node, catalogs of the past
//! 6. `lease`, `reclaim`, `violations`: the node's lease, removal of dropped rows, errors of constraints
//! 7. `steps`, `temporary`: the steps of schema changes; the temporary relations of a session
//! 8. `ddl`, `gc_ttl`, `past`: what a schema change writes; how long old versions are kept; begins reads in the past
//! 9. `comment_changes`, `leftovers`: changes of comments; temporary relations of sessions that have ended
//! 10. `keeper`: keeps the lease, and sweeps

mod comment_changes;
mod comments;
mod control;
pub(crate) mod ddl;
pub mod descriptor;
mod fixed_names;
mod gc_ttl;
mod keeper;
pub mod keys;
mod lease;
mod leftovers;
mod object_record;
mod past;
mod planted;
pub mod reclaim;
mod snapshot;
pub(crate) mod statistics;
mod steps;
mod tagged;
mod temporary;
mod user_types;
mod uses;
mod versions;
mod violations;

pub(crate) use comments::Part;
pub(crate) use ddl::SchemaSavepoint;
pub use ddl::{NewTable, SchemaChange};
pub(crate) use fixed_names::{FIXED_RELATION, FIXED_TYPE, fixed_id, shown_text};
pub(crate) use gc_ttl::GC_TTL_MIN;
pub use gc_ttl::{GC_TTL_DEFAULT, gc_ttl};
pub(crate) use keys::FIRST_ID;
pub use keys::NodeId;
pub use lease::{CatalogConfig, CatalogPeers, NodeCatalog};
pub use snapshot::Catalog;
pub(crate) use snapshot::{Access, OWN_NAME, Relation, Sight, index_names};
pub(crate) use statistics::{ColumnStatistics, CommonValue, NodeStatistics, TableStatistics};
pub(crate) use steps::{closed_too_long, doomed};
pub use temporary::AtCommit;
pub(crate) use temporary::SessionSchemas;
pub(crate) use user_types::NamedType;
pub(crate) use uses::{Lease, LiveTransaction, SessionSlot};
pub(crate) use violations::{constraint_error, duplicate_entry, duplicate_key, duplicate_rows, row_name, schema_name};

#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod lease_tests;
#[cfg(test)]
mod tests;
