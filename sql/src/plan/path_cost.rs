//! What a path to a table costs, by the rows that it reads. Pure.
//!
//! The unit is a row of a scan: read, decoded and passed on. The other costs are in proportion, as measured on one
//! node; between nodes a request costs more. They need not be exact: paths whose costs are about the same serve about
//! equally well.

use super::index_path::Wanted;

/// A request for a page of rows.
const REQUEST: f64 = 100.0;
/// A get of one row.
const POINT: f64 = 20.0;
/// Rows of a page.
const PAGE: f64 = 1024.0;
/// An entry of an index: smaller than a row.
const ENTRY: f64 = 0.8;
/// A row that is fetched by its key for an entry of an index.
const FETCHED: f64 = 4.0;
/// A row that is sorted, for each time that the rows can be halved.
const SORTED: f64 = 0.2;
/// The share of the rows that a LIMIT takes whose value is not known.
const LIMITED: f64 = 0.1;
/// Tables count as if they had so many rows at least: they grow after they were analyzed.
const LEAST_ROWS: f64 = 1000.0;

/// What is expected of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// The rows that satisfy all conditions.
    pub(super) rows: f64,
    pub(super) cost: f64,
}

/// What a path reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathRead {
    /// The rows or entries.
    pub(super) rows: f64,
    /// The parts of the key space that they are in.
    pub(super) parts: f64,
    /// Whether they are entries of an index.
    pub(super) is_index: bool,
    /// Whether a row is fetched for each.
    pub(super) fetches: bool,
    /// Whether they come in the order that is wanted.
    pub(super) gives_order: bool,
}

/// The estimate of a path. `table_rows`: those of the table; `rows`: those that satisfy all conditions.
pub(super) fn estimate(table_rows: f64, rows: f64, read: &PathRead, wanted: &Wanted) -> Estimate {
    let scale = (LEAST_ROWS / table_rows.max(1.0)).max(1.0);
    let sorts = !wanted.order.is_empty() && !read.gives_order;
    let stops = match wanted.limit {
        _ if !wanted.has_limit || sorts => 1.0,
        Some(limit) => (limit / (rows * scale).max(1.0)).min(1.0),
        None => LIMITED,
    };
    let read_rows = (read.rows * scale * stops).max(1.0);
    let each = match (read.is_index, read.fetches) {
        (false, _) => 1.0,
        (true, false) => ENTRY,
        (true, true) => ENTRY + FETCHED,
    };
    let pages = (read_rows / PAGE).max(1.0).max(read.parts) * if read.fetches { 2.0 } else { 1.0 };
    let sort = if sorts { SORTED * rows * scale * (rows * scale).max(2.0).log2() } else { 0.0 };
    Estimate { rows, cost: REQUEST * pages + each * read_rows + sort }
}

/// The estimate of gets by keys.
pub(super) fn of_points(keys: usize) -> Estimate {
    let keys = keys as f64;
    Estimate { rows: keys, cost: POINT * keys }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::plan::index_path::OrderBy;

    fn cost(rows: f64, read: f64, is_index: bool, wanted: &Wanted) -> f64 {
        let read = PathRead { rows: read, parts: 1.0, is_index, fetches: is_index, gives_order: is_index };
        estimate(rows, read.rows, &read, wanted).cost
    }

    #[test]
    fn an_index_serves_few_rows_and_a_scan_many() {
        let any = Wanted::default();
        for rows in [10.0, 1000.0, 1e6] {
            assert!(cost(rows, rows * 0.01, true, &any) < cost(rows, rows, false, &any), "{rows}");
            assert!(cost(rows, rows * 0.5, true, &any) > cost(rows, rows, false, &any), "{rows}");
        }
    }

    #[test]
    fn an_order_saves_a_sort_and_with_a_limit_most_of_the_rows() {
        let by_first = vec![OrderBy { expr: Expr::Column(0), descending: false, nulls_first: false }];
        let ordered = Wanted { order: by_first, ..Wanted::default() };
        let limited = Wanted { has_limit: true, limit: Some(10.0), ..ordered.clone() };
        assert!(cost(1e5, 1e5, true, &ordered) > cost(1e5, 1e5, false, &ordered), "a sort is cheaper than look-ups");
        assert!(cost(1e5, 1e5, true, &limited) < cost(1e5, 1e5, false, &limited) / 100.0);
    }
}
