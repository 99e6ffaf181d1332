//! House rules that a machine can check: `cargo test --test tidy`.
//!
//! - [`layers`]: crates depend on each other in one direction only, in `Cargo.toml` and in what their files name.
//! - [`queues`]: no queue without a bound.
//! - [`sizes`]: files and functions stay small; what is too long today may only shrink (`tests/tidy/ratchet.txt`).
//! - [`words`]: nothing left undone, no commented-out code, no test switched off, a header in every file.
//!
//! Each rule is a function from text to findings, and has a test which shows that it finds planted breaches as people write them.
//! What a file names comes from [`paths`].

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "a test binary")]

mod layers;
mod paths;
mod queues;
mod sizes;
mod source;
mod words;

/// Fails with all findings at once, so that one run tells everything.
fn assert_clean(findings: Vec<String>) {
    assert!(findings.is_empty(), "{} finding(s):\n{}", findings.len(), findings.join("\n"));
}
