//! The receiving end of a stream of Raft messages: handshake, then read, decode, deliver.
//!
//! One task per stream reads into one buffer that it keeps. All whole frames of a read are delivered together, so a
//! read costs the store thread one wake-up at most. The task never waits for the store: what the inbox does not take is
//! dropped, as a network may.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use engine::store::Store;
use link::handshake;
use link::hello::Welcome;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::context::now;
use super::metrics::{DropReason, TransportMetrics};
use super::options::TransportOptions;
use super::proto::Malformed;
use super::stream::{self, Frame, FrameReader, PROBE_ANSWER, STORES_BYTES, Stores};
use crate::handle::StoreHandle;
use crate::ports::RaftMessage;

/// Receives incoming messages. Called on the network's threads.
pub trait Inbox: Send + Sync + 'static {
    /// Takes all messages out of `messages`, queues them for their peers in their order, and wakes the store once.
    /// Never blocks. Returns how many were queued; the rest is dropped, because the queue is full or the store is
    /// stopping.
    fn deliver(&self, messages: &mut Vec<RaftMessage>) -> usize;
}

impl<S: Store> Inbox for StoreHandle<S> {
    fn deliver(&self, messages: &mut Vec<RaftMessage>) -> usize {
        self.deliver_all(messages)
    }
}

/// Why a stream ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// The handshake said no.
    #[error("{0}")]
    Refused(String),
    #[error("the store is silent")]
    Silent,
}

/// Receives the messages of other stores. Clones share the inbox.
#[derive(Clone)]
pub(super) struct Receiver {
    pub(super) options: Arc<TransportOptions>,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) metrics: TransportMetrics,
}

impl Receiver {
    /// Serves a connection until its sender closes it. `objection` refuses it.
    pub(super) async fn serve(&self, mut stream: TcpStream, objection: Option<String>) -> Result<(), StreamError> {
        let shaken = tokio::time::timeout(self.options.connect_timeout, self.shake_hands(&mut stream, objection));
        let stores = shaken.await.unwrap_or(Err(StreamError::Silent))?;
        let silence = self.options.silence_max();
        let (mut reader, mut messages) = (FrameReader::new(self.options.max_frame_bytes), Vec::new());
        let mut timer = pin!(tokio::time::sleep(silence));
        let mut heard = false;
        loop {
            let read = tokio::select! {
                biased;
                read = stream.read_buf(reader.buffer()) => read?,
                () = timer.as_mut() => {
                    if !std::mem::take(&mut heard) {
                        return Err(StreamError::Silent);
                    }
                    timer.as_mut().reset(now() + silence);
                    continue;
                }
            };
            if read == 0 && reader.is_in_frame() {
                return Err(Malformed("the stream ended within a frame".to_owned()).into());
            }
            if read == 0 {
                return Ok(());
            }
            heard = true;
            self.metrics.received_bytes.inc_by(read as u64);
            let decoded = self.decode(&stream, stores, &mut reader, &mut messages);
            self.deliver(&mut messages);
            decoded?;
        }
    }

    /// Reads and answers the Hello.
    async fn shake_hands(&self, stream: &mut TcpStream, objection: Option<String>) -> Result<Stores, StreamError> {
        let ours = stream::hello(&self.options);
        let Some(hello) = handshake::read_hello(stream, ours).await? else {
            // What speaks another protocol could not read the answer.
            return Err(StreamError::Refused("it does not begin with a handshake".to_owned()));
        };
        let stores = if hello.version == ours.version { Some(read_stores(stream).await?) } else { None };
        let here = self.options.store;
        let misled = stores.filter(|stores| stores.to != here);
        let misled = misled.map(|stores| format!("this is store {here}, not store {}", stores.to));
        let objection = hello.objection(ours).or(misled).or(objection);
        let welcome = Welcome(objection.clone().map_or(Ok(()), Err));
        handshake::answer_hello(stream, ours, &welcome).await?;
        match (objection, stores) {
            (None, Some(stores)) => Ok(stores),
            (why, _) => Err(StreamError::Refused(why.unwrap_or_default())),
        }
    }

    /// Decodes all whole frames that have been read, and answers probes.
    fn decode(
        &self,
        stream: &TcpStream,
        stores: Stores,
        reader: &mut FrameReader,
        messages: &mut Vec<RaftMessage>,
    ) -> Result<(), Malformed> {
        while let Some(frame) = reader.next_frame()? {
            match frame {
                // One byte that the network does not take says that the sender reads nothing. It will miss the answer.
                Frame::Probe => drop(stream.try_write(&[PROBE_ANSWER])),
                Frame::Messages(frame) => {
                    self.metrics.received_frames.inc();
                    stream::decode_frame(frame, stores, messages)?;
                }
            }
        }
        Ok(())
    }

    fn deliver(&self, messages: &mut Vec<RaftMessage>) {
        if messages.is_empty() {
            return;
        }
        let all = messages.len();
        let taken = self.inbox.deliver(messages);
        self.metrics.deliveries.inc();
        self.metrics.received_messages.inc_by(taken as u64);
        if taken < all {
            self.metrics.drop_messages(DropReason::NotTaken, all - taken);
        }
        messages.clear();
    }
}

async fn read_stores(stream: &mut TcpStream) -> io::Result<Stores> {
    let mut stores = [0; STORES_BYTES];
    stream.read_exact(&mut stores).await?;
    Ok(Stores::decode(stores))
}
