//! Statistics of tables: what ANALYZE has found, for the choice of paths and for `pg_stats`.
//!
//! They are hints: no result depends on them. ANALYZE writes a record for each table, in a transaction of its own, and
//! raises a counter. So it is no schema change, and nobody waits for it. Each node keeps all records in memory and
//! looks at the counter every few seconds ([`NodeStatistics::refresh`]); the node that ran ANALYZE at once.
//!
//! # Layers
//!
//! 1. `record`: the record of a table
//! 2. `node`: what a node knows

mod node;
mod record;

pub(crate) use node::NodeStatistics;
pub(crate) use record::{ColumnStatistics, CommonValue, TableStatistics};
