//! Snapshots between two endpoints in one process.

use std::time::Duration;

use engine::disk::Disk as _;
use engine::store::Store as _;

use crate::ports::{Delivery, Transport as _};
use crate::region::Floors;
use crate::region::StoreId;
use crate::snapshot::tests::{key, noise, region, store};
use crate::transport::proto::{SnapshotStart, wire};
use crate::transport::tests::{Announced, Endpoint, LIMIT, Sender, announcement, options};

#[test]
fn snapshot_is_durable_before_its_message() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(20_000, 100).snapshot(), &|| true)
        .unwrap();
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
    assert_eq!(endpoint.receive(), announcement());
    let sent: Vec<_> = sender.files.rows(key(7, 2, 9)).unwrap().map(Result::unwrap).collect();
    let received: Vec<_> = endpoint.files.rows(key(7, 2, 9)).unwrap().map(Result::unwrap).collect();
    assert_eq!(sent.len(), 60_000);
    assert!(sent == received);
    assert_eq!(sender.metrics.snapshot_bytes.get(), sender.files.size(key(7, 2, 9)).unwrap());
    assert_eq!((sender.metrics.snapshots_sent.get(), endpoint.metrics.snapshots_received.get()), (1, 1));
}

/// The sender gave up waiting while the receiver, whose disk is slow, verified the file.
#[test]
fn file_that_the_receiver_has_is_not_sent_again() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    // More than the windows of the connection hold.
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &noise(16 << 20).snapshot(), &|| true)
        .unwrap();
    let size = sender.files.size(key(7, 2, 9)).unwrap();
    assert!(size > 15 << 20);
    for _ in 0..2 {
        assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
        assert_eq!(endpoint.receive(), announcement());
    }
    assert!(sender.metrics.snapshot_bytes.get() < size * 3 / 2, "{} bytes", sender.metrics.snapshot_bytes.get());
    assert_eq!((sender.metrics.snapshots_sent.get(), endpoint.metrics.snapshots_received.get()), (2, 1));
}

/// The file `7-2-9` is refused while what was announced is arriving, and taken once that is cut off.
fn waits_for(sender: &Sender, endpoint: &mut Endpoint, (chunks, stalled): Announced) {
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Busy);
    drop(chunks);
    assert!(sender.runtime.block_on(stalled).unwrap().is_err(), "it is cut off");
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
    assert_eq!(endpoint.receive(), announcement());
}

/// While a file is still being received or verified, nobody sends it a second time.
#[test]
fn file_that_is_arriving_is_not_received_twice() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(10, 10).snapshot(), &|| true)
        .unwrap();
    let start = SnapshotStart { message: announcement(), key: key(7, 2, 9), size: 1000 };
    let announced = sender.announce(&endpoint, start);
    waits_for(&sender, &mut endpoint, announced);
}

/// Snapshots of 16 GiB and more were refused.
#[test]
fn size_of_a_snapshot_is_not_limited() {
    let sender = Sender::new(options(1));
    let endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    let start = SnapshotStart { message: announcement(), key: key(7, 2, 9), size: 1 << 44 };
    let only =
        wire::SnapshotChunk { start: Some(start.encode(options(1).hello(StoreId::new(2)))), data: Vec::new().into() };
    let status = sender.runtime.block_on(sender.raw(2).snapshot(tokio_stream::iter([only]))).unwrap_err();
    assert_eq!((status.code(), endpoint.files.list().unwrap().len()), (tonic::Code::DataLoss, 0), "{status}");
}

/// The receiver of a large file needs longer to verify it.
#[test]
fn answer_to_a_large_snapshot_may_take_longer() {
    let options = options(1);
    assert_eq!(options.snapshot_answer_timeout(1 << 20), options.snapshot_stall);
    assert_eq!(options.snapshot_answer_timeout(64 << 30), options.snapshot_stall + Duration::from_secs(4096));
}

/// Only what is wrong with the file is a reason to build it anew.
#[test]
fn undelivered_snapshot_is_reported_with_who_is_at_fault() {
    let sender = Sender::new(options(1));
    let send = || sender.send_snapshot(announcement(), key(7, 2, 9));
    assert_eq!(send(), Delivery::Damaged, "no file");
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(10, 10).snapshot(), &|| true)
        .unwrap();
    assert_eq!(send(), Delivery::Busy, "no address");
    let mut endpoint = Endpoint::start(options(2), 1, &sender.addresses);
    let mut wrong = announcement();
    wrong.message.mut_snapshot().mut_metadata().index = 10;
    assert_eq!(sender.send_snapshot(wrong, key(7, 2, 9)), Delivery::Busy, "not what the message announces");
    assert_eq!(send(), Delivery::Delivered);
    assert_eq!(send(), Delivery::Busy, "the inbox is full");
    assert_eq!(endpoint.receive(), announcement());
    drop(endpoint);
    assert_eq!(send(), Delivery::Busy, "the store is down");
    assert_eq!((sender.metrics.snapshots_sent.get(), sender.metrics.snapshots_failed.get()), (1, 5));
}

/// The receiver finds out what the sender does not see: bits that flipped in the middle of the file.
#[test]
fn file_that_arrives_damaged_is_reported_as_damaged() {
    let sender = Sender::new(options(1));
    let endpoint = Endpoint::start(options(2), 1, &sender.addresses);
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(10, 10).snapshot(), &|| true)
        .unwrap();
    let name = sender.disk.list().unwrap().pop().unwrap();
    let mut content = sender.disk.content(&name).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    sender.disk.set_content(&name, content);
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Damaged);
    assert_eq!(endpoint.files.list().unwrap(), []);
    // The next build does not take it for sound.
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(10, 10).snapshot(), &|| true)
        .unwrap();
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
}

/// A receiver at its limit of files refuses another, and takes it later.
#[test]
fn receiver_at_its_limit_is_busy() {
    let sender = Sender::new(options(1));
    let mut limited = options(2);
    limited.snapshots_receiving = 1;
    let mut endpoint = Endpoint::start(limited, 16, &sender.addresses);
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(10, 10).snapshot(), &|| true)
        .unwrap();
    let mut other = announcement();
    other.message.mut_snapshot().mut_metadata().index = 8;
    let announced = sender.announce(&endpoint, SnapshotStart { message: other, key: key(7, 2, 8), size: 1000 });
    waits_for(&sender, &mut endpoint, announced);
}

#[test]
fn dropping_the_transport_reports_snapshots_as_undelivered() {
    let sender = Sender::new(options(1));
    sender
        .files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(10, 10).snapshot(), &|| true)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    sender.addresses.0.lock().insert(StoreId::new(2), listener.local_addr().unwrap().to_string());
    let (report, reported) = tokio::sync::oneshot::channel();
    let done = Box::new(move |delivery| report.send(delivery).unwrap());
    sender.transport.send_snapshot(announcement(), key(7, 2, 9), done);
    let Sender { runtime, transport, .. } = sender;
    drop(transport);
    let reported = runtime.block_on(async { tokio::time::timeout(LIMIT, reported).await });
    assert_eq!(reported.unwrap().unwrap(), Delivery::Busy);
}
