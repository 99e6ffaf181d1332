//! Modules import from lower layers only, and no import goes in a circle through the file of a folder.
//!
//! A `lib.rs`, `main.rs` or `mod.rs` lists the layers of its folder in its header, lowest first:
//!
//! ```text
//! //! # Layers
//! //!
//! //! 1. `format`, `error`: the bytes of the log
//! //! 2. `index`: the in-memory index
//! ```
//!
//! 1. A module names modules of lower layers and itself. Modules of one layer do not name each other.
//! 2. The list has every module that the file declares. Test modules are exempt.
//! 3. A folder with three or more files has a list.
//! 4. If code in the folder's own file names modules of the folder, it is on top of them all. They do not name what it
//!    defines, nor what it imports without re-exporting it.
//! 5. A folder's own file is `foo/mod.rs`, not `foo.rs` beside `foo/`. Tests may be beside: `foo.rs` and
//!    `foo/tests.rs`.
//!
//! Names are traced to their origin, so a re-export elsewhere hides nothing. `ratchet.txt` lists the folders that break
//! these rules, with the number of findings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::modules::{Crate, Module};
use crate::sizes;
use crate::source::{self, Source};

/// Folders with this many files list their layers.
const LAYERED_FILES: usize = 3;

/// What a folder breaks: the folder, with a slash at the end, and the text.
type Finding = (String, String);

/// A folder and its own file.
struct Folder<'a> {
    krate: &'a Crate,
    path: &'a [String],
    own: &'a Module,
    /// The layer of each module; empty if the header has no list.
    ranks: BTreeMap<String, usize>,
    is_above_children: bool,
}

impl<'a> Folder<'a> {
    /// `None` if the module has no folder.
    fn read(krate: &'a Crate, path: &'a [String], own: &'a Module) -> Option<Folder<'a>> {
        let file = own.file.rsplit('/').next()?;
        let is_folder = ["lib.rs", "main.rs", "mod.rs"].contains(&file);
        let is_above_children = own.is_above_children(path);
        is_folder.then(|| Folder { krate, path, own, ranks: ranks(&own.header), is_above_children })
    }

    /// The folder's path, with a slash at the end.
    fn name(&self) -> String {
        folder_of(&self.own.file)
    }

    /// Modules that the list lacks, and names in it that are no modules.
    fn stale(&self) -> Vec<String> {
        if self.ranks.is_empty() {
            return Vec::new();
        }
        let (file, declared) = (&self.own.file, &self.own.children);
        let missing = declared.iter().filter(|module| !self.ranks.contains_key(*module));
        let gone = self.ranks.keys().filter(|name| !declared.contains(*name));
        let missing = missing.map(|module| format!("{file}: `# Layers` lacks `{module}`"));
        missing.chain(gone.map(|name| format!("{file}: `# Layers` names `{name}`, which is no module"))).collect()
    }

    /// Names in the folder's modules that break rule 1 or rule 4. Reports each name once per file.
    fn breaches(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (path, module) in &self.krate.modules {
            let Some(module_name) = path.strip_prefix(self.path).and_then(|inside| inside.first()) else { continue };
            let mut reported = BTreeSet::new();
            for named in &module.names {
                if let Some(breach) = self.breach(module_name, &named.path)
                    && reported.insert(breach.clone())
                {
                    findings.push(format!("{}:{}: `{module_name}` names {breach}", module.file, named.line));
                }
            }
        }
        findings
    }

    /// Why `module` of this folder must not name `path`.
    fn breach(&self, module: &str, path: &[String]) -> Option<String> {
        self.krate.trace(path).iter().find_map(|step| {
            let inside = step.strip_prefix(self.path)?;
            let name = inside.first().filter(|name| *name != module)?;
            if self.own.children.contains(name) {
                let upward = self.ranks.get(name) >= self.ranks.get(module) && !self.ranks.is_empty();
                return upward.then(|| format!("`{name}`, not below it"));
            }
            let file = &self.own.file;
            match self.is_above_children {
                true if name == "*" => Some(format!("all that {file} holds, which is above it")),
                true if self.own.items.contains(name) => Some(format!("`{name}` of {file}, which is above it")),
                true if self.krate.is_private_import(self.own, inside) => {
                    Some(format!("`{name}`, a private import of {file}"))
                }
                true => None,
                false => (name == "*" && !self.ranks.is_empty()).then(|| format!("all modules of {file}")),
            }
        })
    }
}

/// Reads the list in a header.
fn ranks(header: &[String]) -> BTreeMap<String, usize> {
    let list = header.iter().map(|line| line.trim()).skip_while(|line| *line != "# Layers").skip(1);
    let mut ranks = BTreeMap::new();
    for line in list.take_while(|line| !line.starts_with('#')) {
        let Some((number, rest)) = line.split_once(". ") else { continue };
        let Ok(rank) = number.parse::<usize>() else { continue };
        let names = rest.split_once(':').map_or(rest, |(names, _)| names);
        ranks.extend(names.split('`').skip(1).step_by(2).map(|name| (name.to_string(), rank)));
    }
    ranks
}

fn folder_of(file: &str) -> String {
    file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"))
}

/// Folders that list no layers, and folders whose own file is beside them.
fn misplaced(krate: &Crate) -> Vec<Finding> {
    let mut files: BTreeMap<String, usize> = BTreeMap::new();
    for module in krate.modules.values() {
        *files.entry(folder_of(&module.file)).or_default() += 1;
        // A folder counts as a file of the folder above.
        if let Some(folder) = module.file.strip_suffix("/mod.rs") {
            *files.entry(folder_of(folder)).or_default() += 1;
        }
    }
    let folders = krate.modules.iter().filter_map(|(path, own)| Folder::read(krate, path, own));
    let listed: BTreeSet<String> =
        folders.filter(|folder| !folder.ranks.is_empty()).map(|folder| folder.name()).collect();
    let beside = krate.modules.values().filter_map(|module| {
        let folder = format!("{}/", module.file.strip_suffix(".rs")?);
        let text = format!("{}: is beside its folder; move it to {folder}mod.rs", module.file);
        files.contains_key(&folder).then_some((folder, text))
    });
    let unlisted = files.iter().filter(|(folder, count)| **count >= LAYERED_FILES && !listed.contains(*folder));
    let unlisted = unlisted.map(|(folder, _)| (folder.clone(), format!("{folder}: lists no `# Layers`")));
    unlisted.chain(beside).collect()
}

/// Every finding in a crate.
fn findings(krate: &Crate) -> Vec<Finding> {
    let mut findings = misplaced(krate);
    for folder in krate.modules.iter().filter_map(|(path, own)| Folder::read(krate, path, own)) {
        let texts = folder.stale().into_iter().chain(folder.breaches());
        findings.extend(texts.map(|text| (folder.name(), text)));
    }
    findings
}

/// Findings beyond the ratchet, and lines of the ratchet that are too high.
fn check(findings: &[Finding], ratchet: &BTreeMap<String, usize>) -> Vec<String> {
    let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (folder, text) in findings {
        texts.entry(folder).or_default().push(text);
    }
    let mut failures = Vec::new();
    for (folder, texts) in &texts {
        let allowed = ratchet.get(*folder).copied().unwrap_or(0);
        if texts.len() > allowed {
            failures.extend(texts.iter().map(ToString::to_string));
        } else if texts.len() < allowed {
            failures.push(format!("{folder}: {} findings left; lower {allowed} in ratchet.txt", texts.len()));
        }
    }
    let clean = ratchet.keys().filter(|folder| !texts.contains_key(folder.as_str()));
    failures.extend(clean.map(|folder| format!("{folder}: is clean now; remove it from ratchet.txt")));
    failures
}

#[test]
fn modules_import_from_lower_layers() {
    let crates = Crate::all(&source::all());
    let ratchet = fs::read_to_string(source::root().join("tests/tidy/ratchet.txt")).unwrap();
    let mut ratchet = sizes::read_ratchet(&ratchet);
    ratchet.retain(|what, _| what.ends_with('/'));
    let found: Vec<Finding> = crates.iter().flat_map(findings).collect();
    crate::assert_clean(check(&found, &ratchet));
    for file in ["engine/src/log/mod.rs", "raftstore/src/lib.rs", "sql/src/lib.rs"] {
        let is_listed =
            |krate: &Crate| krate.modules.values().any(|own| own.file == file && !ranks(&own.header).is_empty());
        assert!(crates.iter().any(is_listed), "{file} lists no `# Layers`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with three layers. Its own file is not above its modules.
    const LOG: &str = "//! The log.\n//!\n//! # Layers\n//!\n//! 1. `format`, `error`: bytes\n//! 2. `index`: places\n\
                       //! 3. `purge`: space\n//!\n//! # More\n\nmod error;\nmod format;\nmod index;\nmod purge;\n\
                       #[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod fake;\n\
                       pub use error::LogError;\npub(crate) use purge::Budget;\npub struct Lsn(u64);\n";
    /// Code that puts it above them.
    const CODE: &str = "use purge::Purger;\nuse std::fmt;\npub fn open() -> Lsn { index::open() }\n\
                        pub(crate) fn helper() {}\n";

    /// The findings of a crate with a log folder: its `mod.rs`, and one other file of the crate.
    fn found(own: &str, file: &str, text: &str) -> Vec<String> {
        let mut files = vec![
            Source::fake(
                "engine/src/lib.rs",
                "pub mod log;\nmod other;\npub use log::{Budget as Alias, Lsn};\npub use other::*;",
            ),
            Source::fake("engine/src/other.rs", "pub use crate::log::Budget;\npub use crate::log::open;"),
            Source::fake("engine/src/log/mod.rs", own),
        ];
        for module in ["error", "format", "index", "purge"] {
            files.push(Source::fake(&format!("engine/src/log/{module}.rs"), "pub struct Budget;"));
        }
        files.retain(|source| source.path != file);
        files.push(Source::fake(file, text));
        let in_log = |(folder, text): Finding| (folder == "engine/src/log/").then_some(text);
        Crate::all(&files).iter().flat_map(findings).filter_map(in_log).collect()
    }

    #[test]
    fn upward_names_are_found() {
        let fine = "use super::group::Group;\nuse crate::log::{Lsn, LogError};\nuse super::super::format::Footer;\n\
                    // crate::log::purge\nconst A: &str = \"crate::log::purge\";\nmod group;";
        assert_eq!(found(LOG, "engine/src/log/index/mod.rs", fine), Vec::<String>::new());
        for text in [
            "use super::super::purge::Purger;",
            "use crate::log::purge::{self, Purger};",
            "use crate::log::{index::Index, purge::Purger};",
            "use crate::log::Budget;",
            "use crate::Alias;",
            "use crate::Budget;",
            "use crate::log::*;",
            "fn a() { crate::log::purge::run() }",
            "fn a() { vec![super::super::purge::run()]; }",
        ] {
            assert_eq!(found(LOG, "engine/src/log/index/runs.rs", text).len(), 1, "in\n{text}");
            let test = format!("#[cfg(test)]\nmod tests {{ {} }}", text.replace("super::super", "super::super::super"));
            for (file, text) in [
                ("engine/src/log/index/tests.rs", text),
                ("engine/src/log/fake.rs", text),
                ("engine/src/log/index/runs.rs", &test),
                ("engine/src/store/index.rs", text),
            ] {
                assert_eq!(found(LOG, file, text), Vec::<String>::new(), "{file} may:\n{text}");
            }
        }
        assert_eq!(found(LOG, "engine/src/log/format.rs", "use super::error::Damage;").len(), 1, "sideways");
    }

    #[test]
    fn circles_through_the_file_of_a_folder_are_found() {
        let above = format!("{LOG}{CODE}");
        for (text, why) in [
            ("use super::Lsn;", "defined there"),
            ("use super::{helper, Lsn};", "two names"),
            ("use crate::log::Lsn;", "by its full path"),
            ("use crate::Lsn;", "re-exported above"),
            ("use crate::open;", "re-exported elsewhere, by a glob"),
            ("use super::Purger;", "a private import"),
            ("use super::fmt;", "a private import of another crate"),
            ("use super::*;", "all"),
            ("fn a(lsn: super::Lsn) {}", "in code"),
        ] {
            let count = 1 + usize::from(text.contains(", "));
            assert_eq!(found(&above, "engine/src/log/purge.rs", text).len(), count, "{why}:\n{text}");
        }
        let glob = above.replace("use purge::Purger;", "use index::*;").replace("pub(crate) use purge::Budget;\n", "");
        assert_eq!(found(&glob, "engine/src/log/purge.rs", "use super::Budget;").len(), 1, "by a private glob");
        for text in ["use super::Lsn;", "use crate::log::Lsn;", "use crate::Lsn;", "fn a(lsn: super::Lsn) {}"] {
            assert_eq!(found(LOG, "engine/src/log/purge.rs", text), Vec::<String>::new(), "a bottom layer:\n{text}");
        }
        // Neither a re-export nor a test nor a variable puts the file above its modules.
        let beside = format!("{LOG}use std::fmt;\nfn a(purge: u8) -> u8 {{ purge }}\n#[cfg(test)]\nuse purge::Purger;");
        assert_eq!(found(&beside, "engine/src/log/purge.rs", "use super::{LogError, Lsn};"), Vec::<String>::new());
        // Without a list the rule holds all the same.
        let unlisted = "mod purge;\nuse purge::Purger;\npub struct Lsn;";
        let text = "use super::{Lsn, Purger};";
        assert_eq!(found(unlisted, "engine/src/log/purge.rs", text).len(), 1 + 2, "the missing list, and two names");
    }

    #[test]
    fn stale_and_missing_lists_are_found() {
        let other = ("engine/src/other.rs", "");
        assert_eq!(found(LOG, other.0, other.1), Vec::<String>::new());
        assert_eq!(found(&LOG.replace("mod index;", "mod other;"), other.0, other.1).len(), 2);
        let unlisted = "//! The log.\nmod error;\nmod format;\nmod index;\nmod purge;\n";
        assert_eq!(found(unlisted, other.0, other.1), ["engine/src/log/: lists no `# Layers`"]);
    }

    #[test]
    fn files_beside_their_folder_are_found() {
        let beside = |child: &str, text: &str| {
            let files = [
                Source::fake("kv/src/lib.rs", "mod read;"),
                Source::fake("kv/src/read.rs", text),
                Source::fake(&format!("kv/src/read/{child}.rs"), ""),
            ];
            Crate::all(&files).iter().flat_map(findings).collect::<Vec<_>>()
        };
        assert_eq!(beside("pool", "mod pool;").len(), 1);
        assert_eq!(beside("tests", "#[cfg(test)]\nmod tests;"), []);
        assert_eq!(beside("fake", "#[cfg(test)]\nmod fake;"), []);
    }

    #[test]
    fn the_ratchet_only_falls() {
        let finding = |text: &str| ("a/".to_string(), text.to_string());
        let allow = |count| BTreeMap::from([("a/".to_string(), count)]);
        let found = [finding("x"), finding("y")];
        assert_eq!(check(&found, &allow(2)), Vec::<String>::new());
        assert_eq!(check(&found, &BTreeMap::new()), ["x", "y"]);
        assert_eq!(check(&found, &allow(1)), ["x", "y"]);
        assert_eq!(check(&found, &allow(3)).len(), 1);
        assert_eq!(check(&[], &allow(1)).len(), 1);
    }
}
