//! Results of sub-queries that expressions use.
//!
//! A sub-query reads, and evaluation does not wait. So an evaluation that needs a result which is not there notes the
//! sub-query and fails; the executor runs it, notes its rows, and evaluates again. A result is kept for the statement,
//! with the values of the outer row that it depends on: rows that have these values in common share it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::SqlError;
use pgtypes::Datum;
use pgtypes::codec::key::{self, KeyOrder};
use pgtypes::codec::stored;
use pgtypes::functions::check_fields;

/// Bytes of results that are kept. More make it forget all.
const KEPT: usize = 32 << 20;

/// The rows of a sub-query.
#[derive(Debug, Default)]
pub(crate) struct SubqueryRows {
    pub(crate) rows: Vec<Vec<Datum>>,
    /// The values of a sub-query of one column that is compared by equality, but NULL.
    pub(crate) set: Option<HashSet<Vec<u8>>>,
    /// Whether a value is NULL.
    pub(crate) has_null: bool,
}

impl SubqueryRows {
    /// Rows of a sub-query. `is_set`: whether it has one column, which is looked up by equality.
    pub(crate) fn new(rows: Vec<Vec<Datum>>, is_set: bool) -> Result<SubqueryRows, SqlError> {
        let first = |row: &Vec<Datum>| row.first().cloned().unwrap_or_default();
        let has_null = rows.iter().any(|row| first(row).is_null());
        let keys = || rows.iter().filter_map(|row| value_key(&first(row)).transpose()).collect();
        let set = is_set.then(keys).transpose()?;
        Ok(SubqueryRows { rows, set, has_null })
    }

    fn memory(&self) -> usize {
        let rows: usize = self.rows.iter().flatten().map(Datum::memory).sum();
        rows + self.set.as_ref().map_or(0, |set| set.len() * 64)
    }
}

/// Bytes that are equal for equal values; `None` for NULL. 42883 for a row without equality.
pub(crate) fn value_key(value: &Datum) -> Result<Option<Vec<u8>>, SqlError> {
    check_fields(value, false)?;
    let mut out = Vec::new();
    Ok(key::put(value, &mut out).map(|()| out))
}

/// Appends bytes that are equal for identical values only: a sub-query may tell equal ones apart, as 1.0 and 1.00.
fn put_exact(value: &Datum, out: &mut Vec<u8>) {
    let loses = key::loses(value);
    out.push(u8::from(loses));
    key::put_ordered(value, KeyOrder::default(), out);
    match value {
        _ if !loses => {}
        Datum::Array(array) => array.elements().iter().for_each(|element| put_exact(element, out)),
        Datum::Record(record) => record.fields().iter().for_each(|(_, field)| put_exact(field, out)),
        value => {
            let mut form = Vec::new();
            stored::put(value, &mut form);
            out.extend_from_slice(&(form.len() as u64).to_be_bytes());
            out.append(&mut form);
        }
    }
}

/// Whether values are identical, each to the one at its place: `==` takes 1.0 for 1.00.
pub(crate) fn are_identical(left: &[Datum], right: &[Datum]) -> bool {
    let exact = |values: &[Datum]| {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| put_exact(value, &mut bytes));
        bytes
    };
    left.len() == right.len() && exact(left) == exact(right)
}

/// A sub-query that an evaluation waits for.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The place of its plan.
    pub(crate) plan: usize,
    /// The parameters of the statement, then the values of the outer row.
    pub(crate) frame: Vec<Datum>,
    key: Vec<u8>,
}

/// The results of a statement's sub-queries.
#[derive(Debug, Default)]
pub(crate) struct SubqueryLog {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    results: HashMap<(usize, Vec<u8>), Arc<SubqueryRows>>,
    bytes: usize,
    pending: Option<Pending>,
}

impl SubqueryLog {
    /// The rows of a sub-query for values of the outer row. Without them the evaluation fails.
    pub(crate) fn rows(&self, plan: usize, params: &[Datum], args: Vec<Datum>) -> Result<Arc<SubqueryRows>, SqlError> {
        let mut bytes = Vec::new();
        args.iter().for_each(|arg| put_exact(arg, &mut bytes));
        let mut state = self.state.lock();
        let place = (plan, bytes);
        if let Some(rows) = state.results.get(&place) {
            return Ok(Arc::clone(rows));
        }
        let frame = params.iter().cloned().chain(args).collect();
        state.pending = Some(Pending { plan, frame, key: place.1 });
        Err(SqlError::internal("a sub-query is evaluated where the executor does not expect it"))
    }

    /// The sub-query that the last evaluation has waited for.
    pub(crate) fn take_pending(&self) -> Option<Pending> {
        self.state.lock().pending.take()
    }

    /// Forgets the rows of some sub-queries: what these read has changed.
    pub(crate) fn forget(&self, plans: &Range<usize>) {
        let mut state = self.state.lock();
        let mut freed = 0;
        state.results.retain(|(plan, key), rows| {
            let is_kept = !plans.contains(plan);
            freed += if is_kept { 0 } else { rows.memory() + key.len() };
            is_kept
        });
        state.bytes = state.bytes.saturating_sub(freed);
    }

    /// Notes the rows of a sub-query.
    pub(crate) fn note(&self, pending: Pending, rows: SubqueryRows) {
        let mut state = self.state.lock();
        let bytes = rows.memory() + pending.key.len();
        if state.bytes + bytes > KEPT {
            state.results.clear();
            state.bytes = 0;
        }
        state.bytes += bytes;
        state.results.insert((pending.plan, pending.key), Arc::new(rows));
    }
}
