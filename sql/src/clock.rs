//! The only place where the front end reads clocks and draws random numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pgtypes::timestamp::EPOCH_SECONDS;
use tokio::time::Instant;

/// A wall clock: microseconds since 2000-01-01 UTC. Tests pin it to make `now()` reproducible.
pub type WallClock = fn() -> i64;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the edge: timeouts of sessions are measured here")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The system's [`WallClock`].
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: `now()` of a transaction and 'now' in a parameter are read here"
)]
pub(crate) fn system_micros() -> i64 {
    let since_1970 = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    };
    since_1970.saturating_sub(EPOCH_SECONDS * 1_000_000)
}

/// A random duration between half of `pause` and all of it, so that conflicting clients do not retry in step.
#[expect(clippy::disallowed_methods, reason = "the edge: jitter is drawn here")]
pub(crate) fn jitter(pause: Duration) -> Duration {
    pause.mul_f64(rand::Rng::random_range(&mut rand::rng(), 0.5..=1.0))
}

/// A random secret for a cancel key.
#[expect(clippy::disallowed_methods, reason = "the edge: secrets are drawn here")]
pub(crate) fn secret() -> i32 {
    rand::Rng::random(&mut rand::rng())
}

/// Sleeps.
pub(crate) async fn sleep(pause: Duration) {
    tokio::time::sleep(pause).await;
}
