//! What the tests with sockets share: services, a server, raw connections that do what no link does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::FutureExt;
use link::frame::FrameReader;
use link::hello::{HELLO_BYTES, Hello, Welcome};
use link::message::Message;
use link::outbox::Outbox;
use link::{
    Answer, CalleeOptions, ClusterTag, Kind, LinkMetrics, LinkOptions, LinkServer, Links, ServerOptions, Service,
};
use prometheus::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

pub const CLUSTER: ClusterTag = ClusterTag::new(7);
/// Answers with its payload, at once.
pub const ECHO: Kind = Kind::new(1);
/// Answers with its payload once the gate has a permit.
pub const GATED: Kind = Kind::new(2);
/// Answers with as many bytes as the payload, a number, says.
pub const BYTES: Kind = Kind::new(3);
/// Long enough for every test.
pub const LONG: Duration = Duration::from_secs(60);

/// What the services of a test share.
#[derive(Clone)]
pub struct Gate {
    pub permits: Arc<Semaphore>,
    /// Requests that were executed, of all kinds.
    pub started: Arc<AtomicUsize>,
    /// Gated requests that are waiting.
    pub waiting: Arc<AtomicUsize>,
}

impl Gate {
    pub fn new() -> Gate {
        Gate { permits: Arc::new(Semaphore::new(0)), started: Arc::default(), waiting: Arc::default() }
    }

    pub fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

/// Counts a waiting request until dropped.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct TestService(Kind, Gate);

impl Service for TestService {
    fn call(&self, mut payload: Bytes) -> Answer {
        let TestService(kind, gate) = self;
        gate.started.fetch_add(1, Ordering::SeqCst);
        match *kind {
            ECHO => Answer::Ready(Ok(payload)),
            BYTES => Answer::Ready(Ok(vec![3; payload.get_u32() as usize].into())),
            _ => {
                gate.waiting.fetch_add(1, Ordering::SeqCst);
                let waiting = Waiting(Arc::clone(&gate.waiting));
                let permits = Arc::clone(&gate.permits);
                let answer = async move {
                    let _waiting = waiting;
                    permits.acquire().await.expect("open").forget();
                    Ok(payload)
                };
                Answer::Later(answer.boxed())
            }
        }
    }
}

pub fn metrics() -> LinkMetrics {
    LinkMetrics::new(&Registry::new()).unwrap()
}

pub fn links(metrics: &LinkMetrics) -> Links {
    Links::new(LinkOptions::new(CLUSTER), metrics.clone())
}

/// A node that serves the kinds above.
pub struct Node {
    pub address: String,
    pub gate: Gate,
    pub metrics: LinkMetrics,
    pub server: LinkServer,
    task: JoinHandle<()>,
}

impl Node {
    /// A node that never wakes a link by itself: a test that needs a wake-up hangs if it gets none.
    pub async fn start() -> Node {
        let callee = CalleeOptions { silence_max: LONG, ..CalleeOptions::default() };
        Node::with(ServerOptions { callee, ..ServerOptions::new(CLUSTER) }, "127.0.0.1:0").await
    }

    pub async fn with(options: ServerOptions, address: &str) -> Node {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (gate, metrics) = (Gate::new(), metrics());
        let service = |kind| (kind, Arc::new(TestService(kind, gate.clone())) as Arc<dyn Service>);
        let server = LinkServer::new(options, [ECHO, GATED, BYTES].map(service), metrics.clone());
        let serving = server.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.serve(stream);
            }
        });
        Node { address, gate, metrics, server, task }
    }

    /// Ends listener and links at once.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.server.stop(Duration::ZERO).await;
    }

    /// A connection without a link on this end, after the handshake.
    pub async fn raw(&self) -> Raw {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(&Hello::new(CLUSTER).encode()).await.unwrap();
        let mut welcome = vec![0; Welcome(Ok(())).encode(Hello::new(CLUSTER)).len()];
        stream.read_exact(&mut welcome).await.unwrap();
        Raw { stream, reader: FrameReader::default() }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A node that does on each connection what a test says.
pub struct RawNode {
    listener: TcpListener,
    pub address: String,
}

impl RawNode {
    pub async fn start() -> RawNode {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        RawNode { listener, address }
    }

    /// The next connection, after the handshake.
    pub async fn accept(&self) -> Raw {
        let mut stream = self.listener.accept().await.unwrap().0;
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello).await.unwrap();
        let hello = Hello::new(CLUSTER).decode_other(&hello).unwrap();
        stream.write_all(&Welcome(Ok(())).encode(hello)).await.unwrap();
        Raw { stream, reader: FrameReader::default() }
    }
}

/// One end of a connection whose frames the test writes and reads.
pub struct Raw {
    pub stream: TcpStream,
    reader: FrameReader,
}

impl Raw {
    pub async fn send(&mut self, messages: impl IntoIterator<Item = Message>) {
        let mut outbox = Outbox::default();
        messages.into_iter().for_each(|message| outbox.push(message));
        let mut bytes = BytesMut::new();
        while !outbox.is_empty() {
            outbox.next_frame(&mut bytes, |_| {});
        }
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next message; `None` if the other side has closed.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.reader.next_message().unwrap() {
                return Some(message);
            }
            // A reset closes too.
            if self.stream.read_buf(self.reader.buffer()).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }
}

pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not within 20 s: {what}");
}
