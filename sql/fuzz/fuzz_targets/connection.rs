//! Serves a hostile client: see [`sql_fuzz::connection`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sql_fuzz::connection::run(input));
