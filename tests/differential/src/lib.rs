//! Sends generated statements to Cortado and to PostgreSQL 15, and compares what both answer: rows, types, tags,
//! SQLSTATEs.
//!
//! # Layers
//!
//! 1. `tree`: statements that can be made smaller
//! 2. `wire`: a client of the protocol
//! 3. `catalog`, `compare`: what both servers have; differences of answers
//! 4. `case`, `rules`: statements that run together; the differences that are documented
//! 5. `shrink`, `report`: smaller cases; counts
//! 6. `generate`: cases from a seed

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test program, at the edge"
)]

mod case;
mod catalog;
mod compare;
mod generate;
mod report;
mod rules;
mod shrink;
#[cfg(test)]
mod tests;
mod tree;
mod wire;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::case::{Servers, Verdict};
use crate::catalog::Catalog;
use crate::generate::{Generator, Subject};
pub use crate::report::Report;
use crate::wire::Client;

/// What to compare. Only the addresses have to be given.
#[derive(Parser, Clone)]
pub struct Options {
    /// Address of Cortado
    #[arg(long)]
    cortado: String,
    /// Address of PostgreSQL 15
    #[arg(long)]
    postgres: String,
    /// Database on both servers
    #[arg(long, default_value = "postgres")]
    database: String,
    /// Seed of the cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first case
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Statements to send
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// What the cases are about; all by default
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<Subject>,
    /// Folder for a file of each group of differences
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// After the run, plant a wrong function, and fail if it is not found
    #[arg(long)]
    planted: bool,
    /// Print each case before it runs
    #[arg(long)]
    verbose: bool,
}

/// What a session of both servers is set to.
const SETUP: [&str; 3] =
    ["SET statement_timeout = '10s'", "SET TimeZone = 'America/New_York'", "SET search_path = differential, public"];

/// Statements that look for a planted function.
const PLANTED_STATEMENTS: u64 = 500;

fn connect(options: &Options) -> std::io::Result<Servers> {
    let mut postgres = Client::connect(&options.postgres, &options.database)?;
    let mut cortado = Client::connect(&options.cortado, &options.database)?;
    for sql in SETUP {
        postgres.set_up(sql)?;
        cortado.set_up(sql)?;
    }
    Ok(Servers { postgres, cortado })
}

/// Runs the cases.
///
/// # Errors
/// A server cannot be reached, a table of the run cannot be made, or a planted function is not found.
pub fn run(options: &Options) -> std::io::Result<Report> {
    let mut servers = connect(options)?;
    let catalog = Catalog::read(&mut servers.postgres, &mut servers.cortado)?;
    let all = Subject::value_variants();
    let subjects = if options.subjects.is_empty() { all.to_vec() } else { options.subjects.clone() };
    let (generator, tables) = Generator::new(catalog, options.seed, subjects);
    for sql in ["DROP SCHEMA IF EXISTS differential CASCADE", "CREATE SCHEMA differential"] {
        must_run(&mut servers, sql)?;
    }
    for sql in &tables {
        must_run(&mut servers, sql)?;
    }
    let report = compare(options, &mut servers, &generator)?;
    if options.planted {
        planted(options, &mut servers, generator)?;
    }
    Ok(report)
}

/// Runs cases until enough statements were sent.
fn compare(options: &Options, servers: &mut Servers, generator: &Generator) -> std::io::Result<Report> {
    let mut report = Report::default();
    let mut number = options.from;
    while report.statements < options.count {
        let case = generator.case(number);
        if options.verbose {
            println!("{number}: {}", case.text());
        }
        report.statements += case.statements.len() as u64;
        let verdict = servers.run(&case)?;
        judge(servers, &mut report, case, verdict, number)?;
        number += 1;
    }
    Ok(report)
}

/// Plants a wrong function in PostgreSQL, and looks for it.
fn planted(options: &Options, servers: &mut Servers, mut generator: Generator) -> std::io::Result<()> {
    let wrong = "CREATE FUNCTION differential.reverse(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT \
         AS $$SELECT pg_catalog.reverse($1) || '!'$$";
    for sql in [wrong, "SET search_path = differential, pg_catalog, public"] {
        servers.postgres.set_up(sql)?;
    }
    generator.keep_function("reverse");
    let report = compare(&Options { count: PLANTED_STATEMENTS, ..options.clone() }, servers, &generator)?;
    must_run(servers, "DROP SCHEMA differential CASCADE")?;
    match report.found("SELECT reverse(") {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("the planted function was not found:\n{}", report.show()))),
    }
}

/// Runs a statement that makes the tables of the run, on both servers.
fn must_run(servers: &mut Servers, sql: &str) -> std::io::Result<()> {
    for client in [&mut servers.postgres, &mut servers.cortado] {
        if let Some(error) = client.simple(sql)?.error {
            return Err(std::io::Error::other(format!("{sql:.120}: {} {}", error.code, error.message)));
        }
    }
    Ok(())
}

/// Counts the verdict of a case.
fn judge(
    servers: &mut Servers,
    report: &mut Report,
    case: case::Case,
    verdict: Verdict,
    number: u64,
) -> std::io::Result<()> {
    let Verdict::Differs { difference, answers, .. } = &verdict else {
        report.inconclusive += u64::from(matches!(verdict, Verdict::Inconclusive));
        return Ok(());
    };
    if let Some(rule) = rules::known(&case.text(), difference, answers) {
        report.known(rule);
        return Ok(());
    }
    if rules::is_unsupported(difference) && !shrink::has_both_errors(servers, &case, &verdict)? {
        let message = answers[1].error.clone().unwrap_or_default().message;
        report.unsupported(&message, &case.text(), rules::is_listed(&message));
        return Ok(());
    }
    if report.count_if_seen(difference) {
        return Ok(());
    }
    let (case, verdict) = shrink::shrink(servers, case, verdict)?;
    if let Verdict::Differs { difference, answers, .. } = &verdict
        && let Some(rule) = rules::known(&case.text(), difference, answers)
    {
        report.known(rule);
        return Ok(());
    }
    if shrink::has_both_errors(servers, &case, &verdict)? {
        report.known(rules::OTHER_ERROR);
        return Ok(());
    }
    report.differs(&case, &verdict, number);
    Ok(())
}
