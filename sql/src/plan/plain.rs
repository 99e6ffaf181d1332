//! Queries for plain columns of a table's rows, as they are stored and in the order of the access path. The executor
//! writes such rows to the client without building them in between.

use super::access::{AccessPath, PLAIN_COLUMNS, PlainOutput};
use super::node::Body;
use super::rel::Source;
use crate::expr::Expr;

/// The output of a statement, if it is such a query.
pub(super) fn plain_output(body: &Body) -> Option<PlainOutput> {
    let Body::Select(select) = body else { return None };
    let Source::Table(access) = &select.source else { return None };
    let is_plain = !matches!(&access.path, AccessPath::Index(scan) if scan.covers)
        && select.filter.is_none()
        && select.aggregation.is_none()
        && !select.distinct
        && select.distinct_on.is_empty()
        && select.visible == select.output.len()
        && select.output.len() <= PLAIN_COLUMNS
        && select.sort.is_empty()
        && select.limit.is_none()
        && select.offset.is_none()
        && select.lock.is_none();
    if !is_plain {
        return None;
    }
    let mut places = vec![None; access.table.columns.len()];
    for (place, expr) in select.output.iter().enumerate() {
        let Expr::Column(at) = expr else { return None };
        if places.get_mut(*at)?.replace(place).is_some() {
            return None;
        }
    }
    let reads_key = access.table.primary_key.iter().any(|at| places.get(*at).is_some_and(Option::is_some));
    Some(PlainOutput { places, reads_key, width: select.output.len() })
}
