//! What the rows and functions of the system catalog are computed from, and values for them.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::sessions::{LockList, SessionInfo};
use pgtypes::{Array, Datum, IoEnv, Oid, SqlType};

/// A setting, for `pg_settings`.
#[derive(Clone, Debug, Default)]
pub struct SettingInfo {
    /// The name.
    pub name: String,
    /// The value, in its unit.
    pub value: String,
    /// The unit of the value; empty without one.
    pub unit: &'static str,
    /// The chapter that it belongs to.
    pub group: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Who can change it: `user`, `internal`, `superuser`.
    pub context: &'static str,
    /// `bool`, `integer`, `string`, `enum`
    pub kind: &'static str,
    /// The words that it accepts, if it accepts words alone.
    pub words: &'static [&'static str],
    /// Least and greatest value.
    pub range: Option<(String, String)>,
    /// The value of a session that sets nothing.
    pub default: String,
    /// The value that RESET restores.
    pub reset: String,
    /// Where the value is from: `default`, `client`, `session`.
    pub source: &'static str,
}

/// What the rows of a relation are computed from that the node has to ask others for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterSource {
    /// The sessions of all nodes.
    Sessions,
    /// The locks of rows, and the advisory locks.
    Locks,
}

/// A prepared statement of the session, for `pg_prepared_statements`. Times are microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementInfo {
    /// Its name.
    pub name: String,
    /// What the client sent.
    pub statement: Arc<str>,
    /// When.
    pub prepared: i64,
    /// The types of its parameters.
    pub parameter_types: Vec<SqlType>,
    /// Whether PREPARE has prepared it, not the protocol.
    pub from_sql: bool,
}

/// A cursor of the session, for `pg_cursors`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorInfo {
    /// Its name.
    pub name: String,
    /// What the client sent.
    pub statement: Arc<str>,
    /// WITH HOLD.
    pub is_holdable: bool,
    /// BINARY.
    pub is_binary: bool,
    /// Whether it goes backward.
    pub is_scrollable: bool,
    /// When it was opened, in microseconds since 2000-01-01 UTC.
    pub created: i64,
}

/// What a session shows of itself and of its node.
pub trait SystemSession: Sync {
    /// The catalog that the transaction sees.
    fn catalog(&self) -> &Arc<Catalog>;
    /// The user.
    fn user(&self) -> &str;
    /// The name of the database.
    fn database(&self) -> &str;
    /// The start of the node, in microseconds since 2000-01-01 UTC.
    fn node_started(&self) -> i64;
    /// The process id of the session.
    fn pid(&self) -> i32;
    /// The id of the transaction, if it has one.
    fn transaction(&self) -> Option<i64>;
    /// The time, in microseconds since 2000-01-01 UTC.
    fn clock(&self) -> i64;
    /// When the client's statement came, in the same unit.
    fn statement_started(&self) -> i64;
    /// A random number from 0 to below 1.
    fn random(&self) -> f64;
    /// Begins random numbers anew.
    fn set_seed(&self, seed: f64);
    /// All settings, with their values.
    fn settings(&self) -> Vec<SettingInfo>;
    /// The sessions of the cluster, if they were asked for; else those of the node.
    fn sessions(&self) -> Arc<Vec<SessionInfo>>;
    /// The locks of the cluster, if they were asked for.
    fn locks(&self) -> Arc<LockList>;
    /// The prepared statements of the session, by name.
    fn statements(&self) -> Vec<StatementInfo>;
    /// The cursors and portals of the session, by name.
    fn cursors(&self) -> Vec<CursorInfo>;
}

/// The environment of the system catalog.
#[derive(Clone, Copy)]
pub(crate) struct SystemEnv<'a> {
    pub(crate) session: &'a dyn SystemSession,
    /// Zone, styles, names, and the start of the transaction.
    pub(crate) io: IoEnv<'a>,
}

impl<'a> SystemEnv<'a> {
    /// The catalog.
    pub(super) fn catalog(&self) -> &'a Arc<Catalog> {
        self.session.catalog()
    }
}

/// Rows, computed one by one.
pub(crate) type Rows = Box<dyn Iterator<Item = Vec<Datum>> + Send + Sync>;

/// No rows.
pub(super) fn no_rows() -> Rows {
    Box::new(std::iter::empty())
}

/// One row.
pub(super) fn one_row(row: Vec<Datum>) -> Rows {
    Box::new(std::iter::once(row))
}

/// Rows that are there already.
pub(super) fn rows_of(rows: Vec<Vec<Datum>>) -> Rows {
    Box::new(rows.into_iter())
}

pub(super) fn text(value: impl AsRef<str>) -> Datum {
    Datum::Text(value.as_ref().into())
}

/// A text, or NULL.
pub(super) fn maybe(value: Option<impl AsRef<str>>) -> Datum {
    value.map_or(Datum::Null, text)
}

pub(super) fn oid(value: Oid) -> Datum {
    Datum::Int(value.0.into())
}

pub(super) fn int(value: impl TryInto<i64>) -> Datum {
    Datum::Int(value.try_into().unwrap_or(0))
}

/// YES or NO, as `information_schema` says it.
pub(super) fn yes(value: bool) -> Datum {
    text(if value { "YES" } else { "NO" })
}

/// An array.
pub(super) fn array(element: SqlType, values: Vec<Datum>) -> Datum {
    Datum::Array(Box::new(Array::of(element.oid, values)))
}

/// A vector of the catalog.
pub(super) fn vector(element: SqlType, values: Vec<Datum>) -> Datum {
    Datum::Array(Box::new(Array::vector(element.oid, values)))
}

/// The OID at a place of the arguments.
pub(super) fn number(args: &[&Datum], at: usize) -> Oid {
    match args.get(at) {
        Some(Datum::Int(number)) => Oid(u32::try_from(*number).unwrap_or(0)),
        _ => Oid::NONE,
    }
}

/// The text at a place of the arguments.
pub(super) fn words<'a>(args: &[&'a Datum], at: usize) -> &'a str {
    match args.get(at) {
        Some(Datum::Text(text)) => text,
        _ => "",
    }
}
