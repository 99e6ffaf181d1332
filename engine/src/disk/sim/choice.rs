//! The choices that a crash makes among its possible outcomes.
//!
//! `content` and `names` list the outcomes of a crash. They are leaves above this module: a [`Choices`] knows neither.

use rand::Rng;
use rand::rngs::StdRng;

/// Where the choices of a crash come from.
pub(super) enum Choices<'a> {
    /// A seeded generator.
    Seeded(Box<StdRng>),
    /// The caller: given `n`, it returns one of `0..n`.
    Caller(&'a mut dyn FnMut(usize) -> usize),
}

impl Choices<'_> {
    /// One of `0..count`; `count` is at least 1.
    pub(super) fn pick(&mut self, count: usize) -> usize {
        match self {
            Choices::Seeded(rng) => rng.random_range(0..count),
            Choices::Caller(choose) => choose(count).min(count - 1),
        }
    }

    /// Yes or no. The probability applies to seeded choices only.
    pub(super) fn flip(&mut self, probability: f64) -> bool {
        match self {
            Choices::Seeded(rng) => rng.random_bool(probability),
            Choices::Caller(choose) => choose(2) == 1,
        }
    }
}
