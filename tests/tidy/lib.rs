//! House rules that a machine can check: `cargo test -p tidy`.
//!
//! - [`layers`]: crates depend on each other in one direction only, in `Cargo.toml` and in the names their files use.
//! - [`order`]: modules import from lower layers only, as the `# Layers` of their folder's header lists them.
//! - [`queues`]: every queue has a bound.
//! - [`references`]: files and headings that a document or comment names exist.
//! - [`sizes`]: files, functions and lines stay small.
//! - [`words`]: no unfinished work, no commented-out code, no disabled test, a header in every file.
//!
//! Each rule is a function from text to findings. A test of each rule shows that it finds planted breaches.
//! [`paths`] resolves the names that a file uses; [`modules`] traces them through the re-exports of a crate.
//! `ratchet.txt` lists what breaks `sizes` and `order` today. Its numbers may only fall.

#![cfg(test)]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod layers;
mod modules;
mod order;
mod paths;
mod queues;
mod references;
mod sizes;
mod source;
mod words;

/// Fails with all findings at once.
fn assert_clean(findings: Vec<String>) {
    assert!(findings.is_empty(), "{} finding(s):\n{}", findings.len(), findings.join("\n"));
}
