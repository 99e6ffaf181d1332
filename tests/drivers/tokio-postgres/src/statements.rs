//! Prepared statements, pipelines, portals and cursors.

use std::pin::pin;

use futures::{TryStreamExt as _, future};
use tokio_postgres::types::Type;

use crate::sections::{Outcome, column, equal, fails, open};

pub(crate) async fn prepared() -> Outcome {
    let client = open().await?;
    let plus = client.prepare("SELECT $1::int + 1 AS sum, $2::text AS name").await?;
    equal(plus.params(), [Type::INT4, Type::TEXT])?;
    equal(plus.columns().iter().map(|column| column.name()).collect::<Vec<_>>(), ["sum", "name"])?;
    for n in 0..5 {
        equal(client.query_one(&plus, &[&n, &"x"]).await?.get::<_, i32>(0), n + 1)?;
    }
    drop(plus);
    let typed = client.prepare_typed("SELECT $1 + $2", &[Type::INT8, Type::INT8]).await?;
    equal(client.query_one(&typed, &[&1_i64, &2_i64]).await?.get::<_, i64>(0), 3)?;
    let typed = client.query_typed("SELECT $1", &[(&"a", Type::TEXT)]).await?;
    equal(typed[0].get::<_, &str>(0), "a")?;
    fails(client.prepare("SELECT $1 + nothing").await, "42703")?;
    Ok(())
}

/// Statements of one connection that are polled together are one pipeline.
pub(crate) async fn batch() -> Outcome {
    let client = open().await?;
    client.batch_execute("DROP TABLE IF EXISTS tokio_batch; CREATE TABLE tokio_batch (id int PRIMARY KEY)").await?;
    let insert = client.prepare("INSERT INTO tokio_batch VALUES ($1)").await?;
    let numbers: Vec<i32> = (0..300).collect();
    let inserted = future::try_join_all(numbers.iter().map(|n| client.execute_raw(&insert, [n]))).await?;
    equal(inserted.iter().sum::<u64>(), 300)?;
    let (wrong, right) =
        future::join(client.execute(&insert, &[&1]), client.query_one("SELECT count(*) FROM tokio_batch", &[])).await;
    fails(wrong, "23505")?;
    equal(right?.get::<_, i64>(0), 300)?;
    fails(client.batch_execute("DELETE FROM tokio_batch; SELECT 1 / 0").await, "22012")?;
    equal(column::<i64>(&client, "SELECT count(*) FROM tokio_batch").await?, [300])?;
    let many =
        client.query("INSERT INTO tokio_batch SELECT unnest($1::int[]) RETURNING id", &[&vec![500, 501]]).await?;
    equal(many.len(), 2)?;
    client.batch_execute("DROP TABLE tokio_batch").await?;
    Ok(())
}

/// A portal is read in parts within a transaction. Rows of a stream arrive while they are read.
pub(crate) async fn cursors() -> Outcome {
    let mut client = open().await?;
    let transaction = client.transaction().await?;
    let portal = transaction.bind("SELECT n FROM generate_series(1, 20) n WHERE n > $1", &[&2]).await?;
    let first = transaction.query_portal(&portal, 3).await?;
    equal(first.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [3, 4, 5])?;
    equal(transaction.query_portal(&portal, 0).await?.len(), 15)?;
    transaction.batch_execute("DECLARE named SCROLL CURSOR FOR SELECT n FROM generate_series(1, 20) n").await?;
    let fetched = transaction.query("FETCH 3 FROM named", &[]).await?;
    equal(fetched.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 2, 3])?;
    equal(transaction.query("FETCH BACKWARD 1 FROM named", &[]).await?[0].get::<_, i32>(0), 2)?;
    transaction.commit().await?;
    let values: [i32; 0] = [];
    let mut rows = pin!(client.query_raw("SELECT n FROM generate_series(1, 10000) n", values).await?);
    let mut seen = 0;
    while rows.try_next().await?.is_some() {
        seen += 1;
    }
    equal(seen, 10_000)
}
