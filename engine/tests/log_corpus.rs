//! Runs the committed inputs of the fuzz targets. Fuzzing needs a nightly compiler and time; these inputs, the seeds
//! and past findings, need neither: `cargo test -p engine --features fuzzing --test log_corpus`.

#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used, clippy::expect_used, reason = "a test binary")]

#[path = "../fuzz/src/bases.rs"]
mod bases;
#[path = "../fuzz/src/batch_decode.rs"]
mod batch_decode;
#[path = "log/model/mod.rs"]
mod log_model;
#[path = "../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../fuzz/src/recover.rs"]
mod recover;
#[path = "../fuzz/src/tools.rs"]
mod tools;

/// Runs every input of a target; there must be at least `at_least`. The last printed name is that of the failing input.
fn replay(target: &str, at_least: usize, run: fn(&[u8])) {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() >= at_least, "{} inputs", inputs.len());
    for input in inputs {
        println!("{}", input.display());
        run(&std::fs::read(input).unwrap());
    }
}

#[test]
fn the_corpus_of_recover_passes() {
    replay("recover", 20, recover::run);
}

#[test]
fn the_corpus_of_batch_decode_passes() {
    replay("batch_decode", 20, batch_decode::run);
}
