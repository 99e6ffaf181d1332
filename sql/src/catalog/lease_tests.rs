//! Single histories of leases and schema changes that random ones seldom meet. Each shows the step of the protocol that
//! it needs: without the step, by a planted bug, it ends otherwise.

use std::sync::Arc;

use bytes::Bytes;
use kv::Key;
use kv::api::RequestBody;
use tso::Timestamp;
use txn::TxnError;

use super::history_tests::{LEASE, World, create_tables};
use super::planted::PlantedBug;
use super::{NodeCatalog, SchemaChange};
use crate::codec::key;
use crate::error::SqlError;
use crate::table::{StorageId, Table};

/// A world with two nodes, of which only the first has a lease, and two tables.
async fn two_nodes(bug: Option<PlantedBug>) -> (Arc<World>, NodeCatalog) {
    let world = World::new(1, bug);
    let (first, _) = world.node(1, 1);
    create_tables(&first).await.expect("nothing is in the way");
    (world, first)
}

/// The table `a` as a node plans with it.
fn planned(node: &NodeCatalog) -> Arc<Table> {
    node.current().expect("a lease").catalog.table("a").expect("there").clone()
}

/// Truncates the table `a`. Returns its new storage.
async fn truncate(node: &NodeCatalog) -> Result<StorageId, SqlError> {
    let slot = node.register();
    let (lease, mut txn) = node.begin().await?;
    let live = slot.begin(txn.start_ts());
    let mut change = SchemaChange::new(node.clone(), &txn, &live, lease.catalog.clone());
    change.truncate(&mut txn, &[lease.catalog.table("a").expect("there").clone()]).await?;
    node.begin_commit(&live, &mut txn, None).expect("nothing is in the way");
    change.begin_commit();
    txn.commit().await?;
    drop(live);
    change.publish().await?;
    Ok(planned(node).storage)
}

/// The node acquires its first lease while another one truncates a table, which does not see the lease.
#[tokio::test(start_paused = true)]
async fn an_acquisition_takes_a_second_look_after_its_commit() {
    for (bug, is_new) in [(None, true), (Some(PlantedBug::NoSecondLook), false)] {
        let (world, first) = two_nodes(bug).await;
        let (second, gate) = world.node(2, 2);
        gate.stop_at(|body| matches!(body, RequestBody::Prewrite(_)));
        let renewing = second.clone();
        let renewal = tokio::spawn(async move { renewing.renew().await });
        gate.until_closed().await;
        let storage = truncate(&first).await.expect("nobody is in the way");
        // Up to the renewal after the acquisition.
        gate.stop_at(|body| matches!(body, RequestBody::BatchGet { .. }));
        gate.until_closed().await;
        assert_eq!(planned(&second).storage == storage, is_new, "{bug:?}");
        gate.open();
        renewal.await.expect("no panic").expect("it renews");
    }
}

/// A renewal is under way while the lease ends and another node truncates a table without waiting for it.
#[tokio::test(start_paused = true)]
async fn a_renewal_does_not_commit_above_the_lease_that_it_renews() {
    for (bug, is_new) in [(None, true), (Some(PlantedBug::UnboundRenewal), false)] {
        let (world, first) = two_nodes(bug).await;
        let (second, gate) = world.node(2, 2);
        second.renew().await.expect("it renews");
        let lease_ms = LEASE.as_millis() as u64;
        world.cluster.tso().advance_ms(lease_ms / 2);
        gate.stop_at(|body| matches!(body, RequestBody::Prewrite(_)));
        let renewing = second.clone();
        let renewal = tokio::spawn(async move { renewing.renew().await });
        gate.until_closed().await;
        world.cluster.tso().advance_ms(lease_ms / 2 + 10);
        let storage = truncate(&first).await.expect("the second node is silent");
        gate.open();
        renewal.await.expect("no panic").expect("it renews");
        assert_eq!(planned(&second).storage == storage, is_new, "{bug:?}");
        let txn = second.state.db.begin().await.expect("a timestamp");
        assert!(second.current().expect("a lease").covers(txn.start_ts()), "it serves statements with that plan");
    }
}

/// Any node may finish a schema change at any time. If its transaction has not committed by then, it never does.
#[tokio::test(start_paused = true)]
async fn a_schema_change_whose_tables_were_opened_again_fails() {
    for (bug, fails) in [(None, true), (Some(PlantedBug::UnfencedReopening), false)] {
        let (world, first) = two_nodes(bug).await;
        let (second, _) = world.node(2, 2);
        second.renew().await.expect("it renews");
        let slot = first.register();
        let (lease, mut txn) = first.begin().await.expect("a lease");
        let live = slot.begin(txn.start_ts());
        let mut change = SchemaChange::new(first.clone(), &txn, &live, lease.catalog.clone());
        change.truncate(&mut txn, &[planned(&first)]).await.expect("nothing is in the way");
        assert!(!first.current().expect("a lease").catalog.is_open());
        second.finish(txn.start_ts()).await.expect("it opens the table");
        change.begin_commit();
        let committed = txn.commit().await;
        assert_eq!(matches!(committed, Err(TxnError::Conflict(_))), fails, "{bug:?}: {committed:?}");
    }
}

/// A node that has closed a table and crashed: another node opens the table when the lease of the first is over.
#[tokio::test(start_paused = true)]
async fn the_tables_of_a_crashed_node_are_opened_again() {
    let (world, first) = two_nodes(None).await;
    let (second, _) = world.node(2, 2);
    let slot = first.register();
    let (lease, mut txn) = first.begin().await.expect("a lease");
    let live = slot.begin(txn.start_ts());
    let mut change = SchemaChange::new(first.clone(), &txn, &live, lease.catalog.clone());
    change.truncate(&mut txn, &[planned(&first)]).await.expect("nobody else has a lease");
    // The first node does nothing more.
    std::mem::forget(change);
    second.renew().await.expect("it renews");
    second.sweep().await;
    second.renew().await.expect("it renews");
    assert!(!second.current().expect("a lease").catalog.is_open(), "the first node has its lease");
    world.cluster.tso().advance_ms(LEASE.as_millis() as u64 + 1);
    second.renew().await.expect("it renews");
    second.sweep().await;
    second.renew().await.expect("it renews");
    assert!(second.current().expect("a lease").catalog.is_open());
    assert!(matches!(txn.commit().await, Err(TxnError::Conflict(_))), "it has lost its table");
    truncate(&second).await.expect("nothing is in the way");
}

/// A statement is planned and has entered its table. Then the table is truncated, for which a reader is not waited.
/// Then the statement reads, at a start_ts that the store of the row takes: above the truncation, from the old storage.
#[tokio::test(start_paused = true)]
async fn a_read_that_takes_its_start_ts_late_looks_at_the_catalog_again() {
    for is_silent in [false, true] {
        for (bug, is_refused) in [(None, true), (Some(PlantedBug::UncheckedStart), false)] {
            let (world, first) = two_nodes(bug).await;
            let table = planned(&first);
            let row = Key::new([key::storage_range(table.storage).0.as_bytes(), b"row"].concat());
            let mut txn = first.state.db.begin().await.expect("a timestamp");
            txn.put(row.clone(), Bytes::from_static(b"old")).expect("fits");
            txn.commit().await.expect("nothing is in the way");
            let (second, gate) = world.node(2, 2);
            second.renew().await.expect("it renews");
            let slot = second.register();
            // Locates the region, as the statement before does.
            second.state.db.begin().await.expect("a timestamp").get(&row).await.expect("served");
            let (lease, txn) = second.begin_deferred().await.expect("a lease");
            assert_eq!(txn.start_ts(), Timestamp::ZERO);
            let live = slot.begin(txn.start_ts());
            let table = lease.catalog.table("a").expect("there").clone();
            second.enter(&live, std::iter::once(&table), &[]).expect("it is open");
            if is_silent {
                gate.close();
                world.cluster.tso().advance_ms(LEASE.as_millis() as u64 + 1);
            }
            truncate(&first).await.expect("nobody is in the way");
            let truncated = world.cluster.timestamp();
            gate.open();
            let stale = txn.get(&row).await.expect("served");
            assert!(txn.start_ts() > truncated && stale.is_some(), "the row is not reclaimed yet");
            let started = second.started(&live, txn.start_ts(), txn.read_ts());
            assert_eq!(started.is_err(), is_refused, "{bug:?}, silent: {is_silent}");
        }
    }
}

/// A writer holds the schema change up, so what it has read counts.
#[tokio::test(start_paused = true)]
async fn a_writer_that_takes_its_start_ts_late_goes_on_while_a_schema_change_waits_for_it() {
    let (world, first) = two_nodes(None).await;
    let (second, _) = world.node(2, 2);
    second.renew().await.expect("it renews");
    let slot = second.register();
    let (lease, mut txn) = second.begin_deferred().await.expect("a lease");
    let live = slot.begin(txn.start_ts());
    let table = lease.catalog.table("a").expect("there").clone();
    second.enter(&live, std::iter::once(&table), &[table.storage]).expect("it is open");
    let truncating = first.clone();
    let truncation = tokio::spawn(async move { truncate(&truncating).await });
    while second.current().expect("a lease").catalog.is_open() {
        second.renew().await.expect("it renews");
        tokio::time::sleep(LEASE / 20).await;
    }
    txn.take_start_ts().await.expect("a timestamp");
    second.started(&live, txn.start_ts(), txn.read_ts()).expect("the truncation waits");
    second.begin_commit(&live, &mut txn, None).expect("the truncation waits");
    drop(live);
    truncation.await.expect("no panic").expect("the writer has ended");
}
