//! The coordinator's clock: monotonic time since a moment, nothing else.

use std::time::Duration;

use tokio::time::Instant;

/// A moment, and the time since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge where the coordinator reads the clock; what decides takes durations"
    )]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// The time since.
    #[expect(clippy::disallowed_methods, reason = "the same edge")]
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The time since, in milliseconds.
    pub(crate) fn elapsed_ms(self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
