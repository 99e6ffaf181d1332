//! An in-memory source of timestamps for tests, benchmarks and programs of a single process.

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use parking_lot::Mutex;

use crate::source::{TsoError, TsoSource};
use crate::timestamp::{MAX_COUNT, Timestamp, TsRange};

/// Issues strictly increasing timestamps from a counter. Never waits; fails only for a count out of range.
///
/// Its clock stands still unless it is set. Timestamps then differ in their counter, which carries over into the
/// milliseconds. Share it in an `Arc`. Its state is lost on drop, so it is not for data that outlives it.
#[derive(Debug, Default)]
pub struct CounterSource {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Timestamp,
    now: Timestamp,
}

impl CounterSource {
    /// A source whose first timestamp is 0.1.
    pub fn new() -> CounterSource {
        CounterSource::default()
    }

    /// A source whose timestamps start at `now_ms` milliseconds since the Unix epoch.
    pub fn starting_at(now_ms: u64) -> CounterSource {
        let source = CounterSource::new();
        source.set_clock(now_ms);
        source
    }

    /// Sets the clock, in milliseconds since the Unix epoch. A clock set back has no effect until it catches up.
    pub fn set_clock(&self, now_ms: u64) {
        self.state.lock().now = Timestamp::new(now_ms, 0);
    }

    /// The newest timestamp issued.
    pub fn last(&self) -> Timestamp {
        self.state.lock().last
    }

    /// Issues `count` consecutive timestamps synchronously.
    ///
    /// # Errors
    /// [`TsoError::Unavailable`] for a count of 0 or above [`MAX_COUNT`].
    pub fn take(&self, count: u32) -> Result<TsRange, TsoError> {
        if count == 0 || count > MAX_COUNT {
            return Err(TsoError::Unavailable(format!("{count} timestamps asked for at once")));
        }
        let mut state = self.state.lock();
        let first = state.last.next().max(state.now);
        state.last = Timestamp::from_raw(first.raw().saturating_add(u64::from(count) - 1));
        Ok(TsRange { last: state.last, count })
    }
}

impl TsoSource for CounterSource {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        ready(self.take(count)).boxed()
    }
}
