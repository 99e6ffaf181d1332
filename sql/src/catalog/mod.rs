//! The catalog: table descriptors stored in the system region, and the version that validates cached plans.
//!
//! Records live under the prefix `m` ([`keys`]). [`descriptor`] encodes a table's record. A schema change is an
//! ordinary transaction that also raises the version record ([`ddl`]): two changes conflict, and a version names one
//! state of the catalog. A transaction reads the version at its snapshot and takes the rest from the node's
//! [`CatalogCache`], or loads it at that snapshot ([`cache`]).
//!
//! A transaction may write to a table while another one drops or truncates it. Its rows then lie under a storage id
//! that is never used again, and are removed with that storage ([`reclaim`]). The session refuses such a commit with
//! 40001 if its node knows of the other transaction ([`CatalogCache::was_dropped_since`]). A commit at the same moment,
//! on a node that has not heard of it, succeeds. To rule that out, every write would have to leave a mark that the
//! schema change meets. A check that a fence key does not exist leaves none, and its exclusive latch would serialise
//! the writers of a table. Schema changes that wait for all nodes will close the gap. CREATE has none: the table does
//! not exist before the commit.
//!
//! # Layers
//!
//! 1. `keys`: keys and small records
//! 2. `descriptor`, `reclaim`, `snapshot`: table records, removal of dropped rows, the tables of a version
//! 3. `cache`: catalogs by version
//! 4. `ddl`: schema changes

pub mod cache;
pub mod ddl;
pub mod descriptor;
pub mod keys;
pub mod reclaim;
mod snapshot;

pub use cache::CatalogCache;
pub use keys::PUBLIC;
pub use snapshot::Catalog;
pub(crate) use snapshot::{constraint_error, duplicate_key};

#[cfg(test)]
mod tests;
