//! Modules import from lower layers only.
//!
//! A `lib.rs` or `mod.rs` may list the layers of its folder in its header, lowest first:
//!
//! ```text
//! //! # Layers
//! //!
//! //! 1. `format`, `error`: the bytes of the log
//! //! 2. `index`: the in-memory index
//! ```
//!
//! A module may name modules of lower layers and of its own. Modules of one layer do not name each other.
//! Every module that the file declares is in the list; test modules are exempt.

use std::collections::BTreeMap;

use crate::paths;
use crate::source::{self, Source};

/// The layers of one folder.
struct Layers {
    /// The folder, with a slash at the end.
    folder: String,
    /// The module of the folder: `crate` or below.
    module: Vec<String>,
    /// The layer of each module.
    ranks: BTreeMap<String, usize>,
    /// Modules that the file declares, without test modules.
    declared: Vec<String>,
    /// Names that the file re-exports, with their origin.
    reexports: BTreeMap<String, Vec<String>>,
}

impl Layers {
    /// Reads the list of a `lib.rs` or `mod.rs`; `None` where it has none.
    fn read(file: &Source) -> Option<Layers> {
        let folder = file.path.strip_suffix("lib.rs").or_else(|| file.path.strip_suffix("mod.rs"))?;
        let header = file.text.lines().map_while(|line| line.strip_prefix("//!"));
        let list = header.skip_while(|line| line.trim() != "# Layers").skip(1);
        let mut ranks = BTreeMap::new();
        for line in list.take_while(|line| !line.trim_start().starts_with('#')) {
            let Some((number, rest)) = line.trim_start().split_once(". ") else { continue };
            let Ok(rank) = number.parse::<usize>() else { continue };
            let names = rest.split_once(':').map_or(rest, |(names, _)| names);
            ranks.extend(names.split('`').skip(1).step_by(2).map(|name| (name.to_string(), rank)));
        }
        if ranks.is_empty() {
            return None;
        }
        let parsed = file.parse();
        let is_test = |item: &syn::ItemMod| {
            let attributes = item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
            attributes.filter_map(|attribute| attribute.parse_args::<syn::Ident>().ok()).any(|word| word == "test")
        };
        let declared = parsed.items.iter().filter_map(|item| match item {
            syn::Item::Mod(item) if !is_test(item) => Some(item.ident.to_string()),
            _ => None,
        });
        Some(Layers {
            folder: folder.to_string(),
            module: paths::module_of(&file.path),
            ranks,
            declared: declared.collect(),
            reexports: paths::reexports(file),
        })
    }

    /// Modules that the list lacks, and names in it that are no modules.
    fn stale(&self) -> Vec<String> {
        let missing = self.declared.iter().filter(|module| !self.ranks.contains_key(*module));
        let gone = self.ranks.keys().filter(|name| !self.declared.contains(name));
        let missing = missing.map(|module| format!("{}: `# Layers` lacks `{module}`", self.folder));
        missing.chain(gone.map(|name| format!("{}: `# Layers` names `{name}`, no module", self.folder))).collect()
    }

    /// The module of this folder that a path leads into; `*` for all of them.
    fn target<'a>(&'a self, path: &'a [String]) -> Option<&'a str> {
        let rest = path.strip_prefix(self.module.as_slice())?;
        let name = rest.first()?;
        if self.ranks.contains_key(name) || name == "*" {
            return Some(name);
        }
        let origin = self.reexports.get(name)?;
        let origin = origin.strip_prefix(self.module.as_slice()).unwrap_or(origin);
        origin.iter().map(String::as_str).find(|part| *part != "self")
    }

    /// Upward and sideways names in a file of this folder.
    fn findings(&self, file: &Source) -> Vec<String> {
        let Some(inside) = file.path.strip_prefix(&self.folder) else { return Vec::new() };
        let own = inside.split(['/', '.']).next().unwrap_or("");
        let Some(rank) = self.ranks.get(own).filter(|_| !file.is_test()) else { return Vec::new() };
        let mut findings = Vec::new();
        for named in paths::of(file) {
            let Some(target) = self.target(&named.path).filter(|target| *target != own) else { continue };
            if self.ranks.get(target).is_none_or(|there| there >= rank) {
                findings.push(format!("{}:{}: `{own}` names `{target}`, not below it", file.path, named.line));
            }
        }
        findings.dedup();
        findings
    }
}

#[test]
fn modules_import_from_lower_layers() {
    let files = source::all();
    let lists: Vec<Layers> = files.iter().filter_map(Layers::read).collect();
    let mut findings = Vec::new();
    for layers in &lists {
        findings.extend(layers.stale());
        findings.extend(files.iter().flat_map(|file| layers.findings(file)));
    }
    crate::assert_clean(findings);
    for folder in ["engine/src/log/", "raftstore/src/", "sql/src/"] {
        assert!(lists.iter().any(|layers| layers.folder == folder), "{folder} lists no `# Layers`");
    }
}

#[test]
fn breaches_are_found() {
    let text = "//! The log.\n//!\n//! # Layers\n//!\n//! 1. `format`, `error`: bytes\n//! 2. `index`: places\n\
                //! 3. `purge`: space\n//!\n//! # More\n\nmod error;\nmod format;\nmod index;\nmod purge;\n\
                #[cfg(test)]\nmod tests;\npub use error::LogError;\npub use purge::Budget;\npub struct Lsn(u64);\n";
    let layers = |text: &str| Layers::read(&Source::fake("engine/src/log/mod.rs", text)).unwrap();
    let log = layers(text);
    assert_eq!(log.ranks.len(), 4);
    assert_eq!(log.stale(), Vec::<String>::new());
    assert_eq!(layers(&text.replace("mod index;", "mod other;")).stale().len(), 2);
    assert!(Layers::read(&Source::fake("engine/src/log/mod.rs", "//! The log.\nmod a;\n")).is_none());

    let breach = |path: &str, text: &str| log.findings(&Source::fake(path, text)).len();
    for text in [
        "use super::super::purge::Purger;",
        "use crate::log::purge::{self, Purger};",
        "use crate::log::{index::Index, purge::Purger};",
        "use crate::log::Budget;",
        "use crate::log::*;",
        "fn a() { crate::log::purge::run() }",
        "fn a() { vec![super::super::purge::run()]; }",
    ] {
        assert!(breach("engine/src/log/index/runs.rs", text) >= 1, "in\n{text}");
        assert_eq!(breach("engine/src/log/index/tests.rs", text), 0, "tests may:\n{text}");
        assert_eq!(breach("engine/src/log/mod.rs", text), 0, "the folder's own file may:\n{text}");
        assert_eq!(breach("engine/src/store/mod.rs", text), 0, "another folder:\n{text}");
    }
    assert_eq!(breach("engine/src/log/format.rs", "use super::error::Damage;"), 1, "sideways");
    let fine = "use super::group::Group;\nuse crate::log::{Lsn, LogError};\nuse super::super::format::Footer;\n\
                // crate::log::purge\nconst A: &str = \"crate::log::purge\";";
    assert_eq!(breach("engine/src/log/index/mod.rs", fine), 0);
}
