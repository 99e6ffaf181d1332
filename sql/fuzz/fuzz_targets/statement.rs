//! Plans a text: see [`sql_fuzz::statement`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sql_fuzz::statement::run(input));
