//! Three drivers run one script and see the same: tokio-postgres (prepared, binary), psycopg (prepared, text and binary) and psql (simple).
//!
//! `make test` installs psql and psycopg (Debian: postgresql-client, python3-psycopg); without them the test fails and says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::harness::Cluster;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers")
}

/// The statements of the script, and what they must show: rows and SQLSTATEs in order.
fn script() -> (Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(folder().join("script.sql")).unwrap();
    let (expected, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("--> ") || line.starts_with("--! "));
    let statements = rest.into_iter().filter(|line| !line.is_empty() && !line.starts_with("--"));
    let own = |line: &str| line.to_string();
    (statements.map(own).collect(), expected.into_iter().map(own).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drivers_agree() {
    let cluster = Cluster::start(3).await;
    let (statements, expected) = script();
    assert!(expected.len() > 20);
    let port = |node: usize| cluster.nodes[node].pg;
    assert_eq!(with_psql(port(0), &statements), expected, "psql");
    assert_eq!(with_tokio_postgres(&cluster.connect(1).await, &statements).await, expected, "tokio-postgres");
    assert_eq!(with_psycopg(port(2), "text"), expected, "psycopg, text");
    assert_eq!(with_psycopg(port(0), "binary"), expected, "psycopg, binary");
}

fn with_psql(port: u16, statements: &[String]) -> Vec<String> {
    let mut input = String::new();
    for statement in statements {
        // psql's errors go to another stream than its rows; asked in between, it tells them in place.
        input.push_str(statement);
        input.push_str(";\n\\if :ERROR\n\\echo --! :SQLSTATE\n\\endif\n");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), input).unwrap();
    let out = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres", "-XAtq", "-P", "null=\\N", "-f"])
        .arg(file.path())
        .env("PGCLIENTENCODING", "UTF8")
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

async fn with_tokio_postgres(client: &Client, statements: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for statement in statements {
        match client.query(statement, &[]).await {
            Ok(rows) => seen.extend(rows.iter().map(|row| {
                let values = row.columns().iter().enumerate().map(|(i, column)| show(row, i, column.type_()));
                format!("--> {}", values.collect::<Vec<_>>().join("|"))
            })),
            Err(error) => {
                let db = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
                seen.push(format!("--! {}", db.code().code()));
            }
        }
    }
    seen
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
        ref other => panic!("the script has no column of type {other}"),
    }
}

fn with_psycopg(port: u16, mode: &str) -> Vec<String> {
    // psycopg may be installed for the distribution's Python or for the first one on the PATH.
    let has_psycopg = |python: &&str| {
        Command::new(python).args(["-c", "import psycopg"]).output().is_ok_and(|out| out.status.success())
    };
    let python = ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(has_psycopg)
        .expect("psycopg 3 must be installed: apt-get install python3-psycopg");
    let out = Command::new(python)
        .arg(folder().join("run.py"))
        .arg(port.to_string())
        .arg(folder().join("script.sql"))
        .arg(mode)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_string).collect()
}
