//! Execution of the session's own statements.

use tso::Timestamp;

use super::control::{Control, Discard, Modes};
use super::cursors::{Collected, Target};
use super::fault::Fault;
use super::interrupt::in_time;
use super::nested::Fetch;
use super::reads::{Moment, Resolved};
use super::rows::{Formats, put_row};
use super::settings;
use super::state::Session;
use super::statement::{Listing, listing_columns, unknown_cursor, unknown_statement};
use super::txn_state::{Block, BlockEnd, Outcome, check_isolation};
use crate::catalog::GC_TTL_MIN;
use crate::error::{SqlError, SqlState};
use crate::protocol::output::{Notice, Output};
use pgtypes::{Datum, DatumRef, NoNames};

/// The result of a session statement.
pub(crate) enum Reply {
    /// A command tag.
    Tag(&'static str),
    /// MOVE over so many rows.
    Moved(u64),
    /// Rows.
    Listing(Listing),
}

impl Reply {
    /// The command tag.
    pub(crate) fn tag(&self) -> String {
        match self {
            Reply::Tag(tag) => (*tag).to_owned(),
            Reply::Moved(count) => format!("MOVE {count}"),
            Reply::Listing(listing) => listing.tag(listing.rows.len()),
        }
    }
}

impl Session {
    /// Executes a statement. Outside of a block it runs in the implicit transaction that the caller has begun.
    pub(crate) async fn command(&mut self, control: &Control, out: &mut Output) -> Result<Reply, Fault> {
        if !control.ends_failure() {
            self.state.check_not_failed()?;
        }
        self.node.metrics.statement(control.kind());
        match control {
            Control::Begin { tag, modes, as_of } => {
                let at = self.as_of(as_of.as_ref(), *modes).await?;
                let nested = !self.savepoints.is_empty();
                let notice = self.state.begin(*modes, self.settings.defaults(), nested)?;
                self.send_notice_if_any(notice, out)?;
                at.into_iter().for_each(|at| self.state.set_as_of(at));
                Ok(Reply::Tag(tag))
            }
            Control::Commit { chain } => self.commit_block(*chain, out).await,
            Control::Rollback { chain } => {
                let ending = self.state.rollback(*chain)?;
                self.end_block(ending, *chain, out).await
            }
            Control::Savepoint(name) => {
                self.state.check_savepoints("SAVEPOINT")?;
                self.save(name)?;
                Ok(Reply::Tag("SAVEPOINT"))
            }
            Control::Release(name) => {
                self.state.check_savepoints("RELEASE SAVEPOINT")?;
                self.release(name)?;
                Ok(Reply::Tag("RELEASE"))
            }
            Control::RollbackTo(name) => {
                self.state.check_savepoints("ROLLBACK TO SAVEPOINT")?;
                self.rollback_to(name)?;
                if let Some(active) = &mut self.active {
                    active.txn.locks_released().await;
                }
                Ok(Reply::Tag("ROLLBACK"))
            }
            Control::Set { name, values, local } => self.set(name, values.as_deref(), *local, out).await,
            Control::SetTransaction { modes, as_of: None, session } => self.set_transaction(*modes, *session, out),
            Control::SetTransaction { modes, as_of, session: false } => {
                let in_block = self.state.block() == Block::Explicit;
                let at = if in_block { self.as_of(as_of.as_ref(), *modes).await? } else { None };
                let reply = self.set_transaction(*modes, false, out)?;
                at.into_iter().for_each(|at| self.state.set_as_of(at));
                Ok(reply)
            }
            Control::SetTransaction { session: true, .. } => Err(as_of_of_sessions().into()),
            Control::SetNoop(tag) => Ok(Reply::Tag(tag)),
            Control::SetConstraints(names) => self.set_constraints(names, out),
            Control::Reset(name) => self.reset(name.as_deref(), out).await,
            Control::Show(name) => {
                if name.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(settings::GC_TTL)) {
                    self.look_at_gc_ttl().await?;
                }
                self.show(control, name.as_deref())
            }
            Control::AlterSystem { name, values } => self.alter_system(name.as_deref(), values.as_deref()).await,
            Control::Discard(what) => Box::pin(self.discard(*what)).await,
            Control::Deallocate(name) => self.deallocate(name.as_deref()),
            Control::Close(name) => self.close_cursor(name.as_deref()),
            Control::Fetch(fetch) => Box::pin(self.fetch_reply(fetch, out)).await,
            Control::Checkpoint => Ok(Reply::Tag("CHECKPOINT")),
            Control::Unlisten => Ok(Reply::Tag("UNLISTEN")),
            Control::Unsupported(error) => Err((**error).clone().into()),
        }
    }

    /// COMMIT.
    async fn commit_block(&mut self, chain: bool, out: &mut Output) -> Result<Reply, Fault> {
        let held = if self.state.block() == Block::Failed { Ok(()) } else { Box::pin(self.before_commit(out)).await };
        let ending = self.state.commit(chain)?;
        if let Err(fault) = held {
            self.end_transaction(Outcome::Rollback).await?;
            return Err(fault);
        }
        self.end_block(ending, chain, out).await
    }

    /// What a transaction block does before it commits.
    async fn before_commit(&mut self, out: &mut Output) -> Result<(), Fault> {
        self.hold_cursors(out).await?;
        self.end_temporary().await
    }

    /// FETCH, with its rows in memory, or MOVE.
    async fn fetch_reply(&mut self, fetch: &Fetch, out: &mut Output) -> Result<Reply, Fault> {
        if !fetch.moves {
            return Ok(Reply::Listing(self.fetch_listing(fetch, out).await?));
        }
        let moved = self.fetch(fetch, Target::Memory(&mut Collected::default()), out).await?;
        Ok(Reply::Moved(moved))
    }

    async fn reset(&mut self, name: Option<&str>, out: &mut Output) -> Result<Reply, Fault> {
        match name {
            Some(name) => drop(self.set(name, None, false, out).await?),
            None => self.settings.reset_all(),
        }
        Ok(Reply::Tag("RESET"))
    }

    /// Sends up to `limit` rows (0: all). Returns the number of rows sent, and whether the listing is at its end.
    pub(crate) fn put_listing(
        &self,
        listing: &mut Listing,
        formats: &Formats,
        limit: usize,
        out: &mut Output,
    ) -> Result<(usize, bool), Fault> {
        let mut sent = 0;
        while limit == 0 || sent < limit {
            let Some(row) = listing.rows.next() else {
                return Ok((sent, true));
            };
            let row: Vec<DatumRef<'_>> = row.iter().map(Datum::borrow).collect();
            put_row(out.buffer(), &row, &listing.columns, formats, &self.settings.io(0, &NoNames))?;
            sent += 1;
        }
        Ok((sent, false))
    }

    fn send_notice_if_any(&self, notice: Option<Notice>, out: &mut Output) -> Result<(), Fault> {
        match notice {
            Some(notice) => self.send_notice(&notice, out),
            None => Ok(()),
        }
    }

    async fn end_block(&mut self, ending: BlockEnd, chain: bool, out: &mut Output) -> Result<Reply, Fault> {
        self.send_notice_if_any(ending.notice, out)?;
        self.end_transaction(ending.outcome).await?;
        if chain {
            self.state.restart();
            self.now = (self.node.wall_clock)();
        }
        Ok(Reply::Tag(ending.tag))
    }

    /// The snapshot that AS OF SYSTEM TIME of a transaction says. 0A000 for one that a replica would choose.
    async fn as_of(&self, as_of: Option<&Moment>, modes: Modes) -> Result<Option<Timestamp>, Fault> {
        let Some(moment) = as_of else { return Ok(None) };
        self.state.check_as_of(modes)?;
        let zone = self.settings.zone();
        let resolve = async {
            match moment.resolve(self.node.catalog.now().await?, zone)? {
                Resolved::At(at) => self.node.catalog.check_issued(at).await.map(|()| Some(at)),
                Resolved::NotBelow(_) => Err(bounded_transaction()),
            }
        };
        let resolve = in_time(Some(self.settings.reads().wait), resolve);
        Ok(Box::pin(self.interrupt.guard(self.deadline, resolve)).await?)
    }

    async fn set(
        &mut self,
        name: &str,
        values: Option<&[String]>,
        local: bool,
        out: &mut Output,
    ) -> Result<Reply, Fault> {
        // The statements of a string are one transaction.
        if local && self.state.block() == Block::Implicit && !self.in_string {
            let message = "SET LOCAL can only be used in transaction blocks";
            self.send_notice(&Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, message), out)?;
        }
        if let Some(modes) = settings::transaction_modes(name, values)? {
            if values.is_none() {
                self.warn_of_reset(name, out)?;
            }
            if self.state.block() == Block::Explicit {
                self.state.set_modes(modes, !self.savepoints.is_empty())?;
            } else {
                check_isolation(modes.isolation)?;
            }
        } else {
            let token = values.filter(|_| name.eq_ignore_ascii_case(settings::SESSION_TOKEN));
            if let Some(values) = token {
                let check = self.node.catalog.check_issued(settings::token(values)?);
                let check = in_time(Some(self.settings.reads().wait), check);
                Box::pin(self.interrupt.guard(self.deadline, check)).await?;
            }
            self.settings.set(name, values, local)?;
            if token.is_some() {
                self.settings.live.confirm();
            }
        }
        Ok(Reply::Tag("SET"))
    }

    /// The warning of a RESET of the isolation level that has no effect.
    fn warn_of_reset(&self, name: &str, out: &mut Output) -> Result<(), Fault> {
        if self.state.block() == Block::Explicit || !name.eq_ignore_ascii_case("transaction_isolation") {
            return Ok(());
        }
        let message = "RESET TRANSACTION can only be used in transaction blocks";
        self.send_notice(&Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, message), out)
    }

    fn set_transaction(&mut self, modes: Modes, session: bool, out: &mut Output) -> Result<Reply, Fault> {
        if !session {
            let notice = self.state.set_modes(modes, !self.savepoints.is_empty())?;
            self.send_notice_if_any(notice, out)?;
            return Ok(Reply::Tag("SET"));
        }
        check_isolation(modes.isolation)?;
        if let Some(isolation) = modes.isolation {
            let level = vec![isolation.name().to_owned()];
            self.settings.set("default_transaction_isolation", Some(&level), false)?;
        }
        let on_off = |flag: bool| vec![settings::on_off(flag).to_owned()];
        if let Some(read_only) = modes.read_only {
            self.settings.set("default_transaction_read_only", Some(&on_off(read_only)), false)?;
        }
        if let Some(deferrable) = modes.deferrable {
            self.settings.set("default_transaction_deferrable", Some(&on_off(deferrable)), false)?;
        }
        Ok(Reply::Tag("SET"))
    }

    fn show(&mut self, control: &Control, name: Option<&str>) -> Result<Reply, Fault> {
        // From the first look on, the reads of plain sessions are counted too.
        self.counts_reads |= name.is_some_and(|name| name.eq_ignore_ascii_case(settings::LAST_READ));
        let text = |value: &str| Datum::Text(value.into());
        let rows = match name {
            Some(name) => {
                let value = match self.state.setting(name) {
                    Some(value) => value.into(),
                    None => self.settings.show(name)?.1,
                };
                vec![vec![text(&value)]]
            }
            None => self.settings.show_all().into_iter().map(|row| row.iter().map(|v| text(v)).collect()).collect(),
        };
        let columns = listing_columns(control).unwrap_or_default();
        Ok(Reply::Listing(Listing { columns, rows: rows.into_iter(), is_fetch: false }))
    }

    /// Reads the setting of the cluster, to be shown.
    async fn look_at_gc_ttl(&mut self) -> Result<(), Fault> {
        let ttl = Box::pin(self.interrupt.guard(self.deadline, self.node.catalog.gc_ttl())).await?;
        self.settings.live.gc_ttl = Some(ttl);
        Ok(())
    }

    /// ALTER SYSTEM. There is one setting of the cluster.
    async fn alter_system(&mut self, name: Option<&str>, values: Option<&[String]>) -> Result<Reply, Fault> {
        self.state.check_outside_block("ALTER SYSTEM", false)?;
        if let Some(name) = name.filter(|name| !name.eq_ignore_ascii_case(settings::GC_TTL)) {
            self.settings.show(name)?;
            let message = format!("parameter \"{name}\" cannot be changed by ALTER SYSTEM");
            let hint = "It is a setting of each session.";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(hint).into());
        }
        let ttl = values.map(|values| settings::gc_ttl(values, GC_TTL_MIN)).transpose()?;
        // Not to be given up in the middle: its outcome would be unknown.
        self.node.catalog.set_gc_ttl(ttl).await?;
        Ok(Reply::Tag("ALTER SYSTEM"))
    }

    async fn discard(&mut self, what: Discard) -> Result<Reply, Fault> {
        match what {
            Discard::All => {
                self.state.check_outside_block("DISCARD ALL", self.in_string)?;
                self.portals.clear();
                self.settings.reset_all();
                self.statements.clear_named();
                self.advisory.unlock_all();
                self.sequences.forget();
                self.plans.clear();
                self.discard_temporary().await?;
                Ok(Reply::Tag("DISCARD ALL"))
            }
            Discard::Plans => {
                self.plans.clear();
                Ok(Reply::Tag("DISCARD PLANS"))
            }
            Discard::Sequences => {
                self.sequences.forget();
                Ok(Reply::Tag("DISCARD SEQUENCES"))
            }
            Discard::Temp => {
                self.discard_temporary().await?;
                Ok(Reply::Tag("DISCARD TEMP"))
            }
        }
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<Reply, Fault> {
        match name {
            None => {
                self.statements.clear_named();
                Ok(Reply::Tag("DEALLOCATE ALL"))
            }
            Some(name) if !name.is_empty() && self.statements.remove(name) => Ok(Reply::Tag("DEALLOCATE")),
            Some(name) => Err(unknown_statement(name).into()),
        }
    }

    /// SET CONSTRAINTS. All constraints are checked at once, and none can be deferred.
    fn set_constraints(&mut self, names: &[String], out: &mut Output) -> Result<Reply, Fault> {
        if self.state.block() != Block::Explicit && !self.in_string {
            let message = "SET CONSTRAINTS can only be used in transaction blocks";
            self.send_notice(&Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, message), out)?;
        }
        let catalog = match self.shown_catalog() {
            Some(base) => {
                let (path, whose) = (self.settings.search_path(), (&*self.database, &*self.user));
                Some(self.seen.look(&base, path, whose, &self.temporary)?)
            }
            None => None,
        };
        let exists = |name: &str| {
            let name = name.rsplit('.').next().unwrap_or(name);
            catalog.as_ref().is_some_and(|catalog| catalog.has_constraint(name))
        };
        match names.first() {
            None => Ok(Reply::Tag("SET CONSTRAINTS")),
            Some(name) if exists(name) => {
                let message = format!("constraint \"{name}\" is not deferrable");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).into())
            }
            Some(name) => {
                let message = format!("constraint \"{name}\" does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).into())
            }
        }
    }

    fn close_cursor(&mut self, name: Option<&str>) -> Result<Reply, Fault> {
        match name {
            None => {
                self.portals.clear();
                Ok(Reply::Tag("CLOSE CURSOR ALL"))
            }
            Some(name) if !name.is_empty() && self.portals.remove(name) => Ok(Reply::Tag("CLOSE CURSOR")),
            Some(name) => Err(unknown_cursor(name).into()),
        }
    }
}

fn bounded_transaction() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot use a bounded staleness query in a transaction")
        .hint("Name a timestamp, or set cortado.read_staleness to 'max ...'.")
}

fn as_of_of_sessions() -> SqlError {
    let message = "AS OF SYSTEM TIME of a session is not supported";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("Set cortado.read_staleness.")
}
