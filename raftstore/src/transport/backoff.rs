//! The delay before the next connection attempt. Pure: the caller seeds the generator.

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
}
