//! Two endpoints in one process, over loopback.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::disk::{Disk as _, SimDisk};
use parking_lot::Mutex;
use raft::eraftpb::{Entry, Message, MessageType, Snapshot};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::proto::{SnapshotStart, decode_message, encode_message, wire};
use super::stream::{self, PROBE_ANSWER, STORES_BYTES, Stores};
use super::{
    AddressBook, ClusterId, DropReason, FIRST_BYTE, Inbox, StoreTransport, TransportMetrics, TransportOptions,
    TransportServer,
};
use crate::ports::{Delivery, RaftMessage, SendError, Transport as _};
use crate::region::{Epoch, PeerId, PeerMeta, PeerRole, RegionId, StoreId};
use crate::snapshot::tests::key;
use crate::snapshot::{SnapshotFiles, SnapshotKey};

const CLUSTER: ClusterId = ClusterId::new(0xc0ffee);
const STORES: Stores = Stores { from: StoreId::new(1), to: StoreId::new(2) };
pub(super) const LIMIT: Duration = Duration::from_secs(20);

fn peer(store: u64) -> PeerMeta {
    PeerMeta { id: PeerId::new(store * 10), store: StoreId::new(store), role: PeerRole::Voter }
}

/// A message of store 1 to store 2.
fn of_kind(kind: MessageType, size: usize) -> RaftMessage {
    let mut message = message(1, 2, size);
    message.message.set_msg_type(kind);
    message
}

/// A message with one entry of `size` bytes; its commit index is its number.
pub(super) fn message(from: u64, to: u64, size: usize) -> RaftMessage {
    let entry = Entry { data: vec![7; size], ..Entry::default() };
    let message = Message { from: from * 10, to: to * 10, entries: vec![entry], ..Message::default() };
    let epoch = Epoch { conf_ver: 3, version: 4 };
    RaftMessage { region: RegionId::new(5), epoch, from: peer(from), to: peer(to), message }
}

pub(super) fn numbered(number: u64, size: usize) -> RaftMessage {
    let mut message = message(1, 2, size);
    message.message.commit = number;
    message
}

/// A `MsgSnapshot` for `7-2-9`.
pub(super) fn announcement() -> RaftMessage {
    let mut snapshot = Snapshot::default();
    snapshot.mut_metadata().term = 2;
    snapshot.mut_metadata().index = 9;
    let mut message = Message { from: 10, to: 20, ..Message::default() };
    message.set_msg_type(MessageType::MsgSnapshot);
    message.set_snapshot(snapshot);
    let epoch = Epoch { conf_ver: 3, version: 4 };
    RaftMessage { region: RegionId::new(7), epoch, from: peer(1), to: peer(2), message }
}

/// Addresses that a test can change.
#[derive(Default)]
pub(super) struct Addresses(pub(super) Mutex<BTreeMap<StoreId, String>>);

impl AddressBook for Addresses {
    fn address(&self, store: StoreId) -> Option<String> {
        self.0.lock().get(&store).cloned()
    }
}

struct ChannelInbox(mpsc::Sender<RaftMessage>);

impl Inbox for ChannelInbox {
    fn deliver(&self, messages: &mut Vec<RaftMessage>) -> usize {
        messages.drain(..).filter(|message| self.0.try_send(message.clone()).is_ok()).count()
    }
}

/// The receiving side of a store on its own runtime. Dropping it cuts its connections, as a crash does.
pub(super) struct Endpoint {
    pub(super) runtime: Option<Runtime>,
    pub(super) inbox: mpsc::Receiver<RaftMessage>,
    /// The disk of `files`.
    pub(super) disk: Arc<SimDisk>,
    pub(super) files: SnapshotFiles,
    pub(super) metrics: TransportMetrics,
    pub(super) server: TransportServer,
}

pub(super) fn options(store: u64) -> TransportOptions {
    let mut options = TransportOptions::new(CLUSTER, StoreId::new(store), store);
    options.backoff_floor = Duration::from_millis(5);
    options.backoff_cap = Duration::from_millis(20);
    options
}

fn metrics() -> TransportMetrics {
    TransportMetrics::new(&prometheus::Registry::new()).unwrap()
}

impl Endpoint {
    pub(super) fn start(options: TransportOptions, inbox_size: usize, addresses: &Addresses) -> Endpoint {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (sender, inbox) = mpsc::channel(inbox_size);
        let disk = SimDisk::new();
        let (files, metrics) = (SnapshotFiles::open(disk.clone()).unwrap(), metrics());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        addresses.0.lock().insert(options.store, listener.local_addr().unwrap().to_string());
        let inbox_handle = Arc::new(ChannelInbox(sender));
        let server = TransportServer::new(options.clone(), inbox_handle, files.clone(), metrics.clone());
        let (builder, service) = (TransportServer::builder(&options), server.service());
        let (grpc, incoming) = mpsc::channel(16);
        runtime.spawn(accept(listener, server.clone(), grpc));
        runtime.spawn(async move { builder.serve_with_incoming(service, ReceiverStream::new(incoming)).await });
        Endpoint { runtime: Some(runtime), inbox, disk, files, metrics, server }
    }

    pub(super) fn receive(&mut self) -> RaftMessage {
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

/// Tells both kinds of streams apart, as a node does.
async fn accept(listener: TcpListener, server: TransportServer, grpc: mpsc::Sender<std::io::Result<TcpStream>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (server, grpc) = (server.clone(), grpc.clone());
        tokio::spawn(async move {
            let mut first = [0];
            match stream.peek(&mut first).await {
                Ok(1) if first == [FIRST_BYTE] => server.serve(stream),
                _ => drop(grpc.send(Ok(stream)).await),
            }
        });
    }
}

/// What keeps an announced file arriving, and the call that is stalled.
pub(super) type Announced = (mpsc::Sender<wire::SnapshotChunk>, tokio::task::JoinHandle<Result<(), tonic::Status>>);

/// The sending side of store 1.
pub(super) struct Sender {
    pub(super) runtime: Runtime,
    pub(super) transport: StoreTransport,
    pub(super) addresses: Arc<Addresses>,
    /// The disk of `files`.
    pub(super) disk: Arc<SimDisk>,
    pub(super) files: SnapshotFiles,
    pub(super) metrics: TransportMetrics,
}

impl Sender {
    pub(super) fn new(options: TransportOptions) -> Sender {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let addresses = Arc::new(Addresses::default());
        let disk = SimDisk::new();
        let (files, metrics) = (SnapshotFiles::open(disk.clone()).unwrap(), metrics());
        let transport =
            StoreTransport::new(options, addresses.clone(), files.clone(), metrics.clone(), runtime.handle().clone());
        Sender { runtime, transport, addresses, disk, files, metrics }
    }

    /// A turn with one message.
    fn send(&self, message: RaftMessage) -> Result<(), SendError> {
        let sent = self.transport.send(message);
        self.transport.flush();
        sent
    }

    /// Polls until `check` holds.
    pub(super) fn until(&self, what: &str, mut check: impl FnMut() -> bool) {
        let poll = async {
            while !check() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let polled = self.runtime.block_on(async { tokio::time::timeout(LIMIT, poll).await });
        assert!(polled.is_ok(), "waited for: {what}");
    }

    /// Sends a snapshot from store 1 to store 2 and waits for the report.
    pub(super) fn send_snapshot(&self, message: RaftMessage, key: SnapshotKey) -> Delivery {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.transport.send_snapshot(message, key, Box::new(move |delivery| sender.send(delivery).unwrap()));
        self.runtime.block_on(async { tokio::time::timeout(LIMIT, receiver).await }).unwrap().unwrap()
    }

    /// Announces a file to store 2 and sends nothing of it, until the returned sender is dropped. Returns once the
    /// announcement has arrived.
    pub(super) fn announce(&self, endpoint: &Endpoint, start: SnapshotStart) -> Announced {
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

    /// A stream of messages to store 2 after its handshake, for protocol violations.
    fn stream(&self, options: &TransportOptions, stores: Stores) -> Result<TcpStream, String> {
        let address = self.addresses.address(StoreId::new(2)).unwrap();
        let (hello, rest) = (stream::hello(options), stores.encode());
        let connect = link::handshake::connect(&address, None, hello, &rest);
        self.runtime.block_on(async { tokio::time::timeout(LIMIT, connect).await }).unwrap().unwrap()
    }

    /// Writes `bytes` to such a stream and waits until the server closes it.
    fn violate(&self, bytes: &[u8], end: bool) {
        let mut stream = self.stream(&options(1), STORES).unwrap();
        self.runtime.block_on(async {
            // The server may have closed it before it has read all.
            let _ = stream.write_all(bytes).await;
            if end {
                let _ = stream.shutdown().await;
            }
            let read = async { stream.read(&mut [0]).await };
            let read = tokio::time::timeout(LIMIT, read).await.unwrap();
            assert!(matches!(read, Ok(0) | Err(_)), "the stream stays open");
        });
    }

    /// A raw gRPC client, for protocol violations.
    pub(super) fn raw(
        &self,
        store: u64,
    ) -> wire::raft_transport_client::RaftTransportClient<tonic::transport::Channel> {
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

/// The announcement of a snapshot. `stream::tests` has the frames of messages.
#[test]
fn golden_bytes() {
    use prost::Message as _;
    let start = SnapshotStart { message: numbered(7, 3), key: key(7, 2, 9), size: 1000 };
    let start = start.encode(options(1).hello(StoreId::new(2)));
    let chunk = wire::SnapshotChunk { start: Some(start), data: vec![1, 2].into() };
    let hex: String = chunk.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    let golden = concat!(
        "0a3f",
        "0a0b080110eeff830618012002", // hello: protocol 1, cluster, from 1, to 2
        "12270805",
        "120408031004", // message: region 5, epoch
        "1a06080a10011801",
        "2206081410021801",               // from, to
        "2a0d1014180a3a0522030707074007", // the message of raft-rs
        "18072002280930e807",             // region, term, index, size
        "12020102"                        // data
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
    // A stream that opens in the middle of a turn sends what is queued.
    sender.send(numbered(0, 10)).unwrap();
    assert_eq!(endpoint.receive(), numbered(0, 10));
    for number in 1..2001 {
        sender.transport.send(numbered(number, 10)).unwrap();
    }
    sender.transport.flush();
    for number in 1..2001 {
        assert_eq!(endpoint.receive(), numbered(number, 10));
    }
    // One for the first message, two for the others, and one more if the task that opened the stream still looks for
    // what is queued while the others are.
    let frames = sender.metrics.sent_frames.get();
    assert!((3..=4).contains(&frames), "{frames}");
    assert_eq!(sender.metrics.sent_messages.get(), 2001);
    sender.until("the server has counted", || endpoint.metrics.received_messages.get() == 2001);
    assert_eq!(endpoint.metrics.received_frames.get(), frames);
}

/// A turn costs a lane one frame, hence one write, and the receiver one delivery.
#[test]
fn turn_is_one_frame_for_each_lane() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 4096, &sender.addresses);
    sender.send(numbered(0, 1)).unwrap();
    endpoint.receive();
    for turn in 1..=50 {
        for _ in 0..5 {
            sender.transport.send(numbered(turn, 100)).unwrap();
            sender.transport.send(of_kind(MessageType::MsgHeartbeat, 1)).unwrap();
        }
        sender.transport.flush();
        (0..10).for_each(|_| drop(endpoint.receive()));
    }
    assert_eq!((sender.metrics.sent_messages.get(), sender.metrics.sent_frames.get()), (501, 101));
    assert_eq!(sender.metrics.open_lanes.get(), 2);
    sender.until("the server has counted", || endpoint.metrics.received_messages.get() == 501);
    assert_eq!((endpoint.metrics.received_frames.get(), endpoint.metrics.deliveries.get()), (101, 101));
    assert_eq!(endpoint.metrics.received_bytes.get(), sender.metrics.sent_bytes.get());
}

/// The thread that ends its turn writes itself: no task of the runtime takes part.
#[test]
fn flush_writes_without_the_runtime() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.send(numbered(1, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 1);
    let (release, blocked) = std::sync::mpsc::sync_channel::<()>(1);
    let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
    sender.runtime.spawn(async move {
        begun.send(()).unwrap();
        // Takes the only worker of the runtime.
        let _ = blocked.recv();
    });
    has_begun.recv().unwrap();
    sender.send(numbered(2, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 2);
    drop(release);
}

#[test]
fn unflushed_messages_stay() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.send(numbered(1, 1)).unwrap();
    endpoint.receive();
    sender.transport.send(numbered(2, 1)).unwrap();
    assert_eq!(sender.metrics.sent_messages.get(), 1);
    sender.transport.flush();
    assert_eq!(endpoint.receive().message.commit, 2);
}

#[test]
fn unknown_store_is_reported() {
    let sender = Sender::new(options(1));
    assert_eq!(sender.send(message(1, 2, 1)), Err(SendError::UnknownStore));
}

#[test]
fn reconnects_after_the_server_restarts() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.send(numbered(1, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 1);
    drop(endpoint);
    sender.until("the store is unreachable", || sender.send(numbered(2, 1)) == Err(SendError::Unreachable));
    assert!(sender.metrics.dropped(DropReason::Disconnected) > 0);
    // The server returns at another address.
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.until("a message is through", || {
        let _ = sender.send(numbered(3, 1));
        !endpoint.inbox.is_empty()
    });
    assert!(endpoint.receive().message.commit >= 2);
    assert!(sender.metrics.connection_failures.get() > 0);
}

#[test]
fn stopping_server_ends_its_streams() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.send(numbered(1, 1)).unwrap();
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

/// A store that does not read costs bounded memory and no waiting: sends are refused, and the other lane goes on.
#[test]
fn lane_that_is_stuck_refuses_messages() {
    let mut small = options(1);
    (small.queue_messages, small.queue_bytes) = (50, 4 << 20);
    let sender = Sender::new(small);
    let mut endpoint = Endpoint::start(options(2), 4096, &sender.addresses);
    let behind = sender.addresses.address(StoreId::new(2)).unwrap();
    let link = sender.runtime.block_on(async { stuck_link(behind, 300_000).await });
    sender.addresses.0.lock().insert(StoreId::new(2), link);
    sender.until("the bulk lane is full", || {
        sender.send(of_kind(MessageType::MsgAppend, 100_000)) == Err(SendError::Unreachable)
            && sender.metrics.dropped(DropReason::QueueFull) > 0
    });
    assert_eq!(sender.metrics.dropped(DropReason::Disconnected), 0, "the connection is up");
    sender.send(of_kind(MessageType::MsgHeartbeat, 1)).unwrap();
    while endpoint.receive().message.get_msg_type() != MessageType::MsgHeartbeat {}
    assert_eq!(sender.send(of_kind(MessageType::MsgAppend, 100_000)), Err(SendError::Unreachable));
}

/// Regression: heartbeats waited behind the appends before them, so a link full of entries took leaderships.
#[test]
fn heartbeats_do_not_wait_behind_appends() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 4096, &sender.addresses);
    let behind = sender.addresses.address(StoreId::new(2)).unwrap();
    let link = sender.runtime.block_on(async { stuck_link(behind, 300_000).await });
    sender.addresses.0.lock().insert(StoreId::new(2), link);
    // Twenty megabytes: more than all buffers on the way hold.
    for _ in 0..200 {
        sender.send(of_kind(MessageType::MsgAppend, 100_000)).unwrap();
    }
    sender.send(of_kind(MessageType::MsgTimeoutNow, 1)).unwrap();
    sender.send(of_kind(MessageType::MsgHeartbeat, 1)).unwrap();
    sender.send(of_kind(MessageType::MsgAppendResponse, 1)).unwrap();
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
    let results: Vec<_> = (0..500).map(|number| sender.send(numbered(number, 100_000))).collect();
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
        sender.send(numbered(number, 1)).unwrap();
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
    assert_eq!(
        sender.stream(&foreign, STORES).unwrap_err(),
        "this node belongs to cluster 0000000000c0ffee, the request to cluster 000000000000dead"
    );
    sender.send(numbered(1, 1)).unwrap();
    sender.until("unreachable", || sender.send(numbered(2, 1)) == Err(SendError::Unreachable));
    assert!(endpoint.inbox.is_empty());
    assert_eq!(endpoint.metrics.received_messages.get(), 0);
    assert!(endpoint.metrics.refused_streams.get() > 0);
    // Snapshots are refused too.
    let hello = foreign.hello(StoreId::new(2));
    let start = SnapshotStart { message: announcement(), key: key(7, 2, 9), size: 0 }.encode(hello);
    let chunk = wire::SnapshotChunk { start: Some(start), data: Vec::new().into() };
    let status = sender.runtime.block_on(sender.raw(2).snapshot(tokio_stream::once(chunk))).unwrap_err();
    assert_eq!(status.code(), tonic::Code::PermissionDenied);
    assert_eq!(status.message(), "store 1 belongs to cluster 000000000000dead, store 2 to cluster 0000000000c0ffee");
}

#[test]
fn another_store_or_version_is_refused_with_a_reason() {
    let sender = Sender::new(options(1));
    let endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    let elsewhere = Stores { to: StoreId::new(9), ..STORES };
    assert_eq!(sender.stream(&options(1), elsewhere).unwrap_err(), "this is store 2, not store 9");
    let address = sender.addresses.address(StoreId::new(2)).unwrap();
    let hello = stream::hello(&options(1));
    let newer = link::hello::Hello { version: hello.version + 1, ..hello };
    let refused = sender.runtime.block_on(link::handshake::connect(&address, None, newer, &[0; STORES_BYTES])).unwrap();
    assert_eq!(refused.unwrap_err(), "Raft stream version 2 is not spoken here, 1 is");
    sender.until("both are counted", || endpoint.metrics.refused_streams.get() == 2);
}

#[test]
fn malformed_stream_ends_without_affecting_others() {
    let sender = Sender::new(options(1));
    let mut small = options(2);
    small.max_frame_bytes = 100_000;
    let mut endpoint = Endpoint::start(small, 16, &sender.addresses);
    sender.send(numbered(1, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 1);
    let frame = |message: RaftMessage| {
        let mut bytes = bytes::BytesMut::new();
        stream::put_frame(&mut bytes, &[message]);
        bytes
    };
    let (mut strange, mut entry) = (message(1, 2, 1), message(1, 2, 1));
    (strange.message.msg_type, entry.message.entries[0].entry_type) = (99, 99);
    let whole = frame(numbered(9, 1));
    let cases = [
        ("a sender that lies", frame(message(3, 2, 1)).to_vec(), false),
        ("a message to another store", frame(message(1, 3, 1)).to_vec(), false),
        ("a message of an unknown kind", frame(strange).to_vec(), false),
        ("an entry of an unknown kind", frame(entry).to_vec(), false),
        ("an oversized frame", frame(numbered(1, 200_000)).to_vec(), false),
        ("no protobuf", b"\0\0\0\x03\xff\xff\xff".to_vec(), false),
        ("a frame that is cut", whole[..whole.len() - 1].to_vec(), true),
        ("a length that is cut", whole[..3].to_vec(), true),
    ];
    for (at, (what, bytes, end)) in cases.iter().enumerate() {
        sender.violate(bytes, *end);
        sender.until(what, || endpoint.metrics.refused_streams.get() == at as u64 + 1);
    }
    assert!(endpoint.inbox.is_empty(), "a message arrives whole or not at all");
    sender.send(numbered(2, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 2);
    assert_eq!(sender.metrics.connection_failures.get(), 0);
    // What precedes the damage is delivered, and a stream that ends between two frames is not refused.
    sender.violate(&[&whole[..], &whole[..9]].concat(), true);
    assert_eq!(endpoint.receive().message.commit, 9);
    sender.violate(&whole, true);
    assert_eq!(endpoint.receive().message.commit, 9);
    assert_eq!(endpoint.metrics.refused_streams.get(), cases.len() as u64 + 1);
}

/// A store that takes a message, answers a probe, and then answers nothing. Returns after the second probe.
async fn fall_silent(mut stream: TcpStream) -> std::io::Result<TcpStream> {
    let ours = stream::hello(&options(2));
    link::handshake::read_hello(&mut stream, ours).await?;
    stream.read_exact(&mut [0; STORES_BYTES]).await?;
    link::handshake::answer_hello(&mut stream, ours, &link::hello::Welcome(Ok(()))).await?;
    let mut message = bytes::BytesMut::new();
    stream::put_frame(&mut message, &[numbered(1, 1)]);
    stream.read_exact(&mut message).await?;
    stream.read_exact(&mut [0; 4]).await?;
    stream.write_all(&[PROBE_ANSWER]).await?;
    stream.read_exact(&mut [0; 4]).await?;
    Ok(stream)
}

/// A store that answers nothing any more, as after a power cut: the sender notices by a probe.
#[test]
fn store_that_died_silently_is_noticed() {
    let mut hasty = options(1);
    hasty.keep_alive = Duration::from_millis(50);
    let sender = Sender::new(hasty);
    let listener = sender.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    sender.addresses.0.lock().insert(StoreId::new(2), listener.local_addr().unwrap().to_string());
    let (probed, mut probes) = mpsc::channel(16);
    sender.runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // On a busy machine the sender may give up before the end.
            if let Ok(stream) = fall_silent(stream).await {
                probed.send(stream).await.unwrap();
            }
        }
    });
    sender.send(numbered(1, 1)).unwrap();
    sender.until("the probes have arrived", || !probes.is_empty());
    sender.until("the connection counts as broken", || sender.metrics.connection_failures.get() > 0);
    sender.until("a new connection", || {
        let _ = sender.send(numbered(1, 1));
        probes.len() > 1
    });
    drop(probes.try_recv());
}

/// The receiver drops streams whose sender is silent. It answers probes.
#[test]
fn silent_sender_is_noticed() {
    let mut hasty = options(2);
    hasty.keep_alive = Duration::from_millis(50);
    let sender = Sender::new(options(1));
    let endpoint = Endpoint::start(hasty, 16, &sender.addresses);
    let mut stream = sender.stream(&options(1), STORES).unwrap();
    let answer = sender.runtime.block_on(async {
        stream.write_all(&[0; 4]).await?;
        tokio::time::timeout(LIMIT, stream.read_u8()).await.unwrap()
    });
    assert_eq!(answer.unwrap(), PROBE_ANSWER);
    sender.until("the silent stream ended", || endpoint.metrics.refused_streams.get() == 1);
}

#[test]
fn dropping_the_transport_ends_its_streams() {
    let sender = Sender::new(options(1));
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    sender.send(numbered(1, 1)).unwrap();
    endpoint.receive();
    let metrics = sender.metrics.clone();
    assert_eq!(metrics.open_lanes.get(), 1);
    let Sender { runtime, transport, .. } = sender;
    drop(transport);
    let ended = async {
        while metrics.open_lanes.get() > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(runtime.block_on(async { tokio::time::timeout(LIMIT, ended).await }).is_ok());
    assert_eq!(endpoint.metrics.refused_streams.get(), 0);
}

#[test]
fn message_above_the_frame_limit_is_refused_by_the_sender() {
    let mut small = options(1);
    small.max_frame_bytes = 100_000;
    let sender = Sender::new(small);
    let mut endpoint = Endpoint::start(options(2), 16, &sender.addresses);
    assert!(matches!(sender.send(numbered(1, 200_000)), Err(SendError::TooLarge { limit: 99_936, .. })));
    sender.send(numbered(2, 1)).unwrap();
    assert_eq!(endpoint.receive().message.commit, 2);
    assert_eq!(sender.metrics.dropped(DropReason::TooLarge), 1);
    assert_eq!(sender.metrics.connection_failures.get(), 0);
}
