//! The bytes that all engines are given: one pool per run, entries cut out of it.
//!
//! The half-compressible pool is cells of 64 bytes, 27 random ones and then 37 times the same: LZ4 leaves about half of it, as of
//! encoded commands. An entry is a copy of a random stretch, so two entries have nothing long in common. Its first
//! 8 bytes are its index, which is where raft-engine's adapter finds it; the other engines get the same bytes.

use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

/// Bytes of a pool: entries of 8 MiB still begin in many places.
const POOL: usize = 24 << 20;
const CELL: usize = 64;
const RANDOM: usize = 27;

/// Where entries are cut from.
pub struct Payloads {
    pool: Vec<u8>,
}

impl Payloads {
    /// Data of which LZ4 leaves about half.
    pub fn half_compressible() -> Payloads {
        let mut pool = vec![b'v'; POOL];
        let mut rng = StdRng::seed_from_u64(7);
        for cell in pool.chunks_mut(CELL) {
            rng.fill_bytes(&mut cell[..RANDOM]);
        }
        Payloads { pool }
    }

    /// Data that is one letter over and over, as in the article's example.
    pub fn constant() -> Payloads {
        Payloads { pool: vec![b'x'; POOL] }
    }

    /// An entry of `len` bytes, at least 8, for `index`.
    pub fn entry(&self, rng: &mut StdRng, index: u64, len: usize) -> Vec<u8> {
        let at = rng.random_range(0..self.pool.len() - len);
        let mut entry = self.pool[at..at + len].to_vec();
        entry[..8].copy_from_slice(&index.to_le_bytes());
        entry
    }

    /// What LZ4 leaves of blocks of 32 KiB, as a share of them.
    pub fn compressed_share(&self) -> f64 {
        let sample = &self.pool[..1 << 20];
        let left: usize =
            sample.chunks(32 << 10).map(|block| lz4::block::compress(block, None, false).unwrap().len()).sum();
        left as f64 / sample.len() as f64
    }
}

/// A generator of its own for each thread and purpose; the same in every run and for every engine.
pub fn generator(stream: u64) -> StdRng {
    StdRng::seed_from_u64(0x5eed_0000 + stream)
}

/// A normally distributed number (Box and Muller 1958).
pub fn normal(rng: &mut StdRng, mean: f64, deviation: f64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    mean + deviation * radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
