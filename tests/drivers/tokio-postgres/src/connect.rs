//! Connections, their settings and notices.

use futures::StreamExt as _;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::sections::{self, Outcome, column, equal, fails};

pub(crate) async fn connect() -> Outcome {
    let mut config = sections::config();
    config.application_name("drivers").options("-c statement_timeout=70s");
    let (client, mut connection) = config.connect(NoTls).await?;
    equal(connection.parameter("server_encoding"), Some("UTF8"))?;
    let (sender, mut notices) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notice(notice) = message {
                let _ = sender.send(notice.code().code().to_string()).await;
            }
        }
    });
    equal(column::<String>(&client, "SHOW application_name").await?, ["drivers"])?;
    equal(column::<String>(&client, "SHOW statement_timeout").await?, ["70s"])?;
    let row = client.query_one("SELECT $1::text || 'плов ☕'", &[&"𝄞"]).await?;
    equal(row.get::<_, &str>(0), "𝄞плов ☕")?;
    client.batch_execute("DROP TABLE IF EXISTS missing").await?;
    equal(notices.recv().await, Some("00000".to_string()))?;
    client.check_connection().await?;
    fails(sections::config().dbname("missing").connect(NoTls).await, "3D000")?;
    Ok(())
}
