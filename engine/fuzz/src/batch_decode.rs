//! Decodes arbitrary bytes as the parts of commit groups, blocks, headers, indexes and write batches.
//!
//! The first byte of an input selects the decoder. Nothing panics, no allocation follows a claimed size (libFuzzer's
//! `-malloc_limit_mb` checks that), and a decoded value survives a round trip.

use engine::WriteBatch;
use engine::log::fuzzing;

/// The decoder of write batches. Lower numbers are decoders of the log.
pub const WRITE_BATCH: u8 = fuzzing::DECODERS;

pub fn run(input: &[u8]) {
    let Some((decoder, bytes)) = input.split_first() else { return };
    match decoder % (WRITE_BATCH + 1) {
        WRITE_BATCH => write_batch(bytes),
        decoder => fuzzing::decode(decoder, bytes),
    }
}

fn write_batch(bytes: &[u8]) {
    let Ok(batch) = WriteBatch::from_bytes(bytes) else { return };
    // A batch has one encoding.
    assert_eq!(batch.as_bytes(), bytes);
    let mut again = WriteBatch::new();
    again.append(&batch);
    assert_eq!((again.as_bytes(), again.iter().count()), (bytes, batch.len()));
}
