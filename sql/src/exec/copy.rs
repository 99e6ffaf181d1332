//! COPY FROM: the client's bytes to rows of the table.
//!
//! A row is completed, with its default values and its checks, when its bytes have come. Complete rows wait until there
//! are enough to be stored together. So the memory of a statement is that of one batch and of the row that is being
//! received, apart from the transaction's own writes. Every error names the line of the data.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kv::Key;

use super::changes::rehearse;
use super::constraints::{check_row, complete};
use super::context::ExecContext;
use super::reference_queue::ReferenceQueue;
use super::references;
use super::rows::{Row, empty_row, row_bytes};
use super::writer::{RowWriter, WriteError};
use crate::coop::Turn;
use crate::copy::CopyReader;
use crate::error::{SqlError, SqlState};
use crate::expr::eval::{check_domain, eval, qualifies};
use crate::plan::{Body, CopyFromPlan, Plan};
use pgtypes::cast::modify;
use pgtypes::{Datum, Format};

/// Rows, and their bytes, that are stored together.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: usize = 1 << 20;

/// Limit of the bytes of one row of the data.
const ROW_BYTES: usize = 64 << 20;

/// Bytes that are looked at in one unit of [`Turn`].
const BYTES_IN_UNIT: usize = 100;

/// The work of taking any bytes, in units of [`Turn`]: a client may send each row, or each byte, in a message.
const SLICE_UNITS: usize = 10;

/// Bytes that are looked at before other tasks of the thread run.
const SLICE_BYTES: usize = 64 << 10;

/// A COPY FROM under execution.
pub(crate) struct CopyIn {
    plan: Arc<Plan>,
    reader: CopyReader,
    format: Format,
    /// Complete rows that are not stored yet, with their lines.
    waiting: Vec<Row>,
    lines: Vec<u64>,
    waiting_bytes: usize,
    stored: u64,
    /// Whether all rows are stored: errors after that are of no line.
    is_stored: bool,
    /// The lines of unique keys, if the commit finds those that exist.
    keys: KeyLines,
    /// What foreign keys ask for at the end.
    references: ReferenceQueue,
    turn: Turn,
}

/// The lines of the data of a COPY FROM that have given unique keys, by hashes of the keys: a commit that finds an
/// existing one names its line.
#[derive(Debug, Default)]
pub(crate) struct KeyLines {
    table: String,
    lines: Vec<(u64, u64)>,
}

impl KeyLines {
    /// The context of an error about a key; `None` if the data did not have it.
    pub(crate) fn context(&self, key: &Key) -> Option<String> {
        let hash = hash_of(key);
        let (_, line) = self.lines.iter().find(|(known, _)| *known == hash)?;
        Some(format!("COPY {}, line {line}", self.table))
    }
}

fn hash_of(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.as_bytes().hash(&mut hasher);
    hasher.finish()
}

impl CopyIn {
    /// Begins. `plan` is one of COPY FROM.
    pub(crate) fn new(plan: Arc<Plan>, reader: CopyReader, format: Format) -> CopyIn {
        let (waiting, lines) = (Vec::new(), Vec::new());
        let keys = KeyLines { table: table_name(&plan).to_owned(), lines: Vec::new() };
        CopyIn {
            plan,
            reader,
            format,
            waiting,
            lines,
            waiting_bytes: 0,
            stored: 0,
            is_stored: false,
            keys,
            references: ReferenceQueue::default(),
            turn: Turn::new(),
        }
    }

    /// Takes bytes of the client. They may end anywhere.
    pub(crate) async fn push(&mut self, bytes: &[u8], ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
        for slice in bytes.chunks(SLICE_BYTES) {
            self.reader.push(slice);
            self.take_rows(ctx).await?;
            if self.reader.waiting() > ROW_BYTES {
                let detail = format!("A row of the data has more than {} MiB.", ROW_BYTES >> 20);
                let error = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory").detail(detail);
                return Err(self.locate(error));
            }
            self.turn.spend(SLICE_UNITS + slice.len() / BYTES_IN_UNIT).await;
        }
        Ok(())
    }

    /// Ends: stores what is left. Returns the number of rows.
    pub(crate) async fn finish(&mut self, ctx: &mut ExecContext<'_>) -> Result<u64, SqlError> {
        self.reader.finish();
        self.take_rows(ctx).await?;
        self.store(ctx).await?;
        self.is_stored = true;
        if let Some(found) = &self.plan.references {
            std::mem::swap(&mut self.references, &mut ctx.references);
            Box::pin(references::settle(found, ctx)).await?;
        }
        Ok(self.stored)
    }

    /// Takes the lines of the unique keys that the commit will check.
    pub(crate) fn take_key_lines(&mut self) -> KeyLines {
        std::mem::take(&mut self.keys)
    }

    /// An error that comes from outside, with its place in the data.
    pub(crate) fn interrupted(&mut self, error: SqlError) -> SqlError {
        if self.is_stored {
            return error;
        }
        // It waits for the next row.
        let _ = self.reader.next();
        self.locate(error)
    }

    fn locate(&self, error: SqlError) -> SqlError {
        self.locate_at(error, self.reader.place(None))
    }

    fn locate_at(&self, error: SqlError, place: Option<String>) -> SqlError {
        error.context(|| place.map(|place| format!("COPY {}, {place}", table_name(&self.plan))))
    }

    /// Completes the rows whose bytes are there.
    async fn take_rows(&mut self, ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
        let plan = Arc::clone(&self.plan);
        let Body::CopyFrom(body) = &plan.body else { return Err(SqlError::internal("no plan of COPY FROM")) };
        let row_units = plan.cost.row + 2 * body.write.table.columns.len();
        loop {
            let given =
                self.next_row(body, ctx).map_err(|(error, column)| self.locate_at(error, self.reader.place(column)))?;
            let Some(row) = given else { return Ok(()) };
            match completed(body, row, ctx).await {
                Ok(Some(row)) => {
                    self.waiting_bytes += row_bytes(&row);
                    self.waiting.push(row);
                    self.lines.push(self.reader.line());
                }
                Ok(None) => {}
                Err(error) => return Err(self.locate_at(error, self.reader.place(None))),
            }
            if self.waiting.len() >= BATCH_ROWS || self.waiting_bytes >= BATCH_BYTES {
                self.store(ctx).await?;
            }
            self.turn.spend(row_units).await;
        }
    }

    /// The next row, without its default values. An error names the column of its value.
    fn next_row(
        &mut self,
        body: &CopyFromPlan,
        ctx: &ExecContext<'_>,
    ) -> Result<Option<Row>, (SqlError, Option<usize>)> {
        let of_row = |error: SqlError| (error, None);
        let Some(fields) = self.reader.next().map_err(of_row)? else { return Ok(None) };
        let table = &*body.write.table;
        let mut row = empty_row(table);
        for (at, (field, place)) in fields.iter().zip(&body.columns).enumerate() {
            let (Some(bytes), Some(column)) = (field, table.columns.get(*place)) else { continue };
            let value = Datum::decode(column.ty, self.format, bytes, &ctx.io);
            let fitted = value.and_then(|value| modify(value, column.ty, false));
            row[*place] = fitted.map_err(|error| (error.into(), Some(at)))?;
        }
        for (place, check) in &body.write.domains {
            if let Some(at) = body.columns.iter().position(|copied| copied == place) {
                check_domain(check, &row[*place], &ctx.env(&[])).map_err(|error| (error, Some(at)))?;
            }
        }
        Ok(Some(row))
    }

    /// Stores the rows that wait.
    async fn store(&mut self, ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
        let Body::CopyFrom(body) = &self.plan.body else { return Err(SqlError::internal("no plan of COPY FROM")) };
        let rows = std::mem::take(&mut self.waiting);
        let lines = std::mem::take(&mut self.lines);
        self.waiting_bytes = 0;
        self.stored += rows.len() as u64;
        std::mem::swap(&mut self.references, &mut ctx.references);
        ctx.references.begin(&self.plan);
        let found = &mut self.keys.lines;
        let note = |row: usize, key: &Key| found.extend(lines.get(row).map(|line| (hash_of(key), *line)));
        let mut writer = RowWriter::new(&body.write, ctx);
        let written = match ctx.locks_rows {
            true => writer.insert_rows(rows, ctx).await,
            false => writer.insert_noting(rows, note, ctx).await,
        };
        std::mem::swap(&mut self.references, &mut ctx.references);
        match written {
            Ok(_) => Ok(()),
            Err(WriteError { error, row }) => {
                let line = row.and_then(|row| lines.get(row)).or(lines.last());
                Err(self.locate_at(error, line.map(|line| format!("line {line}"))))
            }
        }
    }
}

/// The row with its default values; `None` if WHERE leaves it out.
async fn completed(body: &CopyFromPlan, mut row: Row, ctx: &mut ExecContext<'_>) -> Result<Option<Row>, SqlError> {
    rehearse(body.defaults.iter().map(|(_, default)| default), &Row::new(), ctx, &[]).await?;
    for (place, default) in &body.defaults {
        row[*place] = eval(default, &[], &ctx.env(&[]))?.into_owned();
    }
    if let Some(filter) = &body.filter {
        rehearse([filter], &row, ctx, &[]).await?;
        if !qualifies(filter, &row, &ctx.env(&[]))? {
            return Ok(None);
        }
    }
    let env = ctx.env(&[]);
    complete(&body.write, &mut row, &env)?;
    check_row(&body.write, &row, &env)?;
    Ok(Some(row))
}

fn table_name(plan: &Plan) -> &str {
    match &plan.body {
        Body::CopyFrom(body) => &body.write.table.name,
        _ => "",
    }
}
