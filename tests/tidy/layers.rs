//! Crates know only what lies below them: `sql -> txn -> kv -> raftstore -> engine`, and `tso` is a leaf.

use std::process::Command;

use crate::source::{self, Source};

/// What each crate may depend on. The root package sees all.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("engine", &[]),
    ("tso", &[]),
    ("raftstore", &["engine"]),
    ("kv", &["raftstore", "engine", "tso"]),
    ("txn", &["kv", "tso"]),
    ("sql", &["txn", "kv", "tso"]),
];

fn allowed(krate: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(name, _)| *name == krate).map(|(_, list)| *list)
}

/// Findings in `cargo metadata`'s list of (crate, dependency, is for tests only).
fn wrong_dependencies(edges: &[(String, String, bool)]) -> Vec<String> {
    let ours = |name: &str| allowed(name).is_some();
    let wrong = edges.iter().filter(|(from, to, dev)| {
        let upward = !*dev && ours(to) && allowed(from).is_some_and(|list| !list.contains(&to.as_str()));
        upward || (ours(from) && to == "cortado")
    });
    wrong.map(|(from, to, _)| format!("Cargo.toml of {from} depends on {to}, which does not lie below it")).collect()
}

/// Findings in the paths that a file names.
fn wrong_uses(file: &Source) -> Vec<String> {
    let krate = file.path.split('/').next().unwrap_or("");
    let Some(below) = allowed(krate) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        for (other, _) in ALLOWED {
            let names_it = code.contains(&format!("use {other}::")) || code.contains(&format!(" {other}::"));
            if names_it && other != krate && !below.contains(&other) && !file.is_test() {
                findings.push(format!("{}:{}: {krate} must not know {other}", file.path, number + 1));
            }
        }
        if let Some(side) = wrong_side_of_kv(&file.path, code) {
            findings.push(format!(
                "{}:{}: kv's client and server must not import each other ({side})",
                file.path,
                number + 1
            ));
        }
    }
    findings
}

/// Inside `kv`, `client` and the server's modules meet only in `api`.
fn wrong_side_of_kv(path: &str, code: &str) -> Option<&'static str> {
    const SERVER: [&str; 9] = [
        "crate::server",
        "crate::scheduler",
        "crate::service",
        "crate::latch",
        "crate::read",
        "crate::mvcc",
        "crate::percolator",
        "crate::grants",
        "crate::placement",
    ];
    // The test double is a server and a client's endpoint at once: that is its purpose.
    if path.starts_with("kv/src/memory") {
        return None;
    }
    if path.starts_with("kv/src/client") {
        return SERVER.iter().find(|module| code.contains(*module)).copied();
    }
    (path.starts_with("kv/src/") && code.contains("crate::client")).then_some("crate::client")
}

#[test]
fn crates_depend_downward_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(source::root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut edges = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        for dependency in package["dependencies"].as_array().unwrap() {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
            edges.push((text(&package["name"]), text(&dependency["name"]), dependency["kind"] == "dev"));
        }
    }
    assert!(edges.iter().any(|(from, to, _)| from == "kv" && to == "raftstore"), "the rule must see the crates");
    crate::assert_clean(wrong_dependencies(&edges));
}

#[test]
fn files_name_downward_only() {
    crate::assert_clean(source::all().iter().flat_map(wrong_uses).collect());
}

#[test]
fn breaches_are_found() {
    let edge = |from: &str, to: &str, dev| (from.to_string(), to.to_string(), dev);
    assert_eq!(wrong_dependencies(&[edge("engine", "kv", false)]).len(), 1);
    assert_eq!(wrong_dependencies(&[edge("tso", "cortado", true)]).len(), 1);
    assert_eq!(
        wrong_dependencies(&[edge("kv", "engine", false), edge("txn", "raftstore", true)]),
        Vec::<String>::new()
    );

    let breach = |path: &str, text: &str| wrong_uses(&Source::fake(path, text)).len();
    assert_eq!(breach("engine/src/x.rs", "use raftstore::Region;"), 1);
    assert_eq!(breach("txn/src/x.rs", "let x = raftstore::RegionId::new(1);"), 1);
    assert_eq!(breach("kv/src/client/x.rs", "use crate::percolator::prewrite;"), 1);
    assert_eq!(breach("kv/src/server.rs", "use crate::client::Client;"), 1);
    assert_eq!(breach("kv/src/server.rs", "use crate::api::Request; // not crate::client"), 0);
}
