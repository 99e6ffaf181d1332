//! The only place where the front end reads clocks and draws random numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use pgtypes::timestamp::EPOCH_SECONDS;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
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

/// Random bytes.
#[expect(clippy::disallowed_methods, reason = "the edge: UUIDs are drawn here")]
pub(crate) fn random_bytes() -> [u8; 16] {
    rand::Rng::random(&mut rand::rng())
}

/// The random numbers of a session. The same seed gives the same numbers, but not those of PostgreSQL.
pub(crate) struct Chance(Mutex<SmallRng>);

impl Chance {
    /// With a seed of the system's.
    #[expect(clippy::disallowed_methods, reason = "the edge: the seed is drawn here")]
    pub(crate) fn new() -> Chance {
        Chance(Mutex::new(SmallRng::from_rng(&mut rand::rng())))
    }

    /// A number from 0 to below 1.
    pub(crate) fn next(&self) -> f64 {
        self.0.lock().random()
    }

    /// Begins anew.
    pub(crate) fn seed(&self, seed: f64) {
        *self.0.lock() = SmallRng::seed_from_u64(seed.to_bits());
    }
}

/// Sleeps.
pub(crate) async fn sleep(pause: Duration) {
    tokio::time::sleep(pause).await;
}
