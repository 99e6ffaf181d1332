//! What the driver asks about types that it does not know, and the catalogs about columns.

use crate::sections::{Outcome, column, equal, open};

pub(crate) async fn catalog() -> Outcome {
    let client = open().await?;
    client.batch_execute("DROP TABLE IF EXISTS described").await?;
    let columns = "id serial PRIMARY KEY, name varchar(30) NOT NULL DEFAULT 'none', price numeric(10, 2)";
    client.batch_execute(&format!("CREATE TABLE described ({columns})")).await?;
    let described = "SELECT concat_ws('|', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            pg_get_expr(d.adbin, d.adrelid))
        FROM pg_catalog.pg_attribute a
        LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = 'described'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
    let expected = [
        "id|integer|t|nextval('described_id_seq'::regclass)",
        "name|character varying(30)|t|'none'::character varying",
        "price|numeric(10,2)|f",
    ];
    equal(column::<String>(&client, described).await?, expected)?;
    let statement = client.prepare("SELECT * FROM described").await?;
    let types: Vec<&str> = statement.columns().iter().map(|column| column.type_().name()).collect();
    equal(types, ["int4", "varchar", "numeric"])?;
    equal(statement.columns().iter().all(|column| column.table_oid().is_some()), true)?;
    // The first type is not built into the driver: it asks pg_type. pg_range follows.
    let unknown = client.prepare("SELECT c.oid, c.reltype FROM pg_catalog.pg_class c WHERE c.relname = $1").await?;
    equal(unknown.columns().len(), 2)?;
    client.prepare("SELECT table_name FROM information_schema.tables").await?;
    client.batch_execute("DROP TABLE described").await?;
    Ok(())
}
