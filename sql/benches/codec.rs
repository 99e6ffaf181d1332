//! Costs of a row, a key, a binding and a point select in the SQL layer, over an in-memory cluster.

#![allow(clippy::expect_used, reason = "a test that cannot go on says so")]

use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use kv::client::Client;
use kv::memory::MemoryCluster;
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, SqlType, TimeZone};
use sql::catalog::Catalog;
use sql::codec::{key, row};
use sql::exec::{ExecContext, Execution, NoSession, ReferenceQueue};
use sql::table::{Column, ColumnId, IndexId, StorageId, Table, TableId};
use sql::{parse, plan};
use tso::TsoClient;
use txn::Database;

const POINT_SELECT: &str = "SELECT c FROM sbtest1 WHERE id=$1";

fn table() -> Table {
    let column = |id, name: &str, ty| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        ty,
        not_null: true,
        default: None,
        generated: None,
        identity: None,
        domain: None,
    };
    Table {
        id: TableId(16_384),
        schema: sql::object::FIRST_SCHEMA,
        storage: StorageId(16_384),
        name: "sbtest1".to_owned(),
        columns: vec![
            column(1, "id", SqlType::INT4),
            column(2, "k", SqlType::INT4),
            column(3, "c", SqlType::varchar(120)),
            column(4, "pad", SqlType::varchar(60)),
        ],
        primary_key: vec![0],
        key_name: "sbtest1_pkey".to_owned(),
        key_id: IndexId(16_999),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(4),
    }
}

fn sample() -> Vec<Datum> {
    vec![Datum::Int(4711), Datum::Int(5000), Datum::Text("c".repeat(119).into()), Datum::Text("p".repeat(59).into())]
}

fn codec(c: &mut Criterion) {
    let (table, values) = (table(), sample());
    c.bench_function("row/encode", |b| b.iter(|| row::encode(&table, &values)));
    let value = row::encode(&table, &values);
    let mut out = vec![Datum::Null; 4];
    c.bench_function("row/decode", |b| b.iter(|| row::decode(&table, &value, &[true; 4], &mut out)));
    c.bench_function("row/decode one column", |b| {
        b.iter(|| row::decode(&table, &value, &[false, false, true, false], &mut out));
    });
    c.bench_function("key/encode", |b| b.iter(|| key::row_key(&table, &values)));
    let key = key::row_key(&table, &values).expect("a whole key");
    c.bench_function("key/decode", |b| b.iter(|| key::get_row_key(&table, &key, &mut out)));
}

fn statements(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tables = Catalog::new(1, [table()]);
    let db = runtime.block_on(prepared(&tables));
    c.bench_function("statement/parse", |b| b.iter(|| parse::parse(POINT_SELECT)));
    let parsed = parse::parse(POINT_SELECT).expect("valid").remove(0);
    c.bench_function("statement/bind", |b| b.iter(|| plan::bind(&parsed, Some(&[]), &tables)));
    // From the text to the plan, as for each statement of the simple protocol.
    c.bench_function("statement/plan", |b| {
        b.iter(|| {
            let parsed = parse::parse(POINT_SELECT).expect("valid").remove(0);
            plan::bind(&parsed, Some(&[]), &tables)
        });
    });
    let bound = plan::bind(&parsed, Some(&[]), &tables).expect("valid");
    let zone = TimeZone::utc();
    c.bench_function("statement/point select", |b| {
        b.iter(|| {
            runtime.block_on(async {
                let mut txn = db.begin().await.expect("a timestamp");
                let mut execution = Execution::new(Arc::clone(&bound), vec![Datum::Int(50)]).expect("valid");
                let mut ctx = ExecContext {
                    txn: &mut txn,
                    schema: None,
                    io: IoEnv::new(&zone, Now(0)),
                    user: "",
                    database: "",
                    current_schema: None,
                    session: &NoSession,
                    commit_follows: true,
                    locks_rows: false,
                    lock_timeout: None,
                    advisory: None,
                    uses_sequences: false,
                    params: 0,
                    statement: None,
                    references: ReferenceQueue::default(),
                };
                execution.next(&mut ctx, 100).await.expect("a row")
            })
        });
    });
}

/// A database with one row.
async fn prepared(tables: &Catalog) -> Database {
    let cluster = MemoryCluster::new();
    let tso = TsoClient::new(cluster.tso());
    let db = Database::new(Client::new(Arc::new(cluster)), tso);
    let mut txn = db.begin().await.expect("a timestamp");
    let parsed = parse::parse("insert into sbtest1 values (50, 7, 'some text', 'pad')").expect("valid").remove(0);
    let bound = plan::bind(&parsed, Some(&[]), tables).expect("valid");
    let zone = TimeZone::utc();
    let mut ctx = ExecContext {
        txn: &mut txn,
        schema: None,
        io: IoEnv::new(&zone, Now(0)),
        user: "",
        database: "",
        current_schema: None,
        session: &NoSession,
        commit_follows: true,
        locks_rows: false,
        lock_timeout: None,
        advisory: None,
        uses_sequences: false,
        params: 0,
        statement: None,
        references: ReferenceQueue::default(),
    };
    let mut execution = Execution::new(bound, Vec::new()).expect("valid");
    execution.next(&mut ctx, 1).await.expect("it runs");
    txn.commit().await.expect("nothing is in the way");
    db
}

criterion_group!(benches, codec, statements);
criterion_main!(benches);
