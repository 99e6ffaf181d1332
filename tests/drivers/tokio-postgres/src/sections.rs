//! Runs a section and reports it in one line.

use std::error::Error;
use std::fmt::Debug;
use std::panic::Location;

use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Config, NoTls};

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Whether the section failed.
pub(crate) async fn failed(name: &str, section: impl Future<Output = Outcome>) -> bool {
    match section.await {
        Ok(()) => {
            println!("ok {name}");
            false
        }
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text.push_str(&format!(": {error}"));
                cause = error.source();
            }
            println!("FAILED {name} {}", text.split_whitespace().collect::<Vec<_>>().join(" "));
            true
        }
    }
}

/// How to reach the server of the environment.
pub(crate) fn config() -> Config {
    let var = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} must be set"));
    let mut config = Config::new();
    config.host(var("PGHOST")).port(var("PGPORT").parse().expect("a port")).user(var("PGUSER"));
    config.dbname(var("PGDATABASE"));
    config
}

pub(crate) async fn open() -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = config().connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The values of a query's only column.
pub(crate) async fn column<T>(client: &Client, query: &str) -> Result<Vec<T>, tokio_postgres::Error>
where
    T: for<'a> FromSql<'a>,
{
    client.query(query, &[]).await?.iter().map(|row| row.try_get(0)).collect()
}

/// An error unless the values are equal.
#[track_caller]
pub(crate) fn equal<A: PartialEq<B> + Debug, B: Debug>(actual: A, expected: B) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    Err(format!("{}: {actual:?} instead of {expected:?}", Location::caller()).into())
}

/// An error unless the result is a failure with the SQLSTATE.
#[track_caller]
pub(crate) fn fails<T>(result: Result<T, tokio_postgres::Error>, state: &str) -> Result<tokio_postgres::Error, String> {
    match result {
        Ok(_) => Err(format!("{}: no error instead of {state}", Location::caller())),
        Err(error) if error.code().is_some_and(|code| code.code() == state) => Ok(error),
        Err(error) => {
            Err(format!("{}: {:?} instead of {state}: {:?}", Location::caller(), error.code(), error.as_db_error()))
        }
    }
}
