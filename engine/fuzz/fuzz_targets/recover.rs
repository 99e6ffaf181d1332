//! Opens a damaged log: see [`engine_fuzz::recover`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| engine_fuzz::recover::run(input));
