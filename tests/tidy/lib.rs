//! House rules that a machine can check: `cargo test -p tidy`.
//!
//! - [`layers`]: crates depend on each other in one direction only, in `Cargo.toml` and in the names their files use.
//! - [`order`]: modules of a crate or folder import from lower layers only, where its header lists `# Layers`.
//! - [`queues`]: every queue has a bound.
//! - [`references`]: files and headings that a document or comment names exist.
//! - [`sizes`]: files, functions and lines stay small; `ratchet.txt` lists what is still too long and may only shrink.
//! - [`words`]: no unfinished work, no commented-out code, no disabled test, a header in every file.
//!
//! Each rule is a function from text to findings. A test of each rule shows that it finds planted breaches.
//! [`paths`] resolves the names that a file uses.

#![cfg(test)]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod layers;
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
