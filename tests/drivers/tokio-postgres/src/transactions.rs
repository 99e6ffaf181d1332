//! Transactions, savepoints, errors by class, cancel.

use std::time::Duration;

use tokio_postgres::{IsolationLevel, NoTls};

use crate::sections::{Outcome, column, equal, fails, open};

pub(crate) async fn transactions() -> Outcome {
    let mut client = open().await?;
    client.batch_execute("DROP TABLE IF EXISTS tokio_tx; CREATE TABLE tokio_tx (id int PRIMARY KEY)").await?;
    let mut transaction = client.transaction().await?;
    transaction.execute("INSERT INTO tokio_tx VALUES (1)", &[]).await?;
    let savepoint = transaction.savepoint("a").await?;
    savepoint.execute("INSERT INTO tokio_tx VALUES (2)", &[]).await?;
    fails(savepoint.execute("INSERT INTO tokio_tx VALUES ($1)", &[&1]).await, "23505")?;
    fails(savepoint.execute("SELECT 1", &[]).await, "25P02")?;
    savepoint.rollback().await?;
    transaction.execute("INSERT INTO tokio_tx VALUES (4)", &[]).await?;
    transaction.commit().await?;
    let transaction = client.transaction().await?;
    transaction.execute("DELETE FROM tokio_tx", &[]).await?;
    drop(transaction);
    equal(column::<i32>(&client, "SELECT id FROM tokio_tx ORDER BY id").await?, [1, 4])?;
    let level = IsolationLevel::RepeatableRead;
    let transaction = client.build_transaction().isolation_level(level).read_only(true).start().await?;
    equal(transaction.query_one("SHOW transaction_isolation", &[]).await?.get::<_, &str>(0), "repeatable read")?;
    fails(transaction.execute("DELETE FROM tokio_tx", &[]).await, "25006")?;
    transaction.rollback().await?;
    client.batch_execute("DROP TABLE tokio_tx").await?;
    Ok(())
}

const FAILURES: [(&str, &str); 10] = [
    ("INSERT INTO failures VALUES (1, 1)", "23505"),
    ("INSERT INTO failures VALUES (2, NULL)", "23502"),
    ("INSERT INTO failures VALUES (2, -1)", "23514"),
    ("SELECT * FROM missing", "42P01"),
    ("SELECT missing FROM failures", "42703"),
    ("SELECT 1 / 0", "22012"),
    ("SELEC 1", "42601"),
    ("SELECT 'x'::int", "22P02"),
    ("SELECT 2147483647 + 1", "22003"),
    ("CREATE TABLE failures (id int)", "42P07"),
];

pub(crate) async fn errors() -> Outcome {
    let (mut client, other) = (open().await?, open().await?);
    client.batch_execute("DROP TABLE IF EXISTS failures").await?;
    client.batch_execute("CREATE TABLE failures (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0))").await?;
    client.batch_execute("INSERT INTO failures VALUES (1, 1)").await?;
    for (statement, state) in FAILURES {
        fails(client.query(statement, &[]).await, state)?;
        fails(client.simple_query(statement).await, state)?;
    }
    let error = fails(client.execute("INSERT INTO failures VALUES ($1, 1)", &[&1]).await, "23505")?;
    let error = error.as_db_error().ok_or("an error of the server")?;
    equal((error.table(), error.constraint()), (Some("failures"), Some("failures_pkey")))?;
    equal(error.detail(), Some("Key (id)=(1) already exists."))?;
    let transaction = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    transaction.query("SELECT * FROM failures", &[]).await?;
    other.execute("UPDATE failures SET n = n + 1", &[]).await?;
    fails(transaction.execute("UPDATE failures SET n = n + 1", &[]).await, "40001")?;
    transaction.rollback().await?;
    Ok(())
}

pub(crate) async fn cancel() -> Outcome {
    let client = open().await?;
    let token = client.cancel_token();
    let cancelled = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await
    });
    fails(client.query("SELECT pg_sleep(20)", &[]).await, "57014")?;
    cancelled.await??;
    client.batch_execute("SET statement_timeout TO '200ms'").await?;
    fails(client.query("SELECT pg_sleep($1)", &[&20.0]).await, "57014")?;
    equal(column::<i32>(&client, "SELECT 1").await?, [1])
}
