//! Reads the rows of a source in pages.
//!
//! The bounds of a table access are computed when the cursor is created. Each call fetches one page. Pages start small,
//! because a LIMIT may be satisfied early, and grow. The cursor yields while it computes many keys and reads many rows.

use bytes::Bytes;
use kv::Key;
use kv::client::ScanRange;
use txn::Transaction;

use super::index_cursor::IndexCursor;
use super::key_values::keys_of;
use super::rows::{Row, empty_row};
use crate::codec::{CodecError, key, row};
use crate::coop::{MANY, Turn, on_other_thread};
use crate::error::{SqlError, storage_error};
use crate::expr::eval::{Env, eval};
use crate::expr::{Expr, system_env};
use crate::plan::{AccessPath, KeyBound, Source, TableAccess};
use crate::system::{self, Rows};
use crate::table::Table;
use pgtypes::Datum;

/// Limit of rows per page.
const MAX_PAGE: u32 = 1024;
/// Keys per batch of point gets.
const POINTS_PAGE: usize = 256;

/// The work of a page of a scan, however few rows it has, in units of [`Turn`].
const PAGE_UNITS: usize = 500;
/// The work of a point get.
const POINT_UNITS: usize = 20;
/// Bytes of a stored row that are one unit of work.
const BYTES_PER_UNIT: usize = 256;

/// A row, with its key if it comes from a table.
pub(crate) type KeyedRow = (Option<Key>, Row);

/// A position in a source.
pub(crate) struct Cursor {
    state: State,
    page: u32,
    /// Work for a row.
    row_units: usize,
    turn: Turn,
}

enum State {
    /// Rows computed from the plan. Holds how many were returned.
    Fixed(usize),
    /// Keys to get, in order. Those before `next` were read.
    Points { keys: Vec<Key>, next: usize },
    /// The rest of a range.
    Scan(ScanRange),
    /// The rest of a scan of an index.
    Index(Box<IndexCursor>),
    /// Rows of the system catalog that are still to be computed.
    System(Rows),
    /// The end.
    AtEnd,
}

impl Cursor {
    /// A cursor at the start of a source. `first_page`: the number of rows likely to be needed. `row_units`: the work
    /// for a row, in units of [`Turn`].
    pub(crate) async fn new(
        source: &Source,
        first_page: u32,
        row_units: usize,
        env: &Env<'_>,
    ) -> Result<Cursor, SqlError> {
        let mut turn = Turn::new();
        let state = match source {
            Source::Single | Source::Values(_) => State::Fixed(0),
            Source::Rel(_) => State::AtEnd,
            Source::Table(access) => start(access, env, &mut turn).await?,
            Source::System(relation) => State::System(system::rows(relation, &system_env(env.session, &env.io)?)?),
        };
        Ok(Cursor { state, page: first_page.clamp(1, MAX_PAGE), row_units, turn })
    }

    /// Takes the next keys of a source that is read by its keys, at most a page; `None` for other sources. The caller
    /// reads them.
    pub(crate) fn take_points(&mut self) -> Option<Vec<Key>> {
        let State::Points { keys, next } = &mut self.state else { return None };
        let chunk = keys.get(*next..keys.len().min(*next + POINTS_PAGE)).unwrap_or_default().to_vec();
        *next += chunk.len();
        Some(chunk)
    }

    /// Whether the source is at most one row, which is read by its key.
    pub(crate) fn is_of_one_point(&self) -> bool {
        matches!(&self.state, State::Points { keys, .. } if keys.len() <= 1)
    }

    /// The expressions of the next row, of a source of such rows.
    pub(crate) fn next_values<'s>(&self, source: &'s Source) -> Option<&'s [Expr]> {
        match (source, &self.state) {
            (Source::Values(rows), State::Fixed(given)) => rows.get(*given).map(Vec::as_slice),
            _ => None,
        }
    }

    /// The next page, possibly empty; `None` at the end. `wanted` bounds how many rows are computed ahead.
    pub(crate) async fn next(
        &mut self,
        source: &Source,
        txn: &Transaction,
        env: &Env<'_>,
        wanted: u32,
    ) -> Result<Option<Vec<KeyedRow>>, SqlError> {
        match source {
            Source::Single => self.fixed(&[Vec::new()], 1, env).await,
            Source::Values(rows) => self.fixed(rows, wanted.clamp(1, MAX_PAGE) as usize, env).await,
            Source::System(_) => Ok(self.computed(wanted.clamp(1, MAX_PAGE) as usize).await),
            Source::Table(access) => match self.pairs(txn).await? {
                Some(entries) if matches!(&access.path, AccessPath::Index(scan) if scan.covers) => {
                    self.decode_entries(access, entries).await.map(Some)
                }
                Some(pairs) => self.decode_all(access, pairs).await.map(Some),
                None => Ok(None),
            },
            Source::Rel(_) => Ok(None),
        }
    }

    /// The next rows of the system catalog.
    async fn computed(&mut self, chunk: usize) -> Option<Vec<KeyedRow>> {
        let State::System(source) = &mut self.state else { return None };
        let mut rows = Vec::new();
        while rows.len() < chunk
            && let Some(row) = source.next()
        {
            rows.push((None, row));
            self.turn.spend(self.row_units).await;
        }
        (!rows.is_empty()).then_some(rows)
    }

    async fn fixed(
        &mut self,
        source: &[Vec<Expr>],
        chunk: usize,
        env: &Env<'_>,
    ) -> Result<Option<Vec<KeyedRow>>, SqlError> {
        let State::Fixed(given) = &mut self.state else { return Ok(None) };
        let rest = source.get(*given..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let mut rows = Vec::with_capacity(chunk.min(rest.len()));
        for exprs in rest.iter().take(chunk) {
            let row = exprs.iter().map(|expr| Ok(eval(expr, &[], env)?.into_owned()));
            rows.push((None, row.collect::<Result<Row, SqlError>>()?));
            self.turn.spend(self.row_units).await;
        }
        *given += rows.len();
        Ok(Some(rows))
    }

    /// Decodes entries of an index that has all columns in use.
    async fn decode_entries(
        &mut self,
        access: &TableAccess,
        entries: Vec<(Key, Bytes)>,
    ) -> Result<Vec<KeyedRow>, SqlError> {
        let State::Index(cursor) = &self.state else { return Ok(Vec::new()) };
        let mut rows = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let mut row = empty_row(&access.table);
            let row_key = cursor.decode((&key, &value), &mut row)?;
            row.extend(key_column(access, &row_key));
            self.turn.spend(self.row_units + value.len() / BYTES_PER_UNIT).await;
            rows.push((Some(row_key), row));
        }
        Ok(rows)
    }

    async fn decode_all(&mut self, access: &TableAccess, pairs: Vec<(Key, Bytes)>) -> Result<Vec<KeyedRow>, SqlError> {
        let mut rows = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let mut row = decode(&access.table, &key, &value, &access.needed)?;
            row.extend(key_column(access, &key));
            self.turn.spend(self.row_units + value.len() / BYTES_PER_UNIT).await;
            rows.push((Some(key), row));
        }
        Ok(rows)
    }

    /// The next page of a table's stored rows, or of the entries of an index that has all columns in use; possibly
    /// empty. `None` at the end.
    pub(crate) async fn pairs(&mut self, txn: &Transaction) -> Result<Option<Vec<(Key, Bytes)>>, SqlError> {
        match &mut self.state {
            State::Points { keys, next } => {
                let chunk = &keys[*next..keys.len().min(*next + POINTS_PAGE)];
                let (found, looked_up) = match chunk {
                    [] => return Ok(None),
                    [only] => match txn.get(only).await.map_err(storage_error)? {
                        Some(value) => (vec![(only.clone(), value)], 1),
                        None => (Vec::new(), 1),
                    },
                    several => {
                        // A page of large values may hold only some of the keys.
                        let page = txn.batch_get_page(several).await.map_err(storage_error)?;
                        let before = |resume: &Key| several.partition_point(|key| key < resume);
                        (page.pairs, page.resume.as_ref().map_or(several.len(), before))
                    }
                };
                if looked_up == 0 {
                    return Err(CodecError::new("page of points", "does not advance").into());
                }
                self.turn.spend(looked_up * POINT_UNITS).await;
                *next += looked_up;
                Ok(Some(found))
            }
            State::Scan(range) => {
                let page = txn.scan(range, self.page).await.map_err(storage_error)?;
                // Reads of this node's own store never wait, so this loop has to yield. Cancel needs it too.
                self.turn.spend(PAGE_UNITS + page.pairs.len()).await;
                self.page = (self.page * 2).min(MAX_PAGE);
                match page.resume {
                    // A page that does not advance would loop forever.
                    Some(resume) if range.reverse && resume < range.end => range.end = resume,
                    Some(resume) if !range.reverse && resume > range.start => range.start = resume,
                    Some(_) => return Err(CodecError::new("page of a scan", "does not advance").into()),
                    None => self.state = State::AtEnd,
                }
                Ok(Some(page.pairs))
            }
            State::Index(cursor) => {
                let page = cursor.next(txn, self.page).await?;
                self.turn.spend(PAGE_UNITS + page.as_ref().map_or(0, Vec::len) * POINT_UNITS).await;
                self.page = (self.page * 2).min(MAX_PAGE);
                Ok(page)
            }
            State::Fixed(_) | State::System(_) | State::AtEnd => Ok(None),
        }
    }
}

/// The key of a row as its last column, where that is wanted.
fn key_column(access: &TableAccess, key: &Key) -> Option<Datum> {
    access.with_key.then(|| Datum::Bytes(key.as_bytes().into()))
}

/// Decodes the needed columns of a stored row. The others are NULL.
pub(crate) fn decode(table: &Table, key: &Key, value: &[u8], needed: &[bool]) -> Result<Row, CodecError> {
    let mut out = empty_row(table);
    if table.primary_key.iter().any(|at| needed.get(*at) == Some(&true)) {
        key::get_row_key(table, key, &mut out)?;
    }
    row::decode(table, value, needed, &mut out)?;
    Ok(out)
}

async fn start(access: &TableAccess, env: &Env<'_>, turn: &mut Turn) -> Result<State, SqlError> {
    let table = &access.table;
    match &access.path {
        AccessPath::Full => {
            let prefix = key::row_prefix(table.storage);
            let end = key::successor(&prefix);
            Ok(scan(prefix, end, access.reverse))
        }
        AccessPath::Points(points) => {
            let mut keys = Vec::with_capacity(points.len());
            for point in points {
                let prefix = key::row_prefix(table.storage);
                let put = |value: &Datum, _, out: &mut Vec<u8>| key::put(value, out).is_some();
                let found = keys_of(point.iter().map(Some), prefix, env, put)?;
                turn.spend(found.len() + point.len()).await;
                keys.extend(found.into_iter().map(Key::new));
            }
            let keys = if keys.len() > MANY { on_other_thread(|| in_order(keys)).await? } else { in_order(keys) };
            Ok(State::Points { keys, next: 0 })
        }
        AccessPath::Index(scan) => {
            Ok(State::Index(Box::new(IndexCursor::new((table, scan), access.reverse, env, turn).await?)))
        }
        AccessPath::Range { prefix, lower, upper } => {
            let mut bytes = key::row_prefix(table.storage);
            if !put_values(prefix, env, &mut bytes)? {
                return Ok(State::AtEnd);
            }
            let lower = tightest_bound(&bytes, lower, env, Side::Lower)?;
            let upper = tightest_bound(&bytes, upper, env, Side::Upper)?;
            match (lower, upper) {
                (Some(start), Some(end)) if start < end => Ok(scan(start, end, access.reverse)),
                _ => Ok(State::AtEnd),
            }
        }
    }
}

/// Sorted, distinct keys.
fn in_order(mut keys: Vec<Key>) -> Vec<Key> {
    if keys.len() > 1 {
        keys.sort_unstable();
        keys.dedup();
    }
    keys
}

fn scan(start: Vec<u8>, end: Vec<u8>, reverse: bool) -> State {
    State::Scan(ScanRange { start: Key::new(start), end: Key::new(end), reverse })
}

/// Appends the values of key columns. Returns false if one is NULL, which matches nothing.
fn put_values(values: &[Expr], env: &Env<'_>, out: &mut Vec<u8>) -> Result<bool, SqlError> {
    for value in values {
        if key::put(&*eval(value, &[], env)?, out).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An end of a range.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Lower,
    Upper,
}

/// The tightest byte bound of one side within `prefix`; `None` if a bound is NULL.
fn tightest_bound(prefix: &[u8], bounds: &[KeyBound], env: &Env<'_>, side: Side) -> Result<Option<Vec<u8>>, SqlError> {
    let mut best = if side == Side::Lower { prefix.to_vec() } else { key::successor(prefix) };
    for bound in bounds {
        let value = eval(&bound.value, &[], env)?;
        if matches!(&*value, Datum::Null) {
            return Ok(None);
        }
        let mut bytes = prefix.to_vec();
        if key::put(&value, &mut bytes).is_none() {
            return Ok(None);
        }
        // Keys with the bound's own value lie between its bytes and their successor.
        let behind = (side == Side::Lower) != bound.inclusive;
        let bytes = if behind { key::successor(&bytes) } else { bytes };
        let tighter = if side == Side::Lower { bytes > best } else { bytes < best };
        if tighter {
            best = bytes;
        }
    }
    Ok(Some(best))
}
