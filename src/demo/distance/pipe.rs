//! The model of a distance: when bytes that are sent arrive, and how many may be under way. Pure: it takes the time
//! since a fixed moment as an argument.
//!
//! A [`Pipe`] is one direction between two places. All connections between them share it: its bandwidth is divided
//! among them in the order in which they send. A [`Flow`] is one direction of one connection. It holds the bytes under
//! way, in order, each with its arrival.

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::Bandwidth;

/// The most bytes of a flow that are under way: the window of a connection.
pub(super) const WINDOW: usize = 8 << 20;
/// The most bytes that a flow takes at once, so that flows of one pipe alternate.
pub(super) const CHUNK: usize = 32 << 10;
/// How long the queue in front of a pipe may be. Long enough that a late wake-up does not idle the pipe.
const QUEUE_MAX: Duration = Duration::from_millis(2);

/// One direction between two places; see the module documentation.
///
/// Invariant: `free_at` never falls, so what is sent later arrives later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    delay: Duration,
    bandwidth: Option<Bandwidth>,
    /// When everything sent so far has left the sender.
    free_at: Duration,
}

impl Pipe {
    /// A pipe in which each byte travels for `delay`. Without a bandwidth, any number of bytes leave at once.
    pub(super) fn new(delay: Duration, bandwidth: Option<Bandwidth>) -> Pipe {
        Pipe { delay, bandwidth, free_at: Duration::ZERO }
    }

    /// The one-way delay.
    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// From when the pipe takes more bytes: its queue is short enough.
    pub(super) fn accepts_at(&self) -> Duration {
        self.free_at.saturating_sub(QUEUE_MAX)
    }

    /// Sends bytes at `now`. Returns when the last one arrives.
    pub(super) fn send(&mut self, now: Duration, bytes: usize) -> Duration {
        let begins = self.free_at.max(now);
        self.free_at = begins + self.bandwidth.map_or(Duration::ZERO, |bandwidth| bandwidth.time_of(bytes));
        self.free_at + self.delay
    }
}

/// What travels in a flow.
#[derive(Debug, PartialEq, Eq)]
enum Parcel {
    Bytes {
        data: Vec<u8>,
        written: usize,
    },
    /// The sender has closed its side.
    End,
}

/// What a flow delivers next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery<'a> {
    /// Bytes to write; report the number written with [`Flow::delivered`].
    Bytes(&'a [u8]),
    /// The receiver's side must be closed.
    End,
}

/// One direction of one connection.
///
/// Invariants: arrivals never fall; at most [`WINDOW`] bytes are under way; nothing follows the end.
#[derive(Debug, Default)]
pub(super) struct Flow {
    under_way: VecDeque<(Duration, Parcel)>,
    bytes: usize,
    ended: bool,
    /// From when the sender knows that the connection is open; it sends nothing before.
    opens_at: Duration,
}

impl Flow {
    /// A flow whose sender sends nothing before `opens_at`.
    pub(super) fn new(opens_at: Duration) -> Flow {
        Flow { opens_at, ..Flow::default() }
    }

    /// From when bytes may be sent, if there is room: not before the connection is open, and not while the queue of the
    /// pipe is long.
    pub(super) fn accepts_at(&self, pipe: &Pipe) -> Duration {
        self.opens_at.max(pipe.accepts_at())
    }

    /// How many bytes may be sent; 0 after the end.
    pub(super) fn room(&self) -> usize {
        if self.ended { 0 } else { (WINDOW - self.bytes).min(CHUNK) }
    }

    /// Whether the end was delivered.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.under_way.is_empty()
    }

    /// Sends bytes at `now`, at most [`Flow::room`].
    pub(super) fn send(&mut self, pipe: &mut Pipe, now: Duration, data: &[u8]) {
        assert!(now >= self.opens_at, "bytes are sent before the connection is open");
        assert!(data.len() <= self.room(), "{} bytes are sent, {} have room", data.len(), self.room());
        let arrives = pipe.send(now, data.len());
        self.push(arrives, Parcel::Bytes { data: data.to_vec(), written: 0 });
        self.bytes += data.len();
    }

    /// Closes the sender's side at `now`.
    pub(super) fn end(&mut self, pipe: &mut Pipe, now: Duration) {
        assert!(!self.ended, "a flow ends once");
        let arrives = pipe.send(now, 0);
        self.push(arrives, Parcel::End);
        self.ended = true;
    }

    fn push(&mut self, arrives: Duration, parcel: Parcel) {
        assert!(self.under_way.back().is_none_or(|(last, _)| *last <= arrives), "bytes overtake each other");
        self.under_way.push_back((arrives, parcel));
    }

    /// When the next bytes, or the end, arrive.
    pub(super) fn arrives_at(&self) -> Option<Duration> {
        self.under_way.front().map(|(arrives, _)| *arrives)
    }

    /// What has arrived at `now`, first things first.
    pub(super) fn arrived(&self, now: Duration) -> Option<Delivery<'_>> {
        let (arrives, parcel) = self.under_way.front()?;
        (*arrives <= now).then(|| match parcel {
            Parcel::Bytes { data, written } => Delivery::Bytes(data.get(*written..).unwrap_or_default()),
            Parcel::End => Delivery::End,
        })
    }

    /// Takes `count` bytes of the first delivery away, or the end.
    pub(super) fn delivered(&mut self, count: usize) {
        let Some((_, parcel)) = self.under_way.front_mut() else { return };
        let whole = match parcel {
            Parcel::Bytes { data, written } => {
                *written += count;
                self.bytes -= count;
                *written >= data.len()
            }
            Parcel::End => true,
        };
        if whole {
            self.under_way.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn megabits(n: u64) -> Option<Bandwidth> {
        format!("{n}Mbit").parse().ok()
    }

    #[test]
    fn bytes_arrive_after_the_delay() {
        let mut pipe = Pipe::new(14 * MS, None);
        assert_eq!(pipe.send(3 * MS, 1 << 30), 17 * MS);
        assert_eq!(pipe.send(3 * MS, 1), 17 * MS, "without a bandwidth nothing queues");
        assert_eq!(pipe.accepts_at(), MS);
    }

    /// 100 Mbit/s are 12,500 bytes in a millisecond.
    #[test]
    fn connections_share_the_bandwidth() {
        let mut pipe = Pipe::new(10 * MS, megabits(100));
        let (mut first, mut second) = (Flow::new(Duration::ZERO), Flow::new(Duration::ZERO));
        first.send(&mut pipe, MS, &[1; 25_000]);
        second.send(&mut pipe, MS, &[2; 12_500]);
        assert_eq!((first.arrives_at(), second.arrives_at()), (Some(13 * MS), Some(14 * MS)));
        assert_eq!(pipe.accepts_at(), 2 * MS, "it is busy until 4 ms");
        // An idle pipe saves no bandwidth up.
        first.send(&mut pipe, 100 * MS, &[1; 12_500]);
        assert_eq!(pipe.send(100 * MS, 12_500), 112 * MS);
    }

    #[test]
    fn a_byte_arrives_whole_and_in_order() {
        let mut pipe = Pipe::new(10 * MS, None);
        let mut flow = Flow::new(Duration::ZERO);
        flow.send(&mut pipe, MS, b"abc");
        flow.end(&mut pipe, 2 * MS);
        assert_eq!((flow.arrived(10 * MS), flow.room()), (None, 0));
        assert_eq!(flow.arrived(11 * MS), Some(Delivery::Bytes(b"abc")));
        flow.delivered(1);
        assert_eq!(flow.arrived(12 * MS), Some(Delivery::Bytes(b"bc")));
        flow.delivered(2);
        assert_eq!((flow.arrived(11 * MS), flow.arrived(12 * MS)), (None, Some(Delivery::End)));
        assert!(!flow.is_done());
        flow.delivered(0);
        assert!(flow.is_done());
    }

    /// A connection takes a round trip to open. Meanwhile the pipe is free for others.
    #[test]
    fn a_connection_sends_once_it_is_open() {
        let mut pipe = Pipe::new(10 * MS, megabits(100));
        let (mut new, mut open) = (Flow::new(25 * MS), Flow::new(Duration::ZERO));
        assert_eq!((new.accepts_at(&pipe), open.accepts_at(&pipe)), (25 * MS, Duration::ZERO));
        open.send(&mut pipe, 6 * MS, &[1; 12_500]);
        new.send(&mut pipe, 25 * MS, &[2; 12_500]);
        assert_eq!((open.arrives_at(), new.arrives_at()), (Some(17 * MS), Some(36 * MS)));
        assert_eq!(new.accepts_at(&pipe), 25 * MS, "the queue of 1 ms is short enough");
    }

    #[test]
    fn the_bytes_under_way_are_bounded() {
        let mut pipe = Pipe::new(Duration::from_secs(1), None);
        let mut flow = Flow::new(Duration::ZERO);
        let mut sent = 0;
        while flow.room() > 0 {
            sent += flow.room();
            flow.send(&mut pipe, MS, &vec![0; flow.room()]);
        }
        assert_eq!(sent, WINDOW);
        flow.delivered(1);
        assert_eq!(flow.room(), 1);
    }

    #[test]
    #[should_panic(expected = "have room")]
    fn more_than_the_room_is_refused() {
        Flow::new(Duration::ZERO).send(&mut Pipe::new(MS, None), MS, &[0; CHUNK + 1]);
    }

    /// However it is cut into pieces, a transfer takes as long as the bandwidth says.
    #[test]
    fn a_transfer_takes_its_time() {
        for piece in [1_000, 1_448, 32 << 10] {
            let mut pipe = Pipe::new(14 * MS, megabits(297));
            let (mut now, mut left, mut last) = (Duration::ZERO, 3_712_500_usize, Duration::ZERO);
            while left > 0 {
                now = now.max(pipe.accepts_at());
                let bytes = piece.min(left);
                last = pipe.send(now, bytes);
                left -= bytes;
            }
            // 3,712,500 bytes at 297 Mbit/s are 100 ms. Each piece is rounded down to a nanosecond.
            let off = (114 * MS).checked_sub(last).expect("never longer");
            assert!(off < Duration::from_micros(5), "{piece}: {off:?}");
        }
    }
}
