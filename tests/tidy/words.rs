//! Nothing left undone, no dead code in comments, no test switched off, a header in every file.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use crate::source::{self, Source};

/// Marks of work left undone, in any text. Spelt apart so that this file does not find itself.
const MARKS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

/// Macros that stand for code that is missing.
const GAPS: [&str; 2] = ["todo", "unimplemented"];

/// Findings in any text file.
fn left_undone(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        if let Some(mark) = words.find(|word| MARKS.contains(word)) {
            found.push(format!("{}:{}: {mark} left behind", file.path, number + 1));
        }
    }
    found
}

/// Findings in a Rust file.
fn findings(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    if !file.text.starts_with("//!") {
        found.push(format!("{}:1: the file does not open with what it is for (`//!`)", file.path));
    }
    let mut gaps = Gaps(Vec::new());
    gaps.visit_file(&file.parse());
    found.extend(gaps.0.into_iter().map(|(line, what)| format!("{}:{line}: {what}", file.path)));
    found.extend(commented_out(&file.text).into_iter().map(|line| format!("{}:{line}: commented-out code", file.path)));
    found
}

/// Code that is missing, and tests that do not run: the line, and what it is.
struct Gaps(Vec<(usize, String)>);

impl Gaps {
    fn macro_name(&mut self, name: &proc_macro2::Ident) {
        if GAPS.iter().any(|gap| name == gap) {
            self.0.push((name.span().start().line, format!("{name}!")));
        }
    }

    /// Macros inside of macros.
    fn look_at(&mut self, tokens: TokenStream) {
        let mut rest = tokens.into_iter().peekable();
        while let Some(token) = rest.next() {
            match (token, rest.peek()) {
                (TokenTree::Group(group), _) => self.look_at(group.stream()),
                (TokenTree::Ident(name), Some(TokenTree::Punct(punct))) if punct.as_char() == '!' => {
                    self.macro_name(&name)
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Gaps {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let name = attribute.path().get_ident().map(ToString::to_string).unwrap_or_default();
        let conditional = match &attribute.meta {
            // What follows the condition is an attribute of its own.
            syn::Meta::List(list) if name == "cfg_attr" => list
                .tokens
                .clone()
                .into_iter()
                .any(|token| matches!(token, TokenTree::Ident(ident) if ident == "ignore")),
            _ => false,
        };
        if name == "ignore" || conditional {
            self.0.push((attribute.pound_token.spans[0].start().line, "a test is switched off".to_string()));
        }
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        if let Some(last) = item.path.segments.last() {
            self.macro_name(&last.ident);
        }
        self.look_at(item.tokens.clone());
    }
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
    let files = source::texts();
    for kind in [
        "kv/src/lib.rs",
        "kv/proto/kv.proto",
        "tools/test.sh",
        "tests/drivers/pipelines.py",
        "Makefile",
        "Cargo.toml",
        "README.md",
        ".ci/run",
        ".cargo/config.toml",
    ] {
        assert!(files.iter().any(|file| file.path == kind), "the rule must see {kind}");
    }
    crate::assert_clean(files.iter().flat_map(left_undone).collect());
}

#[test]
fn files_open_with_their_purpose_and_hold_live_code() {
    crate::assert_clean(source::all().iter().flat_map(findings).collect());
}

#[test]
fn marks_are_found() {
    let [to_do, fix_me, xxx, hack] = MARKS;
    let count = |path: &str, text: &str| left_undone(&Source::fake(path, text)).len();
    for (path, text) in [
        ("kv/src/a.rs", format!("//! x\nfn a() {{}} // {to_do}: handle splits\n")),
        ("kv/src/a.rs", format!("//! x\n/// {fix_me}(anna) wrong\nfn a() {{}}\n")),
        ("proto/a.proto", format!("message A {{\n  // {to_do} reserve 3\n}}\n")),
        ("tools/a.sh", format!("set -e\n# {fix_me}: quoting\n")),
        ("tests/a.py", format!("def a():\n    pass  # {xxx}\n")),
        ("Makefile", format!("all:\n\t@true # {hack}\n")),
        ("Cargo.toml", format!("[dependencies]\n# {to_do}: pin\n")),
        ("docs/a.md", format!("# Title\n\n- [ ] {to_do}: write this\n")),
    ] {
        assert_eq!(count(path, &text), 1, "in {path}:\n{text}");
    }
    let innocent = format!("mktemp /tmp/{xxx}{xxx}\ntodo = \"warn\"\nlet mut todo = 1;\nA{hack}A\n{to_do}_LIST\n");
    assert_eq!(count("a.md", &innocent), 0);
}

#[test]
fn breaches_are_found() {
    let count = |text: &str| findings(&Source::fake("a.rs", text)).len();
    assert_eq!(count("//! Fine.\n// Why: the lease; it ends.\nfn a() { b(\"todo!()\") }\n"), 0);
    assert_eq!(count("fn a() {}\n"), 1, "no header");
    assert_eq!(count("//! x\n    // let a = 1;\n    // b(a);\nfn c() {}\n"), 1, "commented-out code");
    for text in [
        "fn a() -> u8 {\n    todo!()\n}",
        "fn a() -> u8 {\n    std::unimplemented!(\"later\")\n}",
        "fn a() {\n    assert_eq!(1, vec![todo!()]);\n}",
        "#[test]\n#[ignore]\nfn a() {}",
        "#[test]\n#[ignore = \"flaky\"]\nfn a() {}",
        "#[cfg_attr(not(feature = \"slow\"), ignore)]\n#[test]\nfn a() {}",
        "mod tests {\n    #[test]\n    #[cfg_attr(windows, ignore = \"slow\")]\n    fn a() {}\n}",
    ] {
        assert_eq!(count(&format!("//! x\n{text}\n")), 1, "in\n{text}");
    }
}
