//! Decodes arbitrary bytes: see [`engine_fuzz::batch_decode`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| engine_fuzz::batch_decode::run(input));
