//! Small files, functions and lines.
//!
//! A file has at most 800 lines of code, a function 70, a line 120 columns. `ratchet.txt` lists files and functions
//! that were longer when the rule came, with their length. They may shrink (then lower the number, or remove the line),
//! never grow.

use std::collections::BTreeMap;
use std::fs;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::{self, Source};

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
const COLUMNS: usize = 120;
/// Files that people write, by ending or name.
const WRITTEN: [&str; 9] = [".rs", ".md", ".toml", ".sh", ".py", ".proto", "Makefile", ".ci/run", ".gitignore"];

/// Lines that hold code: not blank, not only a comment, not in an inline `mod tests`.
fn code_lines(file: &Source, parsed: &syn::File) -> usize {
    let tests = parsed.items.iter().filter_map(|item| match item {
        syn::Item::Mod(item) if item.ident == "tests" => item.content.as_ref(),
        _ => None,
    });
    let tests: Vec<_> =
        tests.map(|(braces, _)| braces.span.open().start().line..=braces.span.close().end().line).collect();
    let lines = file.text.lines().map(str::trim).zip(1..);
    let code = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with("//"));
    code.filter(|(_, number)| !tests.iter().any(|lines| lines.contains(number))).count()
}

struct Functions {
    path: Vec<String>,
    long: Vec<(String, usize)>,
}

impl Functions {
    fn measure(&mut self, name: &syn::Ident, block: &syn::Block) {
        let span = block.span();
        let lines = span.end().line.saturating_sub(span.start().line + 1);
        if lines > FUNCTION_LINES {
            self.long.push((format!("{}{}", self.path.concat(), name), lines));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }
    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default(),
            _ => String::new(),
        };
        self.path.push(format!("{name}::"));
        visit::visit_item_impl(self, item);
        self.path.pop();
    }
}

/// Everything over a limit in one file: what, and how many lines.
fn too_long(file: &Source) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let parsed = file.parse();
    let lines = code_lines(file, &parsed);
    if lines > FILE_LINES {
        found.push((file.path.clone(), lines));
    }
    let mut functions = Functions { path: Vec::new(), long: Vec::new() };
    functions.visit_file(&parsed);
    found.extend(functions.long.into_iter().map(|(name, lines)| (format!("{} {name}", file.path), lines)));
    found
}

/// Lines that are too wide. Tables, code and links of a document cannot be wrapped.
fn too_wide(file: &Source) -> Vec<String> {
    if !WRITTEN.iter().any(|ending| file.path.ends_with(ending)) {
        return Vec::new();
    }
    let is_document = file.path.ends_with(".md");
    let mut fenced = false;
    let mut findings = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let start = line.trim_start();
        fenced ^= is_document && start.starts_with("```");
        let exempt = is_document && (fenced || start.starts_with('|') || !line.contains(' '));
        let columns = line.chars().count();
        if columns > COLUMNS && !exempt {
            findings.push(format!("{}:{}: {columns} columns", file.path, at + 1));
        }
    }
    findings
}

/// Findings, given what is long now and what the ratchet allows.
fn check(long: &BTreeMap<String, usize>, ratchet: &BTreeMap<String, usize>) -> Vec<String> {
    let mut findings = Vec::new();
    for (what, lines) in long {
        match ratchet.get(what) {
            None => findings.push(format!("{what}: {lines} lines are too many; split it")),
            Some(allowed) if lines > allowed => findings.push(format!("{what}: grew from {allowed} to {lines} lines")),
            Some(allowed) if lines < allowed => {
                findings.push(format!("{what}: shrank to {lines}; lower {allowed} in ratchet.txt"))
            }
            Some(_) => {}
        }
    }
    let gone = ratchet.keys().filter(|what| !long.contains_key(*what));
    findings.extend(gone.map(|what| format!("{what}: is short now; remove it from ratchet.txt")));
    findings
}

/// The lines of `ratchet.txt`: a name and a number.
pub fn read_ratchet(text: &str) -> BTreeMap<String, usize> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').map(|(what, n)| (what.to_string(), n.parse().unwrap())).unwrap()).collect()
}

#[test]
fn files_and_functions_are_small() {
    let ratchet = fs::read_to_string(source::root().join("tests/tidy/ratchet.txt")).unwrap();
    let mut ratchet = read_ratchet(&ratchet);
    // Folders are in it for `order`.
    ratchet.retain(|what, _| !what.ends_with('/'));
    let long = source::all().iter().flat_map(too_long).collect();
    crate::assert_clean(check(&long, &ratchet));
}

#[test]
fn lines_are_short() {
    crate::assert_clean(source::texts().iter().flat_map(too_wide).collect());
}

#[test]
fn wide_lines_are_found() {
    let long = "é ".repeat(COLUMNS / 2);
    let count = |path: &str, text: &str| too_wide(&Source::fake(path, text)).len();
    for path in ["kv/src/a.rs", "docs/a.md", "Makefile", "tools/a.sh", "kv/proto/a.proto", ".ci/run"] {
        assert_eq!(count(path, &long), 0, "{path}: {COLUMNS} columns are fine");
        assert_eq!(count(path, &format!("a\n{long}b\n")), 1, "{path}");
    }
    assert_eq!(count("docs/a.md", &format!("| {long} |\n```\n{long}b\n```\nhttps://{}\n", "x".repeat(COLUMNS))), 0);
    assert_eq!(count("engine/tests/scripts/a", &format!("{long}b")), 0);
}

#[test]
fn breaches_are_found() {
    let long_body = "    let x = 1;\n".repeat(FUNCTION_LINES + 1);
    let file = Source::fake("a.rs", &format!("impl A {{\nfn long() {{\n{long_body}}}\n}}\nfn short() {{}}\n"));
    assert_eq!(too_long(&file), [("a.rs A::long".to_string(), FUNCTION_LINES + 1)]);
    let file = Source::fake("b.rs", &"const X: u8 = 1;\n".repeat(FILE_LINES + 1));
    assert_eq!(too_long(&file), [("b.rs".to_string(), FILE_LINES + 1)]);
    let file = Source::fake("t.rs", &format!("trait T {{\nfn long() {{\n{long_body}}}\n}}\n"));
    assert_eq!(too_long(&file), [("t.rs long".to_string(), FUNCTION_LINES + 1)]);
    let code = "const X: u8 = 1;\n";
    let tested = format!("// why\n\n{code}#[cfg(test)]\nmod tests {{\n{}}}\n", code.repeat(FILE_LINES));
    assert_eq!(too_long(&Source::fake("c.rs", &tested)), []);
    let after = format!("{tested}{}", code.repeat(FILE_LINES));
    assert_eq!(too_long(&Source::fake("d.rs", &after)).len(), 1, "code after the tests counts");

    let map = |n| BTreeMap::from([("a.rs f".to_string(), n)]);
    assert_eq!(check(&map(80), &map(80)), Vec::<String>::new());
    for (long, ratchet) in
        [(map(81), map(80)), (map(79), map(80)), (BTreeMap::new(), map(80)), (map(80), BTreeMap::new())]
    {
        assert_eq!(check(&long, &ratchet).len(), 1);
    }
}
