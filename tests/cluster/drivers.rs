//! Three drivers run one script with the same results: tokio-postgres (prepared, binary), psycopg (prepared, text and
//! binary) and psql (simple). asyncpg and libpq's pipelines get their errors.
//!
//! `make test` installs psql, psycopg and asyncpg (Debian: postgresql-client, python3-psycopg, python3-asyncpg).
//! Without them the test fails with that message.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use tokio_postgres::Client;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers")
}

/// A statement of the script, with the values of its parameters as SQL literals.
struct Run {
    statement: String,
    values: Vec<String>,
}

/// The statements of the script, and their expected output: rows and SQLSTATEs in order.
fn script() -> (Vec<Run>, Vec<String>) {
    let text = std::fs::read_to_string(folder().join("script.sql")).unwrap().replace("\\\n", "");
    let (mut runs, mut expected): (Vec<Run>, Vec<String>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if line.starts_with("--> ") || line.starts_with("--! ") {
            expected.push(line.to_string());
        } else if let Some(values) = line.strip_prefix("--$ ") {
            let values = values.split('|').map(str::to_string).collect();
            match runs.last_mut().expect("a statement before its values") {
                first if first.values.is_empty() => first.values = values,
                earlier => {
                    let statement = earlier.statement.clone();
                    runs.push(Run { statement, values });
                }
            }
        } else if !line.is_empty() && !line.starts_with("--") {
            runs.push(Run { statement: line.to_string(), values: Vec::new() });
        }
    }
    (runs, expected)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drivers_agree() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let (runs, expected) = script();
    assert!(expected.len() > 20 && runs.iter().any(|run| !run.values.is_empty()));
    let port = |node: usize| cluster.nodes[node].pg;
    assert_eq!(with_psql(port(0), &runs), expected, "psql");
    assert_eq!(with_tokio_postgres(&cluster.connect(1).await, &runs).await, expected, "tokio-postgres");
    assert_eq!(with_psycopg(port(2), "text"), expected, "psycopg, text");
    assert_eq!(with_psycopg(port(0), "binary"), expected, "psycopg, binary");
    let errors = ["42601", "42703", "22012", "42P01"];
    let mut pipelines: Vec<String> = errors.iter().map(|state| format!("asyncpg {state}")).collect();
    pipelines.push("asyncpg cursor [1, 2, 3]".to_string());
    pipelines.extend(errors[..3].iter().map(|state| format!("libpq {state}")));
    pipelines.push("libpq flush 42601".to_string());
    assert_eq!(with_python("asyncpg, psycopg", "pipelines.py", &[&port(1).to_string()]), pipelines);
}

fn with_psql(port: u16, runs: &[Run]) -> Vec<String> {
    let mut input = String::new();
    for run in runs {
        // psql has no parameters before version 16. The last is replaced first, so that $1 does not match in $10.
        let mut statement = run.statement.clone();
        for (at, value) in run.values.iter().enumerate().rev() {
            statement = statement.replace(&format!("${}", at + 1), value);
        }
        // psql prints errors to another stream than rows. Its variables report them in place.
        input.push_str(&statement);
        input.push_str(";\n\\if :ERROR\n\\echo --! :SQLSTATE\n\\endif\n");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), input).unwrap();
    let out = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres", "-XAtq", "-P", "null=\\N", "-f"])
        .arg(file.path())
        .env("PGCLIENTENCODING", "UTF8")
        .env_remove("PGTZ")
        .output()
        .expect("psql must be installed: apt-get install postgresql-client");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(from_psql).collect()
}

/// psql prints booleans as `t` and `f`.
fn from_psql(line: &str) -> String {
    if line.starts_with("--! ") {
        return line.to_string();
    }
    let value = |text: &str| match text {
        "t" => "true".to_string(),
        "f" => "false".to_string(),
        other => other.to_string(),
    };
    format!("--> {}", line.split('|').map(value).collect::<Vec<_>>().join("|"))
}

async fn with_tokio_postgres(client: &Client, runs: &[Run]) -> Vec<String> {
    let mut output = Vec::new();
    for Run { statement, values } in runs {
        let values: Vec<Literal<'_>> = values.iter().map(|value| Literal(value)).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        match client.query(statement, &values).await {
            Ok(rows) => output.extend(rows.iter().map(|row| {
                let values = row.columns().iter().enumerate().map(|(i, column)| show(row, i, column.type_()));
                format!("--> {}", values.collect::<Vec<_>>().join("|"))
            })),
            Err(error) => {
                let db = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
                output.push(format!("--! {}", db.code().code()));
            }
        }
    }
    output
}

/// A value of the script as a parameter: in binary, in the type that the server expects.
#[derive(Debug)]
struct Literal<'a>(&'a str);

impl Literal<'_> {
    fn text(&self) -> String {
        self.0.trim_matches('\'').replace("''", "'")
    }
}

impl ToSql for Literal<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        if self.0 == "NULL" {
            return Ok(IsNull::Yes);
        }
        match *ty {
            Type::BOOL => (self.0 == "true").to_sql(ty, out),
            Type::INT2 => self.0.parse::<i16>()?.to_sql(ty, out),
            Type::INT4 => self.0.parse::<i32>()?.to_sql(ty, out),
            Type::INT8 => self.0.parse::<i64>()?.to_sql(ty, out),
            Type::FLOAT8 => self.0.parse::<f64>()?.to_sql(ty, out),
            Type::BYTEA => decode_hex(&self.text())?.to_sql(ty, out),
            Type::TEXT | Type::VARCHAR | Type::TIMESTAMPTZ => {
                out.extend_from_slice(self.text().as_bytes());
                Ok(IsNull::No)
            }
            ref other => Err(format!("the script has no parameter of type {other}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, ty: &Type) -> Format {
        if *ty == Type::TIMESTAMPTZ { Format::Text } else { Format::Binary }
    }

    to_sql_checked!();
}

fn decode_hex(text: &str) -> Result<Vec<u8>, Box<dyn Error + Sync + Send>> {
    let digits = text.strip_prefix("\\x").ok_or("bytes are written as \\x...")?.as_bytes();
    digits.chunks(2).map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

fn show(row: &tokio_postgres::Row, i: usize, ty: &Type) -> String {
    fn text<T: std::fmt::Display>(value: Option<T>) -> String {
        value.map_or_else(|| "\\N".to_string(), |value| value.to_string())
    }
    match *ty {
        Type::BOOL => text(row.get::<_, Option<bool>>(i)),
        Type::INT2 => text(row.get::<_, Option<i16>>(i)),
        Type::INT4 => text(row.get::<_, Option<i32>>(i)),
        Type::INT8 => text(row.get::<_, Option<i64>>(i)),
        Type::FLOAT8 => text(row.get::<_, Option<f64>>(i)),
        Type::TEXT | Type::VARCHAR => text(row.get::<_, Option<&str>>(i)),
        Type::BYTEA => text(row.get::<_, Option<&[u8]>>(i).map(hex)),
        Type::TIMESTAMPTZ => text(row.get::<_, Option<SystemTime>>(i).map(utc)),
        ref other => panic!("the script has no column of type {other}"),
    }
}

/// Bytes as PostgreSQL writes them.
fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\\x{digits}")
}

/// A timestamp as PostgreSQL writes it, in UTC.
fn utc(moment: SystemTime) -> String {
    const DAY: i128 = 86_400_000_000;
    let micros = match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_micros() as i128,
        Err(before) => -(before.duration().as_micros() as i128),
    };
    let (year, month, day) = date(micros.div_euclid(DAY) as i64);
    let time = micros.rem_euclid(DAY);
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = format!(".{fraction:06}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}+00")
}

/// The date `days` after 1970-01-01. Years start in March, so that a leap day is their last day; the calendar repeats
/// every 400 years.
fn date(days: i64) -> (i64, i64, i64) {
    let since_march_0000 = days + 719_468;
    let (era, day) = (since_march_0000.div_euclid(146_097), since_march_0000.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next_year, month, day_of_month)
}

fn with_psycopg(port: u16, mode: &str) -> Vec<String> {
    let script = folder().join("script.sql");
    with_python("psycopg", "run.py", &[&port.to_string(), &script.to_string_lossy(), mode])
}

/// Runs a Python program with these modules and returns its lines.
fn with_python(modules: &str, program: &str, args: &[&str]) -> Vec<String> {
    // The modules may be installed for the distribution's Python or for the first one on the PATH.
    let has_modules = |python: &&str| {
        Command::new(python).args(["-c", &format!("import {modules}")]).output().is_ok_and(|out| out.status.success())
    };
    let python = ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(has_modules)
        .unwrap_or_else(|| panic!("{modules} must be installed: apt-get install python3-psycopg python3-asyncpg"));
    let out = Command::new(python).arg(folder().join(program)).args(args).env_remove("PGTZ").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_string).collect()
}

/// psql with ON_ERROR_ROLLBACK puts a savepoint around each statement of a block: an error undoes that statement alone.
/// With `interactive` it does so only at a terminal, which `script` provides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_rolls_back_to_its_savepoint_after_an_error() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    let block = "BEGIN;
        INSERT INTO t VALUES (1);
        INSERT INTO t VALUES (1);
        SELECT * FROM nothing;
        SAVEPOINT mine;
        INSERT INTO t VALUES (2);
        SELECT 1 / 0;
        INSERT INTO t VALUES (3);
        ROLLBACK TO mine;
        SELECT pg_advisory_xact_lock(5);
        SELECT 1 / 0;
        INSERT INTO t VALUES (4);
        COMMIT;
        \\q\n";
    let url = format!("postgresql://postgres@127.0.0.1:{}/postgres", cluster.nodes[1].pg);
    for (mode, at_terminal, expected) in [
        ("on", false, vec![1, 4]),
        ("interactive", true, vec![1, 4]),
        ("interactive", false, vec![]),
        ("off", true, vec![]),
    ] {
        client.batch_execute("TRUNCATE t").await.unwrap();
        let psql = format!("psql -XAtq -v ON_ERROR_ROLLBACK={mode} {url}");
        let mut command = match at_terminal {
            true => {
                let mut command = Command::new("script");
                command.args(["-qec", &psql, "/dev/null"]).env("PAGER", "cat");
                command
            }
            false => {
                let mut command = Command::new("sh");
                command.args(["-c", &psql]);
                command
            }
        };
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(block.as_bytes()).unwrap();
        let out = running.wait_with_output().unwrap();
        let rows = client.query("SELECT id FROM t ORDER BY id", &[]).await.unwrap();
        let rows: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, expected, "{mode}, at a terminal: {at_terminal}: {out:?}");
    }
}
