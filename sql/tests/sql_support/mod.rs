//! A small session over an in-memory cluster, and a runner of golden SQL scripts with rewrite mode.
//!
//! A script is a sequence of blocks apart by blank lines: `#` comments, statements (each on its own lines, ending in
//! `;`) or commands (`\params`, `\zone`, `\session`), then `----` and the expected output. `UPDATE_GOLDENFILES=1`
//! writes what comes out instead of comparing.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]
#![allow(clippy::expect_used, reason = "a test that cannot go on says so")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use kv::client::Client;
use kv::memory::MemoryCluster;
use sql::catalog::{self, CatalogCache};
use sql::error::{SqlError, SqlState};
use sql::exec::{ExecContext, Execution, Row, Tag};
use sql::parse::{self, Parsed};
use sql::plan::{self, Plan};
use sql::types::{Datum, Format, SqlType, TimeZone};
use sqlparser::ast::Statement;
use tso::TsoClient;
use txn::{Database, Transaction, TxnError};

/// 2024-05-05 07:08:09.5 UTC
pub const NOW: i64 = 768_208_089_500_000;

/// A database in memory, its catalog initialised.
pub async fn database() -> (Database, CatalogCache) {
    let cluster = MemoryCluster::new();
    let tso = TsoClient::new(cluster.tso());
    let db = Database::new(Client::new(Arc::new(cluster)), tso);
    let catalog = CatalogCache::new();
    catalog.initialise(&db).await.expect("a fresh cluster");
    (db, catalog)
}

/// The outcome of a statement.
pub struct Outcome {
    pub plan: Option<Arc<Plan>>,
    pub rows: Vec<Row>,
    pub tag: String,
}

/// A session: autocommit, or inside BEGIN ... COMMIT.
pub struct Session {
    pub db: Database,
    pub catalog: CatalogCache,
    pub zone: TimeZone,
    txn: Option<Transaction>,
    failed: bool,
}

impl Session {
    pub fn new(db: Database, catalog: CatalogCache) -> Session {
        Session { db, catalog, zone: TimeZone::utc(), txn: None, failed: false }
    }

    /// Runs one statement; `params` are text.
    pub async fn statement(
        &mut self,
        parsed: &Parsed,
        declared: &[SqlType],
        params: &[Option<String>],
    ) -> Result<Outcome, SqlError> {
        match &parsed.tree {
            Statement::StartTransaction { .. } => {
                self.txn = Some(self.db.begin().await.map_err(catalog::storage_error)?);
                Ok(done("BEGIN"))
            }
            Statement::Commit { .. } => {
                let Some(txn) = self.txn.take() else { return Ok(done("COMMIT")) };
                if std::mem::take(&mut self.failed) {
                    return Ok(done("ROLLBACK"));
                }
                self.commit(txn).await?;
                Ok(done("COMMIT"))
            }
            Statement::Rollback { .. } => {
                self.txn = None;
                self.failed = false;
                Ok(done("ROLLBACK"))
            }
            _ if self.failed => Err(SqlError::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            _ => self.data(parsed, declared, params).await,
        }
    }

    async fn data(
        &mut self,
        parsed: &Parsed,
        declared: &[SqlType],
        params: &[Option<String>],
    ) -> Result<Outcome, SqlError> {
        if let Some(mut txn) = self.txn.take() {
            let savepoint = txn.savepoint();
            let outcome = self.execute(parsed, declared, params, &mut txn, true).await;
            if outcome.is_err() {
                txn.rollback_to(savepoint);
                self.failed = true;
            }
            self.txn = Some(txn);
            return outcome;
        }
        for _ in 0..10 {
            let mut txn = self.db.begin().await.map_err(catalog::storage_error)?;
            let outcome = self.execute(parsed, declared, params, &mut txn, false).await?;
            match self.commit(txn).await {
                Err(error) if error.code == SqlState::SERIALIZATION_FAILURE => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(outcome),
            }
        }
        panic!("still in conflict after ten attempts");
    }

    async fn commit(&self, txn: Transaction) -> Result<(), SqlError> {
        let catalog = self.catalog.at(&txn).await?;
        match txn.commit().await {
            Ok(_) => Ok(()),
            Err(error @ TxnError::AlreadyExists { .. }) => {
                let error = catalog::constraint_error(&catalog, &error, &self.zone);
                Err(error.expect("every unique key belongs to something"))
            }
            Err(error) => Err(catalog::storage_error(error)),
        }
    }

    async fn execute(
        &self,
        parsed: &Parsed,
        declared: &[SqlType],
        params: &[Option<String>],
        txn: &mut Transaction,
        explicit: bool,
    ) -> Result<Outcome, SqlError> {
        let catalog = self.catalog.at(txn).await?;
        let plan = plan::bind(parsed, declared, &catalog)?;
        assert_eq!(plan.params.len(), params.len(), "parameters: {:?}", plan.params);
        let mut values = Vec::new();
        for (ty, text) in plan.params.iter().zip(params) {
            values.push(match text {
                Some(text) => Datum::decode(*ty, Format::Text, text.as_bytes(), &self.zone)?,
                None => Datum::Null,
            });
        }
        let mut execution = Execution::new(Arc::clone(&plan), values)?;
        let mut ctx = ExecContext {
            txn,
            catalog: &self.catalog,
            zone: &self.zone,
            now: NOW,
            user: "ann",
            database: "shop",
            explicit,
        };
        let mut rows = Vec::new();
        loop {
            let batch = execution.next(&mut ctx, 3).await?;
            if batch.is_empty() {
                break;
            }
            rows.extend(batch);
        }
        let tag = match execution.tag() {
            Tag::Select => format!("SELECT {}", rows.len()),
            Tag::Insert(n) => format!("INSERT 0 {n}"),
            Tag::Update(n) => format!("UPDATE {n}"),
            Tag::Delete(n) => format!("DELETE {n}"),
            Tag::Plain(tag) => tag.to_owned(),
        };
        Ok(Outcome { plan: Some(plan), rows, tag })
    }

    /// Runs a query string; the first error ends it.
    pub async fn run(&mut self, text: &str) -> Result<Vec<Outcome>, SqlError> {
        let mut out = Vec::new();
        for parsed in parse::parse(text)? {
            out.push(self.statement(&parsed, &[], &[]).await?);
        }
        Ok(out)
    }
}

fn done(tag: &str) -> Outcome {
    Outcome { plan: None, rows: Vec::new(), tag: tag.to_owned() }
}

/// A value as a script shows it.
pub fn show(value: &Datum, ty: SqlType, zone: &TimeZone) -> String {
    if value.is_null() {
        return "NULL".to_owned();
    }
    let mut out = bytes::BytesMut::new();
    value.encode(ty, Format::Text, zone, &mut out);
    String::from_utf8(out.to_vec()).expect("text output is UTF-8")
}

/// An error as a script shows it.
pub fn show_error(error: &SqlError) -> String {
    let mut out = format!("ERROR {}: {}", error.code.0, error.message);
    if let Some(position) = error.position {
        let _ = write!(out, " [at {position}]");
    }
    for (name, line) in [("DETAIL", &error.detail), ("HINT", &error.hint)] {
        if let Some(line) = line {
            let _ = write!(out, "\n{name}: {line}");
        }
    }
    out.push('\n');
    out
}

/// Runs scripts: sessions by name over one database.
pub struct Script {
    sessions: BTreeMap<String, Session>,
    current: String,
    params: Vec<Option<String>>,
    db: Database,
    catalog: CatalogCache,
}

impl Script {
    pub async fn new() -> Script {
        let (db, catalog) = database().await;
        Script { sessions: BTreeMap::new(), current: "main".to_owned(), params: Vec::new(), db, catalog }
    }

    fn session(&mut self) -> &mut Session {
        let (db, catalog) = (self.db.clone(), self.catalog.clone());
        self.sessions.entry(self.current.clone()).or_insert_with(|| Session::new(db, catalog))
    }

    /// Runs the lines of a block; returns what they print.
    pub async fn block(&mut self, lines: &[&str]) -> String {
        let mut out = String::new();
        let mut text = String::new();
        for line in lines {
            if text.is_empty() && line.starts_with('\\') {
                self.command(line);
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
            if line.trim_end().ends_with(';') {
                out.push_str(&self.query(&std::mem::take(&mut text)).await);
            }
        }
        if !text.is_empty() {
            out.push_str(&self.query(&text).await);
        }
        out
    }

    fn command(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("\\params") => {
                self.params = words.map(|word| (word != "\\N").then(|| word.replace("\\_", " "))).collect();
            }
            Some("\\zone") => {
                let name = words.next().expect("a zone");
                self.session().zone = TimeZone(jiff::tz::TimeZone::get(name).expect("a known zone"));
            }
            Some("\\session") => self.current = words.next().expect("a name").to_owned(),
            other => panic!("unknown command {other:?}"),
        }
    }

    async fn query(&mut self, text: &str) -> String {
        let params = std::mem::take(&mut self.params);
        let statements = match parse::parse(text) {
            Ok(statements) => statements,
            Err(error) => return show_error(&error),
        };
        let mut out = String::new();
        for parsed in &statements {
            let session = self.session();
            match session.statement(parsed, &[], &params).await {
                Ok(outcome) => out.push_str(&render(&outcome, &session.zone, !params.is_empty())),
                Err(error) => {
                    out.push_str(&show_error(&error));
                    break;
                }
            }
        }
        out
    }
}

fn render(outcome: &Outcome, zone: &TimeZone, with_params: bool) -> String {
    let mut out = String::new();
    let Some(plan) = &outcome.plan else { return format!("{}\n", outcome.tag) };
    if with_params {
        let types: Vec<&str> = plan.params.iter().map(|ty| ty.catalog_name()).collect();
        let _ = writeln!(out, "params {}", types.join(" "));
    }
    let Some(columns) = &plan.columns else { return format!("{out}{}\n", outcome.tag) };
    let explain = columns.len() == 1 && columns[0].name == "QUERY PLAN";
    if !explain {
        let heads: Vec<String> =
            columns.iter().map(|column| format!("{}:{}", column.name, column.ty.catalog_name())).collect();
        let _ = writeln!(out, "{}", heads.join("|"));
    }
    for row in &outcome.rows {
        assert_eq!(row.len(), columns.len(), "a row has as many values as the result has columns");
        let values: Vec<String> = row.iter().zip(columns).map(|(value, column)| show(value, column.ty, zone)).collect();
        let _ = writeln!(out, "{}", values.join("|"));
    }
    if !outcome.tag.starts_with("SELECT") && !explain {
        let _ = writeln!(out, "{}", outcome.tag);
    }
    out
}

/// Runs a script and compares, or rewrites it.
pub async fn run_script(path: &Path) {
    let input = std::fs::read_to_string(path).expect("the script can be read");
    let mut script = Script::new().await;
    let mut output = String::new();
    for block in input.split("\n\n") {
        let block = block.trim_matches('\n');
        if block.is_empty() {
            continue;
        }
        if !output.is_empty() {
            output.push('\n');
        }
        let head = block.lines().take_while(|line| *line != "----");
        let (comments, code): (Vec<&str>, Vec<&str>) = head.partition(|line| line.starts_with('#'));
        for line in comments.iter().chain(&code) {
            let _ = writeln!(output, "{line}");
        }
        if !code.is_empty() {
            let result = script.block(&code).await;
            // A blank line in the output would end the block.
            let _ = write!(output, "----\n{}", result.replace("\n\n", "\n~\n"));
        }
    }
    if std::env::var("UPDATE_GOLDENFILES").is_ok_and(|value| value == "1") {
        std::fs::write(path, output).expect("the script can be written");
        return;
    }
    for (at, (expected, actual)) in input.lines().zip(output.lines()).enumerate() {
        assert_eq!(actual, expected, "{}:{}: the output differs", path.display(), at + 1);
    }
    assert_eq!(output.lines().count(), input.lines().count(), "{}: lines are missing or too many", path.display());
}
