//! ANALYZE: reads all rows of a table, in pages, at the snapshot of its transaction, and keeps what [`super::sample`]
//! makes of them.
//!
//! The statistics are written in a transaction of their own, so that no other statement conflicts with it, and a
//! rollback does not take them back. Those of a table that the transaction itself has created are part of it.

use std::sync::Arc;

use super::context::ExecContext;
use super::cursor::Cursor;
use super::sample::Sample;
use crate::catalog::{Catalog, TableStatistics, keys};
use crate::coop::on_other_thread;
use crate::error::{SqlError, storage_error};
use crate::plan::{AnalyzeTarget, Source, TableAccess};
use crate::table::Table;
use pgtypes::Datum;
use pgtypes::functions::has_order;

/// Rows per page.
const PAGE_ROWS: u32 = 1024;
/// The work for a column of a row, in units of [`crate::coop::Turn`].
const COLUMN_UNITS: usize = 4;

/// Analyzes tables; `None`: all of the database.
pub(super) async fn run(
    targets: Option<&[AnalyzeTarget]>,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<(), SqlError> {
    let catalog = ctx.session.system().map(|session| Arc::clone(session.catalog()));
    let catalog = catalog.ok_or_else(|| SqlError::internal("ANALYZE without a session"))?;
    let all: Vec<AnalyzeTarget>;
    let targets = match targets {
        Some(targets) => targets,
        None => {
            let whole = |table: Arc<Table>| AnalyzeTarget { columns: (0..table.columns.len()).collect(), table };
            all = catalog.tables().into_iter().map(whole).collect();
            &all
        }
    };
    for target in targets {
        let found = analyze(target, &catalog, ctx, params).await?;
        let id = target.table.id;
        if !catalog.statistics().save(id, &found).await? && !ctx.txn.is_unwritten() {
            ctx.txn.put(keys::statistics(id), found.encode().into()).map_err(storage_error)?;
        }
    }
    Ok(())
}

/// Reads a table. Returns its new statistics; of columns that are not analyzed, the old ones.
async fn analyze(
    target: &AnalyzeTarget,
    catalog: &Catalog,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<TableStatistics, SqlError> {
    let table = &target.table;
    let columns = target.columns.iter().filter_map(|at| table.columns.get(*at));
    let mut sample = Sample::of(columns.map(|column| (column.clone(), has_order(column.ty))));
    let source = Source::Table(TableAccess::of_columns(Arc::clone(table), &target.columns));
    let units = 2 + COLUMN_UNITS * target.columns.len();
    let mut cursor = Cursor::new(&source, PAGE_ROWS, units, &ctx.env(params)).await?;
    while let Some(page) = cursor.next(&source, ctx.txn, &ctx.env(params), PAGE_ROWS).await? {
        for (_, mut row) in page {
            let value = |at: &usize| row.get_mut(*at).map(std::mem::take).unwrap_or_default();
            sample.add(target.columns.iter().map(value).collect());
        }
    }
    let rows = sample.rows();
    let mut columns = on_other_thread(move || sample.finish()).await?;
    if let Some(known) = catalog.statistics().get(table.id) {
        let is_new = |id| columns.iter().any(|new| new.column == id);
        let kept: Vec<_> = known.columns.iter().filter(|known| !is_new(known.column)).cloned().collect();
        columns.extend(kept.into_iter().filter(|kept| table.columns.iter().any(|column| column.id == kept.column)));
    }
    Ok(TableStatistics { storage: table.storage, rows, columns })
}
