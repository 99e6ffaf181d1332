//! The paths that a file names, each resolved through the file's `use` lines to its origin.
//!
//! Rules about imports and forbidden functions look at these paths, not at lines of text: `use a::{b, c}`,
//! `use a as x`, `use super::super::a`, an imported name, a call inside a macro. Text in comments and string literals
//! is no path. Lookup follows Rust: the block, the enclosing blocks, then the module, and its parent only
//! through `use super::*`. `modules` follows a path further, through the re-exports of other files.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::source::Source;

/// Longest chain of imports within a file that is followed.
const MAX_IMPORTS: usize = 4;

/// A path that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// From the root, if the file shows it: `crate` or another crate first.
    pub path: Vec<String>,
    /// The line, from 1.
    pub line: usize,
    /// Whether a `use` line names it.
    pub imported: bool,
    /// Whether that line is a `pub use`, of any visibility.
    pub reexported: bool,
    /// Whether only tests are compiled with it: it is in an item under `#[cfg(test)]`.
    pub is_test: bool,
    /// The number of arguments of a call; `None` if it is not called. Inside a macro, 1 stands for one or more.
    pub arguments: Option<usize>,
    /// Whether it is one of several candidates, because a glob import may have brought the name in.
    pub guessed: bool,
}

impl Named {
    /// The path as text.
    pub fn text(&self) -> String {
        self.path.join("::")
    }
}

/// A name that a `use` line imports.
#[derive(Clone, Debug)]
pub struct Import {
    /// The origin, as written.
    pub path: Vec<String>,
    /// The name in this file; `None` for a glob.
    pub name: Option<String>,
    /// Whether it is a re-export: `pub use`, of any visibility.
    pub public: bool,
    line: usize,
}

/// All paths that a file names, in the order of the file.
pub fn of(file: &Source) -> Vec<Named> {
    let parsed = file.parse();
    let mut paths = Paths { module: module_of(&file.path), scopes: Vec::new(), found: Vec::new(), test_items: 0 };
    paths.scopes.push(Scope::new(true, paths.module.clone(), uses(&parsed.items)));
    paths.visit_file(&parsed);
    paths.found
}

/// The re-exports of a file: the name outside, and its origin as written. A glob has the name `*`.
pub fn reexports(file: &Source) -> BTreeMap<String, Vec<String>> {
    let public = uses(&file.parse().items).into_iter().filter(|import| import.public);
    public.map(|import| (import.name.unwrap_or_else(|| "*".to_string()), import.path)).collect()
}

/// The module that a file holds, from its path: `kv/src/client/mod.rs` is `crate::client`.
pub fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once("src/").map_or("", |(_, inside)| inside);
    let mut module = vec!["crate".to_string()];
    for part in inside.trim_end_matches(".rs").split('/') {
        if !["", "mod", "lib", "main"].contains(&part) {
            module.push(part.to_string());
        }
    }
    module
}

/// Names that `use` lines bring into a module or block.
struct Scope {
    is_module: bool,
    module: Vec<String>,
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

impl Scope {
    fn new(is_module: bool, module: Vec<String>, imports: Vec<Import>) -> Scope {
        let mut scope = Scope { is_module, module, names: BTreeMap::new(), globs: Vec::new() };
        for import in imports {
            match import.name {
                Some(name) => drop(scope.names.insert(name, import.path)),
                None => scope.globs.push(import.path),
            }
        }
        scope
    }
}

/// The imports of a module or block.
pub fn uses<'a>(items: impl IntoIterator<Item = &'a syn::Item>) -> Vec<Import> {
    let uses = items.into_iter().filter_map(|item| if let syn::Item::Use(item) = item { Some(item) } else { None });
    uses.flat_map(imports).collect()
}

fn imports(item: &syn::ItemUse) -> Vec<Import> {
    let public = !matches!(item.vis, syn::Visibility::Inherited);
    let mut found = Vec::new();
    flatten(&item.tree, public, &mut Vec::new(), &mut found);
    found
}

fn flatten(tree: &syn::UseTree, public: bool, prefix: &mut Vec<String>, found: &mut Vec<Import>) {
    let mut add = |ident: &syn::Ident, name: &syn::Ident| {
        let mut path = prefix.clone();
        // `a::{self}` imports `a`.
        if ident != "self" || path.is_empty() {
            path.push(ident.to_string());
        }
        let name = if name == "self" { path.last().cloned() } else { Some(name.to_string()) };
        found.push(Import { path, name, public, line: ident.span().start().line });
    };
    match tree {
        syn::UseTree::Name(tree) => add(&tree.ident, &tree.ident),
        syn::UseTree::Rename(tree) => add(&tree.ident, &tree.rename),
        syn::UseTree::Glob(tree) => {
            let line = tree.star_token.spans[0].start().line;
            found.push(Import { path: prefix.clone(), name: None, public, line });
        }
        syn::UseTree::Path(tree) => {
            prefix.push(tree.ident.to_string());
            flatten(&tree.tree, public, prefix, found);
            prefix.pop();
        }
        syn::UseTree::Group(tree) => tree.items.iter().for_each(|tree| flatten(tree, public, prefix, found)),
    }
}

/// Whether an item is compiled for tests only.
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.filter_map(|attribute| attribute.parse_args::<syn::Ident>().ok()).any(|word| word == "test")
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

struct Paths {
    /// The module being visited.
    module: Vec<String>,
    /// Innermost last.
    scopes: Vec<Scope>,
    found: Vec<Named>,
    /// Number of enclosing items that are for tests only.
    test_items: usize,
}

impl Paths {
    /// The possible origins of a path written within the first `scopes` scopes. A glob makes an origin a guess.
    fn resolve(&self, written: &[String], scopes: usize, depth: usize) -> Vec<(Vec<String>, bool)> {
        let (Some(first), Some(scope)) = (written.first(), scopes.checked_sub(1).map(|i| &self.scopes[i])) else {
            return vec![(written.to_vec(), false)];
        };
        if ["crate", "self", "super"].contains(&first.as_str()) {
            return vec![(absolute(&scope.module, written), false)];
        }
        if let Some(import) = scope.names.get(first) {
            let full: Vec<String> = import.iter().chain(&written[1..]).cloned().collect();
            // `use a::a` and `use a` would go round in a circle.
            let ends = depth == 0 || import.first() == Some(first);
            return if ends { vec![(full, false)] } else { self.resolve(&full, scopes, depth - 1) };
        }
        let parent = scope.globs.iter().any(|glob| glob.iter().eq(["super"]));
        let mut found = match scope.is_module && !parent {
            true => vec![(written.to_vec(), false)],
            false => self.resolve(written, scopes - 1, depth),
        };
        let through = |glob: &Vec<String>| (absolute(&scope.module, &[glob, written].concat()), true);
        found.extend(scope.globs.iter().map(through));
        found
    }

    /// Adds a path outside of `use` lines.
    fn name(&mut self, written: &[String], line: usize, arguments: Option<usize>) {
        self.add(written, Named { arguments, ..self.blank(line) });
    }

    /// Adds a path of a `use` line.
    fn import(&mut self, written: &[String], line: usize, reexported: bool) {
        self.add(written, Named { imported: true, reexported, ..self.blank(line) });
    }

    fn blank(&self, line: usize) -> Named {
        let is_test = self.test_items > 0;
        Named { path: Vec::new(), line, imported: false, reexported: false, is_test, arguments: None, guessed: false }
    }

    fn add(&mut self, written: &[String], named: Named) {
        for (path, guessed) in self.resolve(written, self.scopes.len(), MAX_IMPORTS) {
            self.found.push(Named { path, guessed, ..named.clone() });
        }
    }

    fn name_path(&mut self, path: &syn::Path, arguments: Option<usize>) {
        let written: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.name(&written, line, arguments);
    }

    /// Paths among tokens that only a macro understands.
    fn name_tokens(&mut self, tokens: TokenStream) {
        let mut rest = tokens.into_iter().peekable();
        while let Some(token) = rest.next() {
            match token {
                TokenTree::Group(group) => self.name_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let line = first.span().start().line;
                    let mut written = vec![first.to_string()];
                    while let Some(next) = next_segment(&mut rest) {
                        written.push(next);
                    }
                    let arguments = match rest.peek() {
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                            Some(usize::from(!group.stream().is_empty()))
                        }
                        _ => None,
                    };
                    self.name(&written, line, arguments);
                }
                _ => {}
            }
        }
    }
}

/// The segment after `::` if there is one; generic arguments in between are passed over.
fn next_segment(rest: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>) -> Option<String> {
    let is =
        |token: Option<&TokenTree>, c: char| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == c);
    if !is(rest.peek(), ':') {
        return None;
    }
    let mut ahead = rest.clone();
    ahead.next();
    if !is(ahead.peek(), ':') {
        return None;
    }
    ahead.next();
    if is(ahead.peek(), '<') {
        let mut open = 0;
        for token in ahead.by_ref() {
            open += i32::from(is(Some(&token), '<')) - i32::from(is(Some(&token), '>'));
            if open == 0 {
                break;
            }
        }
        *rest = ahead;
        return next_segment(rest);
    }
    let Some(TokenTree::Ident(ident)) = ahead.next() else {
        return None;
    };
    *rest = ahead;
    Some(ident.to_string())
}

/// Resolves `crate`, `self` and `super`.
pub fn absolute(module: &[String], written: &[String]) -> Vec<String> {
    let Some(first) = written.first().filter(|first| ["crate", "self", "super"].contains(&first.as_str())) else {
        return written.to_vec();
    };
    let mut base = if first == "crate" { vec!["crate".to_string()] } else { module.to_vec() };
    let ups = written.iter().take_while(|segment| *segment == "super" || *segment == "self");
    base.truncate((base.len() - ups.filter(|segment| *segment == "super").count().min(base.len() - 1)).max(1));
    let rest = written.iter().skip_while(|segment| ["crate", "self", "super"].contains(&segment.as_str()));
    base.into_iter().chain(rest.cloned()).collect()
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let is_test = usize::from(is_for_tests(attributes(item)));
        self.test_items += is_test;
        visit::visit_item(self, item);
        self.test_items -= is_test;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let is_test = usize::from(is_for_tests(&item.attrs));
        self.test_items += is_test;
        visit::visit_impl_item_fn(self, item);
        self.test_items -= is_test;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for import in imports(item) {
            let mut written = import.path;
            if import.name.is_none() {
                written.push("*".to_string());
            }
            self.import(&written, import.line, import.public);
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.import(&[item.ident.to_string()], item.ident.span().start().line, false);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some((_, items)) = &item.content else { return };
        self.module.push(item.ident.to_string());
        self.scopes.push(Scope::new(true, self.module.clone(), uses(items)));
        visit::visit_item_mod(self, item);
        self.scopes.pop();
        self.module.pop();
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let items =
            block.stmts.iter().filter_map(|stmt| if let syn::Stmt::Item(item) = stmt { Some(item) } else { None });
        self.scopes.push(Scope::new(false, self.module.clone(), uses(items)));
        visit::visit_block(self, block);
        self.scopes.pop();
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        match &*call.func {
            syn::Expr::Path(func) => {
                self.name_path(&func.path, Some(call.args.len()));
                // What the path holds inside: generic arguments, and the type before an associated function.
                func.qself.iter().for_each(|qself| self.visit_qself(qself));
                func.path.segments.iter().for_each(|segment| self.visit_path_arguments(&segment.arguments));
            }
            func => self.visit_expr(func),
        }
        call.args.iter().for_each(|arg| self.visit_expr(arg));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.name_path(path, None);
        visit::visit_path(self, path);
    }

    fn visit_meta_list(&mut self, item: &'ast syn::MetaList) {
        visit::visit_meta_list(self, item);
        self.name_tokens(item.tokens.clone());
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        visit::visit_macro(self, item);
        self.name_tokens(item.tokens.clone());
    }
}

#[test]
fn names_are_resolved() {
    let text = r#"
        use std::sync::{self, mpsc::{Receiver, channel as pipe}};
        use tokio::sync::mpsc;
        use super::super::scheduler as plan;
        fn a() {
            use crossbeam_channel::bounded;
            bounded(1);
            tokio::select! { _ = mpsc::channel::<Vec<u8>>(4) => plan::go() }
        }
        fn b() -> Receiver<u8> { bounded(2); pipe(); sync::mpsc::channel::<u8>() }
        mod tests { use super::*; fn c() { mpsc::oops(); } }
        mod apart { fn d() { mpsc::lost(); "mpsc::text()"; } }
    "#;
    let found = of(&Source::fake("kv/src/client/scan.rs", text));
    let named = |line: usize| {
        let on_line = found.iter().filter(|named| named.line == line).map(Named::text);
        on_line.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(named(2), "std::sync std::sync::mpsc::Receiver std::sync::mpsc::channel");
    assert_eq!(named(4), "crate::scheduler", "the file is in crate::client::scan");
    assert_eq!(named(7), "crossbeam_channel::bounded");
    assert_eq!(named(8), "tokio::select _ tokio::sync::mpsc::channel crate::scheduler::go");
    assert_eq!(named(10), "std::sync::mpsc::Receiver u8 bounded std::sync::mpsc::channel std::sync::mpsc::channel u8");
    assert!(named(11).starts_with("crate::client::scan::* tokio::sync::mpsc::oops"), "{}", named(11));
    assert_eq!(named(12), "mpsc::lost");
    let call = |name: &str| found.iter().find(|named| named.path.last().unwrap() == name).unwrap().arguments;
    assert_eq!((call("bounded"), call("go"), call("lost")), (None, Some(0), Some(0)));
    assert!(found.iter().any(|named| named.path.last().unwrap() == "channel" && named.arguments == Some(1)));
}

#[test]
fn imports_and_test_items_are_marked() {
    let text = "use a::One;\npub(super) use b::Two;\n#[cfg(test)]\nuse c::Three;\n#[cfg(test)]\n\
                mod tests {\n    use d::Four;\n    fn a() { e::five(); }\n}\nimpl A {\n    #[cfg(test)]\n\
                    fn a() { f::six(); }\n    fn b() { g::seven(); }\n}";
    let found = of(&Source::fake("kv/src/scan.rs", text));
    let marks = |path: &str| {
        let named = found.iter().find(|named| named.text() == path).unwrap();
        (named.imported, named.reexported, named.is_test)
    };
    assert_eq!(marks("a::One"), (true, false, false));
    assert_eq!(marks("b::Two"), (true, true, false));
    assert_eq!(marks("c::Three"), (true, false, true));
    assert_eq!(marks("d::Four"), (true, false, true));
    assert_eq!(marks("e::five"), (false, false, true));
    assert_eq!(marks("f::six"), (false, false, true));
    assert_eq!(marks("g::seven"), (false, false, false));
}

#[test]
fn files_are_modules() {
    assert_eq!(module_of("kv/src/lib.rs"), ["crate"]);
    assert_eq!(module_of("kv/src/client/mod.rs"), ["crate", "client"]);
    assert_eq!(module_of("src/node/join.rs"), ["crate", "node", "join"]);
    let text = "pub use key::{Key, Range as KeyRange};\nuse a::Private;\npub use scheduler::*;";
    let file = Source::fake("kv/src/lib.rs", text);
    let found: Vec<String> =
        reexports(&file).into_iter().map(|(name, path)| format!("{name}={}", path.join("::"))).collect();
    assert_eq!(found, ["*=scheduler", "Key=key::Key", "KeyRange=key::Range"]);
}
