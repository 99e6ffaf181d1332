//! Documents and comments name files and headings that exist.
//!
//! Checked are the links of Markdown files, with their anchors, and every path of a file, in backquotes or with a
//! folder: in Markdown, and in the comments of Rust files, scripts and manifests. `rustdoc` checks the links between
//! Rust items.

use std::collections::BTreeSet;

use crate::source::{self, Source};

/// Endings by which a word in backquotes is known as a file of ours.
const ENDINGS: [&str; 6] = [".rs", ".md", ".sh", ".proto", ".toml", ".py"];
/// Hidden folders of ours.
const DOTTED: [&str; 2] = [".ci/", ".cargo/"];
/// Names of files that stand for one of many.
const ANY: [&str; 4] = ["mod.rs", "lib.rs", "main.rs", "Cargo.toml"];

/// The paths that exist: files, and the folders above them.
struct Tree {
    paths: BTreeSet<String>,
}

impl Tree {
    fn of<'a>(files: impl IntoIterator<Item = &'a str>) -> Tree {
        let mut paths = BTreeSet::new();
        for file in files {
            let ends = file.match_indices('/').map(|(at, _)| at).chain([file.len()]);
            paths.extend(ends.map(|at| file[..at].to_string()));
        }
        Tree { paths }
    }

    fn has(&self, path: &str) -> bool {
        self.paths.contains(path.trim_end_matches('/'))
    }

    /// Whether `name`, as written in `file`, is a path from the root, or the end of a path of the same crate.
    fn resolves(&self, file: &str, name: &str) -> bool {
        let name = name.trim_start_matches("./").trim_end_matches('/');
        let tail = format!("/{name}");
        let krate = file.split('/').next().filter(|_| file.contains('/')).unwrap_or("");
        let in_crate = |path: &&String| krate == "docs" || krate.is_empty() || path.starts_with(krate);
        self.has(name) || self.paths.iter().filter(in_crate).any(|path| path.ends_with(&tail))
    }
}

/// Resolves `link`, which stands in `file`, against the folder of that file.
fn join(file: &str, link: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a Markdown file, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')));
    headings
        .map(|heading| {
            let kept = heading.trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The lines of a Markdown text outside of code fences, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((at + 1, line))
    })
}

/// The targets of `[text](target)` in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, open)| line[at + open.len()..].split_once(')').map(|(link, _)| link))
}

/// Words that are paths of ours: in backquotes, or with a folder. `rest` is a line without what is not text.
fn named_paths(rest: &str) -> impl Iterator<Item = &str> {
    let parts = rest.split('`').enumerate();
    let words = parts.flat_map(|(at, part)| {
        let is_quoted = at % 2 == 1;
        let words = part.split(move |c: char| !is_quoted && (c.is_whitespace() || "()[],;:\"'".contains(c)));
        let words = words.map(move |word| if is_quoted { word } else { word.trim_end_matches('.') });
        words.filter(move |word| is_quoted || word.contains('/'))
    });
    let is_path = |word: &&str| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || ['_', '-', '.', '/'].contains(&c));
        let is_file = ENDINGS.iter().any(|ending| word.ends_with(ending) && word != ending);
        let is_dotted = DOTTED.iter().any(|folder| word.starts_with(folder));
        plain && (is_file && !word.starts_with(['/', '.']) || is_dotted)
    };
    words.filter(is_path).filter(|word| !ANY.contains(word))
}

/// A line of Markdown without the targets of its links and without addresses.
fn without_links(line: &str) -> String {
    let mut parts = line.split("](");
    let mut rest = parts.next().unwrap_or_default().to_string();
    for part in parts {
        rest.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    rest.split(' ').filter(|word| !word.contains("://")).collect::<Vec<_>>().join(" ")
}

/// Findings in a Markdown file.
fn in_markdown(file: &Source, tree: &Tree, files: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in prose(&file.text) {
        let mut find = |what: String| findings.push(format!("{}:{number}: {what}", file.path));
        for link in links(line).filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.path.clone() } else { join(&file.path, path) };
            let text = files.iter().find(|file| file.path == target).map(|file| file.text.as_str());
            if !tree.has(&target) {
                find(format!("`{link}` leads nowhere"));
            } else if !anchor.is_empty() && !text.is_some_and(|text| anchors(text).contains(anchor)) {
                find(format!("`{link}`: no such heading"));
            }
        }
        named_paths(&without_links(line))
            .filter(|path| !tree.resolves(&file.path, path))
            .for_each(|path| find(format!("no file `{path}`")));
    }
    findings
}

/// How a comment starts in this file, if it has comments that are checked.
fn comment_mark(file: &Source) -> Option<&'static str> {
    let hashed = [".sh", ".toml", ".ci/run", "Makefile"].iter().any(|ending| file.path.ends_with(ending));
    if file.is_rust() { Some("//") } else { hashed.then_some("#") }
}

/// Findings in the comments of a Rust file, a script or a manifest.
fn in_comments(file: &Source, tree: &Tree) -> Vec<String> {
    let Some(mark) = comment_mark(file) else { return Vec::new() };
    let comments = file.text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with(mark));
    let mut findings = Vec::new();
    for (at, line) in comments {
        let line = without_links(line);
        let gone = named_paths(&line).filter(|path| !tree.resolves(&file.path, path));
        findings.extend(gone.map(|path| format!("{}:{}: no file `{path}`", file.path, at + 1)));
    }
    findings
}

#[test]
fn references_resolve() {
    let files = source::texts();
    let tree = Tree::of(files.iter().map(|file| file.path.as_str()));
    let markdown = files.iter().filter(|file| file.path.ends_with(".md"));
    let mut findings: Vec<String> = markdown.flat_map(|file| in_markdown(file, &tree, &files)).collect();
    // The rules' own files show what they look for.
    let others = files.iter().filter(|file| !file.path.starts_with("tests/tidy/"));
    findings.extend(others.flat_map(|file| in_comments(file, &tree)));
    crate::assert_clean(findings);
}

#[test]
fn breaches_are_found() {
    let files = [
        Source::fake("README.md", "# Cortado\n\n## A first session, in psql\n\n```\n# not a heading\n```\n"),
        Source::fake("docs/formats.md", "# Formats\n"),
        Source::fake("engine/src/log/purge/mod.rs", ""),
        Source::fake("kv/src/scan.rs", ""),
    ];
    let tree = Tree::of(files.iter().map(|file| file.path.as_str()));
    let markdown = |path: &str, text: &str| in_markdown(&Source::fake(path, text), &tree, &files).len();
    for text in [
        "[a](docs/none.md)",
        "[a](docs/formats.md#nothing)",
        "[a](#nothing)",
        "[a](README.md#not-a-heading)",
        "see `docs/none.md`",
        "see `engine/src/log/none.rs`",
        "see `none.rs`",
        "see `.ci/none`",
        "see docs/none.md.",
    ] {
        assert_eq!(markdown("ARCHITECTURE.md", text), 1, "in\n{text}");
    }
    let fine = "[a](docs/formats.md#formats) [b](README.md#a-first-session-in-psql) [c](https://x.org/none.md)\n\
                `docs/formats.md` `purge/mod.rs` `mod.rs` `a b.rs` `log_*.rs` `engine/src/log` `/etc/none.toml`\n\
                https://x.org/docs/none.md or kv/src/scan.rs.\n\
                ```\n[a](docs/none.md) `none.rs`\n```\n";
    assert_eq!(markdown("ARCHITECTURE.md", fine), 0);
    assert_eq!(markdown("docs/a.md", "[a](../README.md) [b](formats.md) [c](../engine/src)"), 0);
    assert_eq!(markdown("docs/a.md", "[a](docs/formats.md)"), 1, "links start at the file's folder");

    let comments = |text: &str| in_comments(&Source::fake("engine/src/log/a.rs", text), &tree).len();
    assert_eq!(comments("//! See `purge/none.rs`.\n/// And `kv/src/none.rs`.\n"), 2);
    assert_eq!(comments("// See tools/none.sh.\n"), 1);
    let script = |path| in_comments(&Source::fake(path, "# See tools/none.sh\ncat tools/none.sh\n"), &tree).len();
    assert_eq!([".ci/run", "Makefile", "tools/a.sh", "Cargo.toml", "docs/a"].map(script), [1, 1, 1, 1, 0]);
    assert_eq!(comments("//! See `scan.rs`.\n"), 1, "of another crate");
    assert_eq!(comments("//! See `purge/mod.rs`, `kv/src/scan.rs`.\nconst A: &str = \"`none.rs`\";\n"), 0);
}
