//! No queue without a bound: it would turn overload into exhausted memory.

use crate::paths::{self, Named};
use crate::source::{self, Source};

/// Names that only functions and types of unbounded queues have, in every library of queues.
const UNMISTAKABLE: [&str; 4] = ["unbounded", "unbounded_channel", "UnboundedSender", "UnboundedReceiver"];

fn is_unbounded(named: &Named) -> bool {
    let Some(last) = named.path.last() else { return false };
    if UNMISTAKABLE.contains(&last.as_str()) {
        // A name alone may be a local variable.
        return named.imported || named.arguments.is_some() || (named.path.len() > 1 && !named.guessed);
    }
    // The standard library's is called like tokio's bounded one, which takes its bound as an argument.
    let std = named.path.iter().eq(["std", "sync", "mpsc", "channel"]);
    let bare = named.path.ends_with(&["mpsc".to_string(), "channel".to_string()]) && named.arguments == Some(0);
    std || bare
}

fn findings(file: &Source) -> Vec<String> {
    let unbounded = paths::of(file).into_iter().filter(is_unbounded);
    let mut found: Vec<String> =
        unbounded.map(|named| format!("{}:{}: {} has no bound", file.path, named.line, named.text())).collect();
    found.dedup();
    found
}

#[test]
fn every_queue_has_a_bound() {
    crate::assert_clean(source::all().iter().flat_map(findings).collect());
}

/// Texts with a breach, and the lines on which it must be found.
#[test]
fn breaches_are_found() {
    let planted: [(&str, &[usize]); 12] = [
        ("fn a() {\n    let (tx, rx) = std::sync::mpsc::channel::<Vec<u8>>();\n}", &[2]),
        ("use std::sync::mpsc;\n\nfn a() {\n    let (tx, rx) = mpsc::channel();\n}", &[4]),
        ("use std::sync::mpsc::{Receiver, Sender, channel};\nfn a() {\n    channel::<u8>();\n}", &[1, 3]),
        ("use std::sync::mpsc::*;\nfn a() {\n    let (tx, rx) = channel();\n}", &[3]),
        ("use std::sync::{self as s};\nfn a() {\n    let make = s::mpsc::channel::<u8>;\n}", &[3]),
        ("use crossbeam_channel::{bounded, unbounded};\nfn a() {\n    bounded(1);\n    unbounded()\n}", &[1, 4]),
        ("use crossbeam_channel as cc;\nfn a() {\n    let (tx, rx) = cc::unbounded::<Task>();\n}", &[3]),
        ("use tokio::sync::mpsc::unbounded_channel;\nfn a() {\n    unbounded_channel()\n}", &[1, 3]),
        ("use tokio::sync::mpsc;\nstruct A {\n    tx: mpsc::UnboundedSender<u8>,\n}", &[3]),
        ("use futures::channel::mpsc::unbounded as queue;\nfn a() {\n    queue()\n}", &[1, 3]),
        ("use tokio::sync::mpsc;\nfn a() {\n    vec![\n        mpsc::unbounded_channel::<A>(),\n    ]\n}", &[4]),
        (
            "mod outer {\n    mod tests {\n        use super::mpsc;\n        fn a() {\n            mpsc::channel()\n  \
             }\n    }\n}",
            &[5],
        ),
    ];
    for (text, lines) in planted {
        let expected: Vec<String> = lines.iter().map(|line| format!("kv/src/a.rs:{line}")).collect();
        let found = findings(&Source::fake("kv/src/a.rs", text));
        let at: Vec<&str> = found.iter().map(|finding| finding.split(": ").next().unwrap()).collect();
        assert_eq!(at, expected, "in\n{text}\n{found:?}");
    }
}

#[test]
fn bounded_queues_are_fine() {
    for text in [
        "use tokio::sync::mpsc;\nfn a() { mpsc::channel::<u8>(8); tokio::sync::oneshot::channel::<u8>(); }",
        "use tokio::sync::{mpsc::{self, channel}, oneshot};\nfn a() { channel(1); oneshot::channel(); }",
        "use crossbeam_channel::{Sender, bounded};\nfn a() { bounded(1); std::sync::mpsc::sync_channel(1); }",
        "use proptest::prelude::*;\nfn a() { let (start, end, unbounded) = bounds; if unbounded { } }",
        "// mpsc::unbounded_channel()\nconst A: &str = \"crossbeam_channel::unbounded()\";",
        "use tokio::sync::mpsc;\nmod tests { use std::sync::mpsc; fn a() { mpsc::sync_channel(1); } }\n\
         fn b() { mpsc::channel(1); }",
    ] {
        assert_eq!(findings(&Source::fake("kv/src/a.rs", text)), Vec::<String>::new(), "in\n{text}");
    }
}
