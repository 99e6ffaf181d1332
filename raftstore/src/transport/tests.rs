//! Two endpoints in one process, over loopback.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::disk::{Disk as _, SimDisk};
use engine::store::Store as _;
use parking_lot::Mutex;
use raft::eraftpb::{Entry, Message, MessageType, Snapshot};
use tokio::io::AsyncReadExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};

use super::proto::{SnapshotStart, decode_message, encode_message, wire};
use super::{
    AddressBook, ClusterId, DropReason, GrpcTransport, Inbox, NotTaken, TransportMetrics, TransportOptions,
    TransportServer,
};
use crate::ports::{Delivery, RaftMessage, SendError, Transport as _};
use crate::region::{Epoch, PeerId, PeerMeta, PeerRole, RegionId, StoreId};
use crate::snapshot::tests::{key, noise, region, store};
use crate::snapshot::{SnapshotFiles, SnapshotKey};

const CLUSTER: ClusterId = ClusterId::new(0xc0ffee);
const LIMIT: Duration = Duration::from_secs(20);

fn peer(store: u64) -> PeerMeta {
    PeerMeta { id: PeerId::new(store * 10), store: StoreId::new(store), role: PeerRole::Voter }
}

/// A message with one entry of `size` bytes; its commit index is its number.
pub(super) fn message(from: u64, to: u64, size: usize) -> RaftMessage {
    let entry = Entry { data: vec![7; size], ..Entry::default() };
    let message = Message { from: from * 10, to: to * 10, entries: vec![entry], ..Message::default() };
    let epoch = Epoch { conf_ver: 3, version: 4 };
    RaftMessage { region: RegionId::new(5), epoch, from: peer(from), to: peer(to), message }
}

fn numbered(number: u64, size: usize) -> RaftMessage {
    let mut message = message(1, 2, size);
    message.message.commit = number;
    message
}

/// Addresses that a test can change.
#[derive(Default)]
struct Addresses(Mutex<BTreeMap<StoreId, String>>);

impl AddressBook for Addresses {
    fn address(&self, store: StoreId) -> Option<String> {
        self.0.lock().get(&store).cloned()
    }
}

struct ChannelInbox(mpsc::Sender<RaftMessage>);

impl Inbox for ChannelInbox {
    fn deliver(&self, message: RaftMessage) -> Result<(), NotTaken> {
        self.0.try_send(message).map_err(|_| NotTaken)
    }
}

/// The receiving side of a store on its own runtime. Dropping it cuts its connections, as a crash does.
struct Endpoint {
    runtime: Option<Runtime>,
    inbox: mpsc::Receiver<RaftMessage>,
    /// The disk of `files`.
    disk: Arc<SimDisk>,
    files: SnapshotFiles,
    metrics: TransportMetrics,
    server: TransportServer,
}

fn options(store: u64) -> TransportOptions {
    let mut options = TransportOptions::new(CLUSTER, StoreId::new(store), store);
    options.backoff_floor = Duration::from_millis(5);
    options.backoff_cap = Duration::from_millis(20);
    options
}

fn metrics() -> TransportMetrics {
    TransportMetrics::new(&prometheus::Registry::new()).unwrap()
}

impl Endpoint {
    fn start(options: TransportOptions, inbox_size: usize, addresses: &Addresses) -> Endpoint {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (sender, inbox) = mpsc::channel(inbox_size);
        let disk = SimDisk::new();
        let (files, metrics) = (SnapshotFiles::open(disk.clone()).unwrap(), metrics());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        addresses.0.lock().insert(options.store, listener.local_addr().unwrap().to_string());
        let inbox_handle = Arc::new(ChannelInbox(sender));
        let server = TransportServer::new(options.clone(), inbox_handle, files.clone(), metrics.clone());
        let (builder, service) = (TransportServer::builder(&options), server.service());
        runtime.spawn(async move { builder.serve_with_incoming(service, TcpListenerStream::new(listener)).await });
        Endpoint { runtime: Some(runtime), inbox, disk, files, metrics, server }
    }

    fn receive(&mut self) -> RaftMessage {
        let runtime = self.runtime.as_ref().unwrap();
        runtime.block_on(async { tokio::time::timeout(LIMIT, self.inbox.recv()).await }).unwrap().unwrap()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The sending side of store 1.
struct Sender {
    runtime: Runtime,
    transport: GrpcTransport,
    addresses: Arc<Addresses>,
    /// The disk of `files`.
    disk: Arc<SimDisk>,
    files: SnapshotFiles,
    metrics: TransportMetrics,
}

impl Sender {
    fn new(options: TransportOptions) -> Sender {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let addresses = Arc::new(Addresses::default());
        let disk = SimDisk::new();
        let (files, metrics) = (SnapshotFiles::open(disk.clone()).unwrap(), metrics());
        let transport =
            GrpcTransport::new(options, addresses.clone(), files.clone(), metrics.clone(), runtime.handle().clone());
        Sender { runtime, transport, addresses, disk, files, metrics }
    }

    /// Polls until `check` holds.
    fn until(&self, what: &str, mut check: impl FnMut() -> bool) {
        let poll = async {
            while !check() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let polled = self.runtime.block_on(async { tokio::time::timeout(LIMIT, poll).await });
        assert!(polled.is_ok(), "waited for: {what}");
    }

    /// Sends a snapshot from store 1 to store 2 and waits for the report.
    fn send_snapshot(&self, message: RaftMessage, key: SnapshotKey) -> Delivery {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.transport.send_snapshot(message, key, Box::new(move |delivery| sender.send(delivery).unwrap()));
        self.runtime.block_on(async { tokio::time::timeout(LIMIT, receiver).await }).unwrap().unwrap()
    }

    /// Announces a file to store 2 and sends nothing of it, until the returned sender is dropped. Returns once the
    /// announcement has arrived.
    fn announce(
        &self,
        endpoint: &Endpoint,
        start: SnapshotStart,
    ) -> (mpsc::Sender<wire::SnapshotChunk>, tokio::task::JoinHandle<Result<(), tonic::Status>>) {
        let start = start.encode(options(1).hello(StoreId::new(2)));
        let (chunks, outgoing) = mpsc::channel(1);
        let mut raw = self.raw(2);
        let call = async move { raw.snapshot(ReceiverStream::new(outgoing)).await.map(drop) };
        let stalled = self.runtime.spawn(call);
        chunks.blocking_send(wire::SnapshotChunk { start: Some(start), data: Vec::new().into() }).unwrap();
        self.until("the announcement to arrive", || {
            endpoint.disk.list().unwrap().iter().any(|name| name.ends_with(".tmp"))
        });
        (chunks, stalled)
    }

    /// A raw gRPC client, for protocol violations.
    fn raw(&self, store: u64) -> wire::raft_transport_client::RaftTransportClient<tonic::transport::Channel> {
        let address = self.addresses.address(StoreId::new(store)).unwrap();
        let connect = wire::raft_transport_client::RaftTransportClient::connect(format!("http://{address}"));
        self.runtime.block_on(connect).unwrap()
    }
}

#[test]
fn messages_round_trip() {
    let message = numbered(7, 1000);
    assert_eq!(decode_message(encode_message(&message)).unwrap(), message);
}

#[test]
fn golden_bytes() {
    use prost::Message as _;
    let frame = wire::MessageFrame {
        hello: Some(options(1).hello(StoreId::new(2))),
        messages: vec![encode_message(&numbered(7, 3))],
    };
    let hex: String = frame.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    let golden = concat!(
        "0a0b080110eeff830618012002", // hello: protocol 1, cluster, from 1, to 2
        "12270805",
        "120408031004", // message: region 5, epoch
        "1a06080a10011801",
        "2206081410021801",               // from, to
        "2a0d1014180a3a0522030707074007"  // the message of raft-rs
    );
    assert_eq!(hex, golden, "the protocol changed");
}

#[test]
fn malformed_messages_are_refused() {
    let good = encode_message(&numbered(1, 1));
    type Change = Box<dyn Fn(&mut wire::RaftMessage)>;
    let bad: Vec<(&str, Change)> = vec![
        ("region 0", Box::new(|message| message.region_id = 0)),
        ("no epoch", Box::new(|message| message.epoch = None)),
        ("no sender", Box::new(|message| message.from = None)),
        ("peer 0", Box::new(|message| message.to.as_mut().unwrap().id = 0)),
        ("store 0", Box::new(|message| message.to.as_mut().unwrap().store = 0)),
        ("role", Box::new(|message| message.to.as_mut().unwrap().role = 9)),
        ("another peer", Box::new(|message| message.to.as_mut().unwrap().id = 77)),
        ("inner bytes", Box::new(|message| message.message = vec![0xff; 5].into())),
    ];
    for (what, change) in bad {
        let mut message = good.clone();
        change(&mut message);
        assert!(decode_message(message).is_err(), "{what}");
    }
}

#[test]
fn messages_arrive_in_order_and_in_few_frames() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 4096, &sender.addresses);
    for number in 0..2000 {
        sender.transport.send(numbered(number, 10)).unwrap();
    }
    for number in 0..2000 {
        assert_eq!(endpoint.receive(), numbered(number, 10));
    }
    assert_eq!(sender.metrics.sent_messages.get(), 2000);
    assert!(sender.metrics.sent_frames.get() < 2000, "{} frames", sender.metrics.sent_frames.get());
    sender.until("the server has counted", || endpoint.metrics.received_messages.get() == 2000);
}

#[test]
fn unknown_store_is_reported() {
    let sender = Sender::new(options(1));
    assert_eq!(sender.transport.send(message(1, 2, 1)), Err(SendError::UnknownStore));
}

#[test]
fn reconnects_after_the_server_restarts() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.transport.send(numbered(1, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 1);
    drop(endpoint);
    sender.until("the store is unreachable", || sender.transport.send(numbered(2, 1)) == Err(SendError::Unreachable));
    assert!(sender.metrics.dropped(DropReason::Disconnected) > 0);
    // The server returns at another address.
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.until("a message is through", || {
        let _ = sender.transport.send(numbered(3, 1));
        !endpoint.inbox.is_empty()
    });
    assert!(endpoint.receive().message.commit >= 2);
    assert!(sender.metrics.connection_failures.get() > 0);
}

#[test]
fn stopping_server_ends_its_streams() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.transport.send(numbered(1, 1)).unwrap();
    endpoint.receive();
    endpoint.server.close();
    sender.until("the stream ended", || sender.metrics.connection_failures.get() > 0);
}

/// Forwards to `target` what each connection sends, up to `limit` bytes of it; then that connection is stuck. Returns
/// the address to connect to.
async fn stuck_link(target: String, limit: u64) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let (near_in, mut near_out) = near.into_split();
            let (mut far_in, mut far_out) = tokio::net::TcpStream::connect(&target).await.unwrap().into_split();
            tokio::spawn(async move { tokio::io::copy(&mut far_in, &mut near_out).await });
            tokio::spawn(async move {
                let copied = tokio::io::copy(&mut near_in.take(limit), &mut far_out).await;
                // Holds both halves open.
                std::future::pending::<()>().await;
                drop((copied, far_out));
            });
        }
    });
    address
}

/// Regression: heartbeats waited behind the appends before them, so a link full of entries took leaderships.
#[test]
fn heartbeats_do_not_wait_behind_appends() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 4096, &sender.addresses);
    let behind = sender.addresses.address(StoreId::new(2)).unwrap();
    let link = sender.runtime.block_on(async { stuck_link(behind, 300_000).await });
    sender.addresses.0.lock().insert(StoreId::new(2), link);
    let of_kind = |kind, size| {
        let mut message = message(1, 2, size);
        message.message.set_msg_type(kind);
        message
    };
    // Twenty megabytes: more than all buffers on the way hold.
    for _ in 0..200 {
        sender.transport.send(of_kind(MessageType::MsgAppend, 100_000)).unwrap();
    }
    sender.transport.send(of_kind(MessageType::MsgTimeoutNow, 1)).unwrap();
    sender.transport.send(of_kind(MessageType::MsgHeartbeat, 1)).unwrap();
    sender.transport.send(of_kind(MessageType::MsgAppendResponse, 1)).unwrap();
    let mut arrived = Vec::new();
    while !arrived.contains(&MessageType::MsgAppendResponse) {
        arrived.push(endpoint.receive().message.get_msg_type());
    }
    let appends = arrived.iter().filter(|kind| **kind == MessageType::MsgAppend).count();
    assert!(
        arrived.contains(&MessageType::MsgHeartbeat) && arrived.len() == appends + 2 && appends <= 3,
        "{arrived:?}"
    );
}

#[test]
fn back_pressure_refuses_instead_of_growing() {
    let mut small = options(1);
    small.queue_messages = 50;
    let sender = Sender::new(small);
    // A server that accepts connections and never answers: only the queue takes messages.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    sender.addresses.0.lock().insert(StoreId::new(2), listener.local_addr().unwrap().to_string());
    let results: Vec<_> = (0..500).map(|number| sender.transport.send(numbered(number, 100_000))).collect();
    assert!(results.contains(&Err(SendError::Unreachable)));
    let taken = results.iter().filter(|result| result.is_ok()).count();
    assert!((50..150).contains(&taken), "{taken} messages were taken");
    assert!(sender.metrics.dropped(DropReason::QueueFull) > 0);
}

#[test]
fn full_inbox_drops_without_blocking() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 4, &sender.addresses);
    for number in 0..100 {
        sender.transport.send(numbered(number, 1)).unwrap();
    }
    sender.until("all are accounted for", || {
        endpoint.metrics.received_messages.get() + endpoint.metrics.dropped(DropReason::NotTaken) == 100
    });
    assert!(endpoint.metrics.dropped(DropReason::NotTaken) >= 96 - 1);
    assert_eq!(endpoint.receive().message.commit, 0);
}

#[test]
fn another_cluster_is_refused_with_a_reason() {
    let mut foreign = options(1);
    foreign.cluster = ClusterId::new(0xdead);
    let sender = Sender::new(foreign.clone());
    let endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    let hello = wire::MessageFrame { hello: Some(foreign.hello(StoreId::new(2))), messages: Vec::new() };
    let status = sender.runtime.block_on(sender.raw(2).messages(tokio_stream::once(hello))).unwrap_err();
    assert_eq!(status.code(), tonic::Code::PermissionDenied);
    assert_eq!(status.message(), "store 1 belongs to cluster 000000000000dead, store 2 to cluster 0000000000c0ffee");
    sender.transport.send(numbered(1, 1)).unwrap();
    sender.until("unreachable", || sender.transport.send(numbered(2, 1)) == Err(SendError::Unreachable));
    assert!(endpoint.inbox.is_empty());
    assert_eq!(endpoint.metrics.received_messages.get(), 0);
}

#[test]
fn malformed_stream_ends_without_affecting_others() {
    let sender = Sender::new(options(1));
    let mut small = options(2);
    small.max_frame_bytes = 100_000;
    let mut endpoint = Endpoint::start(small, 16, &sender.addresses);
    sender.transport.send(numbered(1, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 1);
    let hello = options(1).hello(StoreId::new(2));
    let frame = |hello: Option<wire::Hello>, messages| wire::MessageFrame { hello, messages };
    let bad = encode_message(&message(3, 2, 1));
    let (mut strange, mut entry) = (message(1, 2, 1), message(1, 2, 1));
    (strange.message.msg_type, entry.message.entries[0].entry_type) = (99, 99);
    let (strange, entry) = (encode_message(&strange), encode_message(&entry));
    let other_store = wire::Hello { to_store: 9, ..hello };
    let other_protocol = wire::Hello { protocol: 2, ..hello };
    let cases = [
        ("no hello", vec![frame(None, vec![encode_message(&numbered(1, 1))])], tonic::Code::InvalidArgument),
        ("another store", vec![frame(Some(other_store), vec![])], tonic::Code::FailedPrecondition),
        ("another protocol", vec![frame(Some(other_protocol), vec![])], tonic::Code::FailedPrecondition),
        ("a sender that lies", vec![frame(Some(hello), vec![bad])], tonic::Code::InvalidArgument),
        ("a message of an unknown kind", vec![frame(Some(hello), vec![strange])], tonic::Code::InvalidArgument),
        ("an entry of an unknown kind", vec![frame(Some(hello), vec![entry])], tonic::Code::InvalidArgument),
        ("two hellos", vec![frame(Some(hello), vec![]), frame(Some(hello), vec![])], tonic::Code::InvalidArgument),
        (
            "an oversized frame",
            vec![frame(Some(hello), vec![encode_message(&numbered(1, 200_000))])],
            tonic::Code::OutOfRange,
        ),
    ];
    for (what, frames, code) in cases {
        let status = sender.runtime.block_on(sender.raw(2).messages(tokio_stream::iter(frames))).unwrap_err();
        assert_eq!(status.code(), code, "{what}: {status}");
    }
    assert_eq!(endpoint.metrics.refused_streams.get(), 8);
    sender.transport.send(numbered(2, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 2);
    assert_eq!(sender.metrics.connection_failures.get(), 0);
}

#[test]
fn message_above_the_frame_limit_is_refused_by_the_sender() {
    let mut small = options(1);
    small.max_frame_bytes = 100_000;
    let sender = Sender::new(small);
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    assert!(matches!(sender.transport.send(numbered(1, 200_000)), Err(SendError::TooLarge { limit: 99_936, .. })));
    sender.transport.send(numbered(2, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 2);
    assert_eq!(sender.metrics.dropped(DropReason::TooLarge), 1);
    assert_eq!(sender.metrics.connection_failures.get(), 0);
}

/// A `MsgSnapshot` for `7-2-9`.
fn announcement() -> RaftMessage {
    let mut snapshot = Snapshot::default();
    snapshot.mut_metadata().term = 2;
    snapshot.mut_metadata().index = 9;
    let mut message = Message { from: 10, to: 20, ..Message::default() };
    message.set_msg_type(MessageType::MsgSnapshot);
    message.set_snapshot(snapshot);
    let epoch = Epoch { conf_ver: 3, version: 4 };
    RaftMessage { region: RegionId::new(7), epoch, from: peer(1), to: peer(2), message }
}

#[test]
fn snapshot_is_durable_before_its_message() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &store(20_000, 100).snapshot(), &|| true).unwrap();
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
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &noise(16 << 20).snapshot(), &|| true).unwrap();
    let size = sender.files.size(key(7, 2, 9)).unwrap();
    assert!(size > 15 << 20);
    for _ in 0..2 {
        assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
        assert_eq!(endpoint.receive(), announcement());
    }
    assert!(sender.metrics.snapshot_bytes.get() < size * 3 / 2, "{} bytes", sender.metrics.snapshot_bytes.get());
    assert_eq!((sender.metrics.snapshots_sent.get(), endpoint.metrics.snapshots_received.get()), (2, 1));
}

/// While a file is still being received or verified, nobody sends it a second time.
#[test]
fn file_that_is_arriving_is_not_received_twice() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &store(10, 10).snapshot(), &|| true).unwrap();
    let start = SnapshotStart { message: announcement(), key: key(7, 2, 9), size: 1000 };
    let (chunks, stalled) = sender.announce(&endpoint, start);
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Busy);
    drop(chunks);
    assert!(sender.runtime.block_on(stalled).unwrap().is_err(), "it is cut off");
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
    assert_eq!(endpoint.receive(), announcement());
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
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &store(10, 10).snapshot(), &|| true).unwrap();
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
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &store(10, 10).snapshot(), &|| true).unwrap();
    let name = sender.disk.list().unwrap().pop().unwrap();
    let mut content = sender.disk.content(&name).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    sender.disk.set_content(&name, content);
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Damaged);
    assert_eq!(endpoint.files.list().unwrap(), []);
    // The next build does not take it for sound.
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &store(10, 10).snapshot(), &|| true).unwrap();
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
}

/// A receiver at its limit of files refuses another, and takes it later.
#[test]
fn receiver_at_its_limit_is_busy() {
    let sender = Sender::new(options(1));
    let mut limited = options(2);
    limited.snapshots_receiving = 1;
    let mut endpoint = Endpoint::start(limited, 16, &sender.addresses);
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &store(10, 10).snapshot(), &|| true).unwrap();
    let mut other = announcement();
    other.message.mut_snapshot().mut_metadata().index = 8;
    let (chunks, stalled) = sender.announce(&endpoint, SnapshotStart { message: other, key: key(7, 2, 8), size: 1000 });
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Busy);
    drop(chunks);
    assert!(sender.runtime.block_on(stalled).unwrap().is_err(), "it is cut off");
    assert_eq!(sender.send_snapshot(announcement(), key(7, 2, 9)), Delivery::Delivered);
    assert_eq!(endpoint.receive(), announcement());
}

#[test]
fn dropping_the_transport_reports_snapshots_as_undelivered() {
    let sender = Sender::new(options(1));
    sender.files.build(key(7, 2, 9), &region(b"k", b"l"), &store(10, 10).snapshot(), &|| true).unwrap();
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
