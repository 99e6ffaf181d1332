//! The front end's edge to time and chance: the clocks that sessions read, and the dice for pauses and secrets.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Seconds from 1970-01-01 to 2000-01-01, where PostgreSQL's time begins.
const EPOCH_SECONDS: i64 = 946_684_800;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the edge: timeouts of sessions are measured here")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The wall clock, in microseconds since 2000-01-01 UTC: `now()` of a transaction.
#[expect(clippy::disallowed_methods, reason = "the edge: now() of a transaction is read here")]
pub(crate) fn micros() -> i64 {
    let since_1970 = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    };
    since_1970.saturating_sub(EPOCH_SECONDS * 1_000_000)
}

/// Between half of `pause` and all of it.
#[expect(clippy::disallowed_methods, reason = "the edge: clients that met each other must not meet again")]
pub(crate) fn jitter(pause: Duration) -> Duration {
    pause.mul_f64(rand::Rng::random_range(&mut rand::rng(), 0.5..=1.0))
}

/// A secret for a cancel key.
#[expect(clippy::disallowed_methods, reason = "the edge: secrets are drawn here")]
pub(crate) fn secret() -> i32 {
    rand::Rng::random(&mut rand::rng())
}

/// Sleeps.
pub(crate) async fn sleep(pause: Duration) {
    tokio::time::sleep(pause).await;
}
