//! Nothing left undone, no dead code in comments, no unbounded queue, a header in every file.

use crate::source::{self, Source};

/// Marks of work left undone. Spelt apart so that this file does not find itself.
const MARKS: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("HA", "CK"),
    concat!("unimpl", "emented!("),
    concat!("to", "do!("),
];

/// Queues without a bound: they turn overload into exhausted memory.
const UNBOUNDED: [&str; 4] = [
    concat!("unbounded", "_channel"),
    concat!("crossbeam_channel::", "unbounded"),
    concat!("mpsc::", "channel()"),
    concat!("futures::channel::mpsc::", "unbounded"),
];

fn findings(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    if !file.text.starts_with("//!") {
        found.push(format!("{}:1: the file does not open with what it is for (`//!`)", file.path));
    }
    for (number, line) in file.text.lines().enumerate() {
        for mark in MARKS.iter().filter(|mark| line.contains(**mark)) {
            found.push(format!("{}:{}: {mark} left in the code", file.path, number + 1));
        }
        for queue in UNBOUNDED.iter().filter(|queue| line.contains(**queue)) {
            found.push(format!("{}:{}: {queue} has no bound", file.path, number + 1));
        }
        if line.contains(concat!("#[ig", "nore")) {
            found.push(format!("{}:{}: a test is switched off", file.path, number + 1));
        }
    }
    found.extend(commented_out(&file.text).into_iter().map(|line| format!("{}:{line}: commented-out code", file.path)));
    found
}

/// First lines of `//` comment blocks that parse as Rust statements.
fn commented_out(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut block = String::new();
    let mut start = 0;
    for (number, line) in text.lines().chain([""]).enumerate() {
        let plain = line.trim_start().strip_prefix("//").filter(|rest| !rest.starts_with(['/', '!']));
        match plain {
            Some(rest) => {
                if block.is_empty() {
                    start = number + 1;
                }
                block.push_str(rest);
                block.push('\n');
            }
            None if !block.is_empty() => {
                if is_code(&block) {
                    found.push(start);
                }
                block.clear();
            }
            None => {}
        }
    }
    found
}

fn is_code(block: &str) -> bool {
    // Prose may parse by chance (one word is an expression); code has statements.
    let looks_like_it = block.lines().any(|line| line.trim_end().ends_with([';', '{', '}']));
    looks_like_it && syn::parse_str::<syn::Block>(&format!("{{{block}}}")).is_ok_and(|parsed| !parsed.stmts.is_empty())
}

#[test]
fn nothing_is_left_undone() {
    crate::assert_clean(source::all().iter().flat_map(findings).collect());
}

#[test]
fn breaches_are_found() {
    let count = |text: &str| findings(&Source::fake("a.rs", text)).len();
    assert_eq!(count("//! Fine.\n// Why: the lease; it ends.\nfn a() {}\n"), 0);
    assert_eq!(count("fn a() {}\n"), 1, "no header");
    for mark in MARKS {
        assert!(count(&format!("//! x\nlet a = 1; // {mark}\n")) >= 1, "{mark}");
    }
    for queue in UNBOUNDED {
        assert_eq!(count(&format!("//! x\nlet (a, b) = {queue};\n")), 1, "{queue}");
    }
    assert_eq!(count("//! x\n    // let a = 1;\n    // b(a);\nfn c() {}\n"), 1, "commented-out code");
    assert_eq!(count(&format!("//! x\n#[{}]\nfn a() {{}}\n", "ignore")), 1);
}
