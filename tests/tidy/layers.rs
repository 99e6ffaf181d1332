//! Crates name only the crates below them: `sql -> txn -> kv -> raftstore -> engine`, with `tso` beside
//! `raftstore`. Both sides of requests between nodes lie on `link`, in `kv` and `tso`; `raftstore` sends Raft messages
//! with link's handshake and connections. The simulator lies above `raftstore`, and only tests depend on it.

use std::collections::BTreeMap;
use std::process::Command;

use crate::paths::{self, Named};
use crate::source::{self, Source};

/// The crate that nothing but tests depends on.
const FOR_TESTS: &str = "simulator";

/// What each crate may depend on. The root package sees all but [`FOR_TESTS`].
const ALLOWED: [(&str, &[&str]); 9] = [
    ("engine", &[]),
    ("link", &[]),
    ("tso", &["link"]),
    ("raftstore", &["engine", "link"]),
    ("kv", &["raftstore", "engine", "tso", "link"]),
    ("txn", &["kv", "tso"]),
    ("pgtypes", &[]),
    ("sql", &["txn", "kv", "tso", "pgtypes"]),
    (FOR_TESTS, &["raftstore", "engine"]),
];

fn allowed(krate: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(name, _)| *name == krate).map(|(_, list)| *list)
}

/// Findings in `cargo metadata`'s list of (crate, dependency, is for tests only).
fn wrong_dependencies(edges: &[(String, String, bool)]) -> Vec<String> {
    let ours = |name: &str| allowed(name).is_some();
    let wrong = edges.iter().filter(|(from, to, dev)| {
        let upward = !*dev && ours(to) && allowed(from).is_some_and(|list| !list.contains(&to.as_str()));
        upward || (ours(from) && to == "cortado") || (!*dev && to == FOR_TESTS)
    });
    wrong.map(|(from, to, _)| format!("Cargo.toml of {from} depends on {to}, which does not lie below it")).collect()
}

/// Findings in the paths that a file names.
fn wrong_uses(file: &Source) -> Vec<String> {
    let krate = file.path.split('/').next().unwrap_or("");
    let Some(below) = allowed(krate).filter(|_| !file.is_test()) else {
        return Vec::new();
    };
    let is_wrong = |named: &&Named| {
        let first = named.path[0].as_str();
        // A name alone, outside of a `use`, is a variable.
        let is_crate = named.imported || named.path.len() > 1;
        is_crate && first != krate && allowed(first).is_some() && !below.contains(&first)
    };
    let found = paths::of(file);
    let wrong = found.iter().filter(is_wrong);
    let mut findings: Vec<String> =
        wrong.map(|named| format!("{}:{}: {krate} must not know {}", file.path, named.line, named.path[0])).collect();
    findings.dedup();
    findings
}

/// The modules of `kv`, read from its `lib.rs`. All but the shared ones and the client's are the server's.
struct KvSides {
    modules: Vec<String>,
    reexports: BTreeMap<String, Vec<String>>,
}

/// Where client and server meet: requests and answers, their wire form and its limits, and keys.
const MEETING: [&str; 4] = ["api", "key", "proto", "size"];
const CLIENT: &str = "client";
/// The test double is a server and a client's endpoint at once: that is its purpose.
const DOUBLE: &str = "memory";

impl KvSides {
    fn read(lib: &Source) -> KvSides {
        let parsed = lib.parse();
        let modules = parsed.items.iter().filter_map(|item| match item {
            syn::Item::Mod(item) => Some(item.ident.to_string()),
            _ => None,
        });
        KvSides { modules: modules.collect(), reexports: paths::reexports(lib) }
    }

    /// Names above that `lib.rs` lacks: the rule would check nothing.
    fn stale(&self) -> Vec<String> {
        let named = MEETING.iter().chain([&CLIENT, &DOUBLE]);
        let gone = named.filter(|name| !self.modules.iter().any(|module| module == *name));
        gone.map(|name| format!("tests/tidy/layers.rs names {name}, which kv/src/lib.rs does not declare")).collect()
    }

    /// The module of `kv` that a path leads into; `*` for all of them.
    fn module<'a>(&'a self, path: &'a [String]) -> Option<&'a str> {
        let (root, rest) = path.split_first()?;
        let name = rest.first().filter(|_| root == "crate")?;
        match self.reexports.get(name) {
            Some(origin) if !self.modules.contains(name) => origin.iter().find(|part| *part != "crate"),
            _ => Some(name),
        }
        .map(String::as_str)
    }

    /// Inside `kv`, the client and the server's modules must not know each other.
    fn findings(&self, file: &Source) -> Vec<String> {
        let Some(inside) = file.path.strip_prefix("kv/src/") else {
            return Vec::new();
        };
        let own = inside.split(['/', '.']).next().unwrap_or("");
        if own == DOUBLE || own == "lib" {
            return Vec::new();
        }
        let is_wrong = |module: &str| match own == CLIENT {
            true => module != CLIENT && !MEETING.contains(&module),
            false => module == CLIENT || module == "*",
        };
        let mut findings = Vec::new();
        for named in paths::of(file) {
            if let Some(module) = self.module(&named.path).filter(|module| is_wrong(module)) {
                findings.push(format!("{}:{}: kv's {own} must not know {module}", file.path, named.line));
            }
        }
        findings.dedup();
        findings
    }
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
fn the_two_sides_of_kv_meet_in_its_api_only() {
    let files = source::all();
    let lib = files.iter().find(|file| file.path == "kv/src/lib.rs").unwrap();
    let sides = KvSides::read(lib);
    let mut findings = sides.stale();
    findings.extend(files.iter().flat_map(|file| sides.findings(file)));
    crate::assert_clean(findings);
}

#[test]
fn breaches_are_found() {
    let edge = |from: &str, to: &str, dev| (from.to_string(), to.to_string(), dev);
    assert_eq!(wrong_dependencies(&[edge("engine", "kv", false)]).len(), 1);
    assert_eq!(wrong_dependencies(&[edge("tso", "cortado", true)]).len(), 1);
    for from in ["raftstore", "cortado"] {
        assert_eq!(wrong_dependencies(&[edge(from, "simulator", false)]).len(), 1);
        assert_eq!(wrong_dependencies(&[edge(from, "simulator", true)]), Vec::<String>::new());
    }
    assert_eq!(wrong_dependencies(&[edge("simulator", "kv", false)]).len(), 1);
    assert_eq!(
        wrong_dependencies(&[edge("kv", "engine", false), edge("txn", "raftstore", true)]),
        Vec::<String>::new()
    );

    let breach = |path: &str, text: &str| wrong_uses(&Source::fake(path, text)).len();
    for text in [
        "use raftstore::Region;",
        "use ::raftstore::Region;",
        "use {std::fmt, raftstore::{Region, RegionId}};",
        "use raftstore as r;\nfn a() -> r::Region {}",
        "extern crate raftstore;",
        "fn a(id: raftstore::RegionId) {}",
        "fn a() { let x = vec![raftstore::RegionId::new(1)]; }",
        "impl From<(raftstore::RegionId, u8)> for A {}",
        "mod tests {\n    use raftstore::Region;\n}",
    ] {
        assert!(breach("txn/src/x.rs", text) >= 1, "in\n{text}");
        assert_eq!(breach("kv/src/x.rs", text), 0, "kv may:\n{text}");
        assert_eq!(breach("txn/tests/x.rs", text), 0, "tests may:\n{text}");
    }
    assert_eq!(breach("engine/src/x.rs", "// kv::Key\nconst A: &str = \"kv::Key\";\nfn f(kv: u8) -> u8 { kv }"), 0);
}

#[test]
fn breaches_inside_kv_are_found() {
    let lib = "pub mod api;\npub mod client;\nmod key;\nmod memory;\nmod proto;\nmod size;\nmod scheduler;\nmod port;\n\
               pub use key::Key;\npub use scheduler::Scheduler;\npub use client::Client;";
    let sides = KvSides::read(&Source::fake("kv/src/lib.rs", lib));
    assert_eq!(sides.stale(), Vec::<String>::new());
    let gone = KvSides::read(&Source::fake("kv/src/lib.rs", &lib.replace("pub mod api;", "")));
    assert_eq!(gone.stale().len(), 1);

    let breach = |path: &str, text: &str| sides.findings(&Source::fake(path, text)).len();
    for text in [
        "use crate::scheduler::Scheduler;",
        "use crate::{api::Request, scheduler::Scheduler};",
        "use crate::{\n    api::{Request, Response},\n    scheduler::{self as plan},\n};",
        "use super::super::scheduler::Scheduler;",
        "use super::super::{api::Request, port};",
        "use crate::Scheduler;",
        "use crate::*;",
        "fn a() -> crate::scheduler::Scheduler {}",
        "fn a() { let x = vec![crate::port::open()]; }",
        "mod tests {\n    use super::super::super::port::Port;\n}",
    ] {
        assert_eq!(breach("kv/src/client/scan.rs", text), 1, "in\n{text}");
    }
    assert_eq!(breach("kv/src/client/mod.rs", "use super::scheduler::Scheduler;"), 1, "one level up is the root");
    for text in [
        "use crate::client::Client;",
        "use crate::{api::Request, client};",
        "use super::client::Client;",
        "use crate::Client;",
        "fn a() { super::client::connect(); }",
    ] {
        assert_eq!(breach("kv/src/scheduler.rs", text), 1, "in\n{text}");
        assert_eq!(breach("kv/src/memory/mod.rs", text), 0, "the double may:\n{text}");
    }
    let fine = "use crate::api::Request; // not crate::scheduler\nuse super::scan;\nuse crate::Key;\n\
                use crate::proto::pb;\nuse crate::client::bound;\nconst A: &str = \"crate::scheduler\";";
    assert_eq!(breach("kv/src/client/dispatch.rs", fine), 0);
    assert_eq!(breach("kv/src/scheduler.rs", "use crate::{api::Request, port::Port}; // not crate::client"), 0);
}
