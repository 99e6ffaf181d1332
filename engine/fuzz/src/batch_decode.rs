//! Decodes bytes that may be anything: what stands in commit groups, blocks, headers, indexes and write batches.
//!
//! The first byte of an input names the decoder. Nothing panics, nothing is allocated that the input only claims (libFuzzer's
//! `-malloc_limit_mb` watches that), and what is decoded is encoded and decoded again to the same.

use engine::WriteBatch;
use engine::log::fuzzing;

/// The decoder of write batches; those below are the log's.
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
