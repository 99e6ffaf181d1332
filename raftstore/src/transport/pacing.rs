//! The pace of the transport: the backoff between connection attempts and the rate limit of snapshot files.
//!
//! Pure: the clock is an argument, and the caller seeds the generator.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Exponential backoff with full jitter over its upper half.
///
/// Invariant: `floor <= ceiling <= cap`, and every delay lies between half the ceiling and the ceiling.
pub(super) struct Backoff {
    floor: Duration,
    cap: Duration,
    ceiling: Duration,
    rng: StdRng,
}

impl Backoff {
    /// Starts at `floor` and doubles up to `cap`.
    pub(super) fn new(floor: Duration, cap: Duration, seed: u64) -> Backoff {
        Backoff { floor, cap: cap.max(floor), ceiling: floor, rng: StdRng::seed_from_u64(seed) }
    }

    /// The delay after another failure.
    pub(super) fn next(&mut self) -> Duration {
        let delay = self.ceiling.mul_f64(self.rng.random_range(0.5..=1.0));
        self.ceiling = (self.ceiling * 2).min(self.cap);
        delay
    }

    /// Resets the delay to the floor after a success.
    pub(super) fn reset(&mut self) {
        self.ceiling = self.floor;
    }
}

/// Allows a burst of one second's worth of bytes, then the rate.
///
/// Debt is allowed, because a chunk is never split: a caller that takes more than is available waits until the debt is
/// paid.
pub(super) struct RateLimiter {
    bytes_per_second: f64,
    /// Bytes that may pass now; negative is debt.
    tokens: f64,
    /// When `tokens` was computed, since the caller's epoch.
    at: Duration,
}

impl RateLimiter {
    /// A full bucket at `now`. A rate of 0 counts as 1.
    pub(super) fn new(bytes_per_second: u64, now: Duration) -> RateLimiter {
        let rate = bytes_per_second.max(1) as f64;
        RateLimiter { bytes_per_second: rate, tokens: rate, at: now }
    }

    /// Takes `bytes` and returns how long to wait before sending them. `now` never decreases.
    pub(super) fn take(&mut self, bytes: usize, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * self.bytes_per_second).min(self.bytes_per_second) - bytes as f64;
        Duration::from_secs_f64((-self.tokens / self.bytes_per_second).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_the_cap_and_resets() {
        let ms = Duration::from_millis;
        for seed in 0..20 {
            let mut backoff = Backoff::new(ms(10), ms(100), seed);
            for ceiling in [10, 20, 40, 80, 100, 100] {
                let delay = backoff.next();
                assert!(delay >= ms(ceiling) / 2 && delay <= ms(ceiling), "{delay:?} under {ceiling} ms, seed {seed}");
            }
            backoff.reset();
            assert!(backoff.next() <= ms(10), "seed {seed}");
        }
    }

    #[test]
    fn burst_then_the_rate() {
        let second = Duration::from_secs(1);
        let mut limiter = RateLimiter::new(1000, Duration::ZERO);
        assert_eq!(limiter.take(600, Duration::ZERO), Duration::ZERO);
        assert_eq!(limiter.take(400, Duration::ZERO), Duration::ZERO);
        assert_eq!(limiter.take(500, Duration::ZERO), second / 2);
        assert_eq!(limiter.take(500, second), second / 2 - second / 2);
        assert_eq!(limiter.take(1000, second), second);
        // An idle hour is worth one second.
        assert_eq!(limiter.take(3000, Duration::from_secs(3600)), second * 2);
    }
}
