//! The payload of all engines: one pool per run, from which entries are cut.
//!
//! The half-compressible pool consists of cells of 64 bytes: 27 random bytes and 37 equal ones. LZ4 compresses it to
//! about half, as it does encoded commands. The incompressible pool is random bytes, as commands of encrypted or
//! compressed values are. An entry is a copy of a random range, so two entries have nothing long in
//! common. Its first 8 bytes are its index, which raft-engine's adapter needs; the other engines get the same bytes.

use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

/// The size of a pool: even entries of 8 MiB have many start offsets.
const POOL: usize = 24 << 20;
const CELL: usize = 64;
const RANDOM: usize = 27;

/// The pool to cut entries from.
pub struct Payloads {
    pool: Vec<u8>,
}

impl Payloads {
    /// Data that LZ4 compresses to about half.
    pub fn half_compressible() -> Payloads {
        let mut pool = vec![b'v'; POOL];
        let mut rng = StdRng::seed_from_u64(7);
        for cell in pool.chunks_mut(CELL) {
            rng.fill_bytes(&mut cell[..RANDOM]);
        }
        Payloads { pool }
    }

    /// Data that does not compress: random bytes.
    pub fn incompressible() -> Payloads {
        let mut pool = vec![0; POOL];
        StdRng::seed_from_u64(8).fill_bytes(&mut pool);
        Payloads { pool }
    }

    /// One repeated letter, as in the example of the article.
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

    /// The compressed share of blocks of 32 KiB with LZ4.
    pub fn compressed_share(&self) -> f64 {
        let sample = &self.pool[..1 << 20];
        let left: usize =
            sample.chunks(32 << 10).map(|block| lz4::block::compress(block, None, false).unwrap().len()).sum();
        left as f64 / sample.len() as f64
    }
}

/// A generator for each thread and purpose; the same in every run and for every engine.
pub fn generator(stream: u64) -> StdRng {
    StdRng::seed_from_u64(0x5eed_0000 + stream)
}

/// A normally distributed number (Box and Muller 1958).
pub fn normal(rng: &mut StdRng, mean: f64, deviation: f64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    mean + deviation * radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
