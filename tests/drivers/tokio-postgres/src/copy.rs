//! COPY in and out, as streams of bytes and in binary with types.

use std::pin::pin;

use bytes::Bytes;
use futures::{SinkExt as _, TryStreamExt as _};
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::types::Type;

use crate::sections::{Outcome, column, equal, fails, open};

const CSV: &str = "id,name\n1,plain\n2,\"tab\t, line\n, \"\"quotes\"\"\"\n3,\"\"\n4,\n";

pub(crate) async fn copy() -> Outcome {
    let client = open().await?;
    client.batch_execute("DROP TABLE IF EXISTS tokio_copy").await?;
    client.batch_execute("CREATE TABLE tokio_copy (id int PRIMARY KEY, name text)").await?;
    let mut sink = pin!(client.copy_in("COPY tokio_copy FROM STDIN (FORMAT csv, HEADER)").await?);
    for part in CSV.as_bytes().chunks(7) {
        sink.send(Bytes::from_static(part)).await?;
    }
    equal(sink.finish().await?, 4)?;
    let query = "COPY (SELECT * FROM tokio_copy ORDER BY id) TO STDOUT (FORMAT csv, HEADER)";
    let parts: Vec<Bytes> = client.copy_out(query).await?.try_collect().await?;
    equal(String::from_utf8(parts.concat())?, CSV)?;

    let types = [Type::INT4, Type::TEXT];
    let mut writer = pin!(BinaryCopyInWriter::new(client.copy_in("COPY tokio_copy FROM STDIN BINARY").await?, &types));
    writer.as_mut().write(&[&10, &"ten"]).await?;
    writer.as_mut().write(&[&11, &None::<&str>]).await?;
    equal(writer.finish().await?, 2)?;
    let out = client.copy_out("COPY (SELECT * FROM tokio_copy ORDER BY id DESC) TO STDOUT BINARY").await?;
    let rows: Vec<_> = BinaryCopyOutStream::new(out, &types).try_collect().await?;
    equal(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [11, 10, 4, 3, 2, 1])?;
    equal(rows[1].get::<Option<&str>>(1), Some("ten"))?;

    let mut sink = pin!(client.copy_in::<_, Bytes>("COPY tokio_copy FROM STDIN").await?);
    sink.send(Bytes::from_static(b"20\tx\nword\ty\n")).await?;
    fails(sink.finish().await, "22P02")?;
    // A sink that is dropped abandons the COPY.
    drop(Box::pin(client.copy_in::<_, Bytes>("COPY tokio_copy FROM STDIN").await?));
    equal(column::<i64>(&client, "SELECT count(*) FROM tokio_copy").await?, [6])?;
    client.batch_execute("DROP TABLE tokio_copy").await?;
    Ok(())
}
