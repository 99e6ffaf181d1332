//! The coordinator's cost of a transaction, over an in-memory cluster: no network, no disk, no Raft.

#![allow(clippy::expect_used, missing_docs, reason = "a benchmark stops by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use kv::Key;
use kv::client::Client;
use kv::memory::MemoryCluster;
use tokio::runtime::Runtime;
use tso::TsoClient;
use txn::Database;

const KEYS: u32 = 10_000;

fn key(n: u32) -> Key {
    Key::new((n % KEYS).to_be_bytes().to_vec())
}

/// Four regions on three stores.
fn database() -> Database {
    let splits = [1, 2, 3].map(|n| key(n * KEYS / 4));
    let cluster =
        splits.into_iter().fold(MemoryCluster::builder().stores(3), |builder, at| builder.split_at(at)).build();
    Database::new(Client::new(Arc::new(cluster.clone())), TsoClient::new(cluster.tso()))
}

async fn write(db: &Database, from: u32, keys: u32, step: u32) {
    let mut txn = db.begin().await.expect("a timestamp");
    for n in 0..keys {
        txn.put(key(from.wrapping_add(n * step)), Bytes::from_static(&[7; 100])).expect("fits");
    }
    txn.commit().await.expect("nothing is in the way");
}

fn transactions(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let db = runtime.block_on(async {
        let db = database();
        for from in (0..KEYS).step_by(100) {
            write(&db, from, 100, 1).await;
        }
        db
    });
    let mut n = 0u32;
    let mut next = || {
        n = n.wrapping_add(7_919);
        n
    };
    c.bench_function("begin_get", |b| {
        b.iter(|| {
            runtime.block_on(async {
                let txn = db.begin().await.expect("a timestamp");
                txn.get(&key(next())).await.expect("served")
            })
        });
    });
    c.bench_function("commit_1_key", |b| b.iter(|| runtime.block_on(write(&db, next(), 1, 1))));
    c.bench_function("commit_10_keys_1_region", |b| b.iter(|| runtime.block_on(write(&db, next(), 10, 1))));
    c.bench_function("commit_10_keys_4_regions", |b| b.iter(|| runtime.block_on(write(&db, next(), 10, 997))));
}

criterion_group!(benches, transactions);
criterion_main!(benches);
