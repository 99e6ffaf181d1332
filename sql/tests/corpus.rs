//! Runs the committed inputs of the fuzz targets, and statements of the golden scripts with pieces exchanged. Fuzzing
//! needs a nightly compiler and time; these need neither: `cargo test -p sql --features fuzzing --test corpus`.
//! `CORTADO_STATEMENT_SEEDS=1000` tries more statements, from other seeds with `CORTADO_STATEMENT_SEED`.

// The future of a session nests deeper than the default depth of the check that it may move between threads.
#![recursion_limit = "256"]
#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used, clippy::expect_used, reason = "a test binary")]

use std::alloc::System;
use std::path::{Path, PathBuf};

use cap::Cap;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

#[path = "../fuzz/src/connection.rs"]
mod connection;
#[path = "../fuzz/src/node.rs"]
mod node;
#[path = "../fuzz/src/program.rs"]
mod program;
#[path = "../fuzz/src/replies.rs"]
mod replies;
#[path = "../fuzz/src/statement.rs"]
mod statement;

use node::FuzzNode;

/// No input makes the server take more: an allocation beyond it ends the process. Four tests run at once.
const MEMORY: usize = 512 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY);

fn inputs(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut inputs: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    inputs.sort();
    inputs
}

/// Runs every input of a target; there must be at least `at_least`. The last printed name is that of the failing input.
fn replay(target: &str, at_least: usize, run: fn(&[u8])) {
    let inputs = inputs(&format!("fuzz/corpus/{target}"));
    assert!(inputs.len() >= at_least, "{} inputs", inputs.len());
    for input in inputs {
        println!("{}", input.display());
        run(&std::fs::read(input).unwrap());
    }
}

#[test]
fn the_corpus_of_connection_passes() {
    replay("connection", 20, connection::run);
}

#[test]
fn the_corpus_of_statement_passes() {
    replay("statement", 20, statement::run);
}

/// Messages of every kind, cut in two at every byte.
#[test]
fn a_session_cut_at_every_byte_is_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/connection/all-messages");
    connection::run_in_two(&std::fs::read(path).unwrap());
}

/// The statements of a golden script: what stands above each `---`.
fn statements(script: &str) -> Vec<String> {
    let (mut statements, mut text, mut is_output) = (Vec::new(), String::new(), false);
    for line in script.lines() {
        match line {
            "----" | "---" => is_output = true,
            "" => is_output = false,
            _ if is_output || line.starts_with('#') => {}
            line => {
                text.push_str(line);
                text.push('\n');
                if line.ends_with(';') {
                    statements.push(std::mem::take(&mut text));
                }
            }
        }
    }
    statements
}

/// Pieces that statements seldom have where they fall.
const PIECES: [&str; 32] = [
    "(",
    ")",
    ",",
    "null",
    "*",
    "::int",
    "$1",
    "$2",
    "''",
    "not",
    "1e400",
    "-",
    ".",
    "[1]",
    "array[]",
    "case",
    "end",
    "row(1)",
    "::text[]",
    "exists",
    "any",
    "over ()",
    "filter (where true)",
    "within group",
    "collate \"C\"",
    "at time zone",
    "lateral",
    "with x as (select 1)",
    "union",
    "limit 1",
    "9223372036854775808",
    "interval '1'",
];

/// A statement with some of its words deleted, doubled, exchanged, or replaced by words of another one.
fn mutated(words: &[&str], others: &[&str], rng: &mut StdRng) -> String {
    let mut words = words.to_vec();
    for _ in 0..rng.random_range(1..=3) {
        let at = rng.random_range(0..words.len());
        match rng.random_range(0..5) {
            0 if words.len() > 1 => drop(words.remove(at)),
            1 => words.insert(at, words[at]),
            2 => {
                let other = rng.random_range(0..words.len());
                words.swap(at, other);
            }
            3 => words[at] = others[rng.random_range(0..others.len())],
            _ => words.insert(at, PIECES[rng.random_range(0..PIECES.len())]),
        }
    }
    words.join(" ")
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Each script's statements run, as far as they do, and then their variations are planned in its catalog.
#[test]
fn variations_of_the_golden_scripts_are_planned_or_refused() {
    let (seeds, seed) = (number("CORTADO_STATEMENT_SEEDS", 8), number("CORTADO_STATEMENT_SEED", 1));
    let mut planned = 0;
    for path in inputs("tests/scripts") {
        let statements = statements(&std::fs::read_to_string(&path).unwrap());
        let node = FuzzNode::start();
        for text in &statements {
            node.serve([[program::login().as_slice(), &program::query(text)].concat()]);
        }
        let (catalog, mut rng) = (node.catalog(), StdRng::seed_from_u64(seed));
        let words: Vec<Vec<&str>> =
            statements.iter().map(|text| text.split_inclusive([' ', '(', ')', ',']).collect()).collect();
        let all: Vec<&str> = words.iter().flatten().copied().collect();
        for (text, words) in statements.iter().zip(&words) {
            statement::plan(text, &catalog);
            for _ in 0..seeds {
                statement::plan(&mutated(words, &all, &mut rng), &catalog);
                planned += 1;
            }
        }
    }
    assert!(planned > 5_000 || seeds < 8, "{planned} statements");
}

/// What the targets look for, they see: a session that panics, half a message, other replies.
mod checks {
    use super::*;

    #[test]
    #[should_panic = "a session panicked"]
    fn a_panic_of_a_session_is_seen() {
        struct Broken(bool);
        impl tokio::io::AsyncRead for Broken {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
                _: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                assert!(std::mem::replace(&mut self.0, true), "planted");
                std::task::Poll::Ready(Ok(()))
            }
        }
        FuzzNode::start().serve_from(Box::new(Broken(false)));
    }

    #[test]
    #[should_panic = "half a message"]
    fn half_a_message_is_seen() {
        replies::summary(b"Z\0\0\0\x05");
    }

    #[test]
    #[should_panic = "other replies"]
    fn other_replies_are_seen() {
        connection::same(&Some(vec!["Z".to_owned()]), &Some(Vec::new()));
    }

    #[test]
    #[should_panic = "points outside"]
    fn a_position_outside_of_the_text_is_seen() {
        let error = sql::error::SqlError::new(sql::error::SqlState::SYNTAX_ERROR, "x").at(9);
        statement::check(&error, "select");
    }
}
