//! The modules of a crate: what each declares, defines, imports and names, and where a name comes from.
//!
//! A path is followed through re-exports of any depth: `crate::Peer` leads to `crate::store::Peer` and on to
//! `crate::store::peer::Peer`. Modules for tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::paths::{self, Import, Named};
use crate::source::Source;

/// Most paths that one name leads through.
const MAX_STEPS: usize = 32;

/// The module that one file holds.
pub struct Module {
    /// Path of the file.
    pub file: String,
    /// The file's header, without `//!`.
    pub header: Vec<String>,
    /// The modules that it declares.
    pub children: BTreeSet<String>,
    /// The items that it defines.
    pub items: BTreeSet<String>,
    /// Its imports, from the root where they are of this crate.
    imports: Vec<Import>,
    /// The paths of this crate that its code names, each once. Code for tests is left out.
    pub names: Vec<Named>,
    /// Modules that it declares for tests.
    test_children: BTreeSet<String>,
}

impl Module {
    fn read(file: &Source) -> Module {
        let parsed = file.parse();
        let path = paths::module_of(&file.path);
        let mut module = Module {
            file: file.path.clone(),
            header: file.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::to_string).collect(),
            children: BTreeSet::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            names: Vec::new(),
            test_children: BTreeSet::new(),
        };
        for item in &parsed.items {
            match item {
                syn::Item::Mod(item) if paths::is_for_tests(&item.attrs) => {
                    module.test_children.insert(item.ident.to_string());
                }
                syn::Item::Mod(item) => {
                    module.children.insert(item.ident.to_string());
                }
                item => module.items.extend(defined_name(item)),
            }
        }
        let root = |written: &[String]| module.rooted(&path, written);
        let imports = paths::uses(&parsed.items).into_iter();
        let imports = imports.map(|mut import| {
            import.path = root(&import.path);
            import
        });
        let imports = imports.collect();
        let code = paths::of(file).into_iter().filter(|named| !named.is_test);
        let mut seen = BTreeSet::new();
        let names = code.map(|named| Named { path: root(&named.path), ..named }).filter(|named| {
            named.path.first().is_some_and(|first| first == "crate")
                && seen.insert((named.path.clone(), named.imported, named.reexported))
        });
        let names = names.collect();
        (module.imports, module.names) = (imports, names);
        module
    }

    /// A path from the root. `a::b` is of this crate if this module, whose path is `path`, declares `a`.
    fn rooted(&self, path: &[String], written: &[String]) -> Vec<String> {
        // A name alone in code is a variable or an item of this file.
        match written.first() {
            Some(first) if self.children.contains(first) => [path, written].concat(),
            _ => paths::absolute(path, written),
        }
    }

    /// Whether its own code uses its children: it names them outside of `mod` and `pub use`.
    pub fn is_above_children(&self, path: &[String]) -> bool {
        let into_child = |named: &Named| {
            let inside = named.path.strip_prefix(path).unwrap_or(&[]);
            // `a` alone may be a variable, `a::b` is not.
            inside.first().is_some_and(|name| self.children.contains(name)) && (named.imported || inside.len() > 1)
        };
        self.names.iter().any(|named| !named.reexported && into_child(named))
    }
}

/// The name of an item; `None` for `use`, `impl` and the like.
fn defined_name(item: &syn::Item) -> Option<String> {
    let ident = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The modules of a crate by path, the root first.
#[derive(Default)]
pub struct Crate {
    /// By path from the root: `crate`, then below.
    pub modules: BTreeMap<Vec<String>, Module>,
}

impl Crate {
    /// All crates of the workspace.
    pub fn all(files: &[Source]) -> Vec<Crate> {
        let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
        for file in files.iter().filter(|file| !file.is_test()) {
            let Some((root, _)) = file.path.split_once("src/") else { continue };
            if root.is_empty() || root.ends_with('/') {
                let modules = &mut crates.entry(root).or_default().modules;
                modules.insert(paths::module_of(&file.path), Module::read(file));
            }
        }
        let mut crates: Vec<Crate> = crates.into_values().collect();
        crates.iter_mut().for_each(Crate::drop_test_modules);
        crates
    }

    /// A crate may declare a file for tests that is not called `tests.rs`.
    fn drop_test_modules(&mut self) {
        let mut tests = Vec::new();
        for (path, module) in &self.modules {
            tests
                .extend(module.test_children.iter().map(|name| [path.as_slice(), std::slice::from_ref(name)].concat()));
        }
        self.modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    }

    /// The paths that a path leads through: itself first, then one for each re-export, the origin last. Several globs
    /// of one module may offer several branches.
    pub fn trace(&self, path: &[String]) -> Vec<Vec<String>> {
        let mut found = vec![path.to_vec()];
        let mut at = 0;
        while at < found.len() && found.len() < MAX_STEPS {
            for next in self.step(&found[at]) {
                if !found.contains(&next) {
                    found.push(next);
                }
            }
            at += 1;
        }
        found
    }

    /// The innermost module on a path, and the path inside it.
    fn split<'a>(&self, path: &'a [String]) -> Option<(&Module, &'a [String])> {
        let depth = (1..=path.len()).rev().find(|depth| self.modules.contains_key(&path[..*depth]))?;
        self.modules.get(&path[..depth]).map(|module| (module, &path[depth..]))
    }

    /// Where the imports of the innermost module on the path lead.
    fn step(&self, path: &[String]) -> Vec<Vec<String>> {
        let Some((module, inside)) = self.split(path) else { return Vec::new() };
        let Some(name) = inside.first().filter(|name| !module.items.contains(*name)) else { return Vec::new() };
        let named = module.imports.iter().filter(|import| import.name.as_ref() == Some(name));
        let named: Vec<Vec<String>> = named.map(|import| [import.path.as_slice(), &inside[1..]].concat()).collect();
        if !named.is_empty() {
            return named;
        }
        let globs = module.imports.iter().filter(|import| import.name.is_none());
        globs
            .map(|import| [import.path.as_slice(), inside].concat())
            .filter(|path| self.exists(path, MAX_STEPS))
            .collect()
    }

    /// Whether the first name of `inside` is in `module` by a private import alone: one by name, or a glob that
    /// provides it.
    pub fn is_private_import(&self, module: &Module, inside: &[String]) -> bool {
        let Some(name) = inside.first().filter(|name| !module.items.contains(*name)) else { return false };
        let provides = |import: &&Import| match &import.name {
            Some(imported) => imported == name,
            None => self.exists(&[import.path.as_slice(), inside].concat(), MAX_STEPS),
        };
        let mut imports = module.imports.iter().filter(provides).peekable();
        imports.peek().is_some() && imports.all(|import| !import.public)
    }

    /// Whether a path leads to a module or an item of this crate.
    fn exists(&self, path: &[String], depth: usize) -> bool {
        let Some((module, inside)) = self.split(path) else { return false };
        let Some(name) = inside.first() else { return true };
        let imported = |import: &Import| match &import.name {
            Some(imported) => imported == name,
            None => depth > 0 && self.exists(&[import.path.as_slice(), inside].concat(), depth - 1),
        };
        let declared = module.items.contains(name) || module.children.contains(name);
        declared || module.imports.iter().any(imported)
    }
}

#[test]
fn names_are_traced_through_reexports() {
    let files = [
        Source::fake(
            "kv/src/lib.rs",
            "mod a;\nmod tools;\n#[cfg(test)]\nmod fake;\npub use a::Thing as Renamed;\npub use a::*;",
        ),
        Source::fake("kv/src/a/mod.rs", "mod b;\nmod c;\nuse b::Own;\npub(crate) use self::b::*;\npub struct Mine;"),
        Source::fake("kv/src/a/b.rs", "pub use super::c::Thing;\npub use std::fmt::*;\npub struct Own;"),
        Source::fake("kv/src/a/c.rs", "use crate::tools::*;\nuse std::fmt;\npub enum Thing { A }"),
        Source::fake("kv/src/tools.rs", "pub struct Tool;"),
        Source::fake("kv/src/fake.rs", "pub struct Fake;"),
    ];
    let crates = Crate::all(&files);
    assert_eq!(crates.len(), 1);
    let krate = &crates[0];
    let trace = |path: &str| {
        let path: Vec<String> = path.split("::").map(str::to_string).collect();
        krate.trace(&path).iter().map(|path| path.join("::")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        trace("crate::Renamed::A"),
        "crate::Renamed::A crate::a::Thing::A crate::a::b::Thing::A crate::a::c::Thing::A"
    );
    assert_eq!(trace("crate::Thing"), "crate::Thing crate::a::Thing crate::a::b::Thing crate::a::c::Thing");
    assert_eq!(trace("crate::a::Own"), "crate::a::Own crate::a::b::Own");
    assert_eq!(trace("crate::Mine"), "crate::Mine crate::a::Mine");
    assert_eq!(trace("crate::Display"), "crate::Display", "not of this crate");
    assert_eq!(trace("crate::Fake"), "crate::Fake", "a test module is no module");
    let module = |path: &[&str]| &krate.modules[&path.iter().map(ToString::to_string).collect::<Vec<_>>()];
    let is_private = |path: &[&str], name: &str| krate.is_private_import(module(path), &[name.to_string()]);
    assert!(is_private(&["crate", "a", "c"], "Tool") && is_private(&["crate", "a", "c"], "fmt"));
    assert!(!is_private(&["crate", "a"], "Own"), "a public glob provides it, too");
    assert!(!is_private(&["crate"], "Renamed") && !is_private(&["crate"], "Thing"));
    assert_eq!(krate.modules.len(), 5);
}
