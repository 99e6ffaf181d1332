//! What a session does with its temporary tables when a transaction commits, and when it discards them.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::fault::Fault;
use super::rows::Formats;
use super::state::Session;
use super::statement::{Call, Query};
use crate::catalog::AtCommit;
use crate::error::SqlError;
use crate::protocol::output::Output;
use crate::table::quote_identifier;

/// The buffer of a statement that sends nothing.
const NO_BYTES: usize = 8_192;
/// Rows that are taken at a time.
const ROWS: usize = 512;

impl Session {
    /// Empties or drops the tables that say so, in the transaction that is about to commit.
    pub(crate) fn end_temporary(&mut self) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let is_due = self.temporary.has_at_commit() && !self.state.read_only();
            if !is_due || self.active.as_ref().is_none_or(|active| active.is_past()) {
                return Ok(());
            }
            let (catalog, _) = self.catalog()?;
            for (table, what) in self.temporary.at_commit(&catalog) {
                let name = quote_identifier(&table.name);
                self.run_aside(&match what {
                    AtCommit::Empty => format!("DELETE FROM pg_temp.{name}"),
                    AtCommit::Drop => format!("DROP TABLE pg_temp.{name} CASCADE"),
                })
                .await?;
            }
            Ok(())
        })
    }

    /// Drops all temporary relations.
    pub(crate) async fn discard_temporary(&mut self) -> Result<(), Fault> {
        let Some(catalog) = self.shown_catalog() else { return Ok(()) };
        match self.temporary.current(&catalog) {
            Some(_) => self.run_aside("DROP SCHEMA pg_temp CASCADE").await,
            None => Ok(()),
        }
    }

    /// Runs a statement of its own within the transaction. Its rows and notices are dropped.
    async fn run_aside(&mut self, text: &str) -> Result<(), Fault> {
        let query = Query::parse(text)?.ok_or_else(|| SqlError::internal("a statement without text"))?;
        let (query, types) = (Arc::new(query), self.no_types.clone());
        let bound = self.plan(&query, Some(&types), None).await?;
        let mut run = self.start(Call { query, bound, params: Vec::new(), formats: Formats::TEXT }, false).await?;
        let mut out = Output::new(Box::new(tokio::io::sink()), NO_BYTES);
        while self.next_rows(&mut run, ROWS, Some(&mut |_| Ok(())), &mut out).await? == ROWS {}
        Ok(())
    }
}
