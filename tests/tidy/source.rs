//! The files that the rules look at.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the workspace.
pub struct Source {
    /// Path from the root, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl Source {
    /// A file made up by a test of a rule.
    pub fn fake(path: &str, text: &str) -> Source {
        Source { path: path.to_string(), text: text.to_string() }
    }

    /// Whether the file is only compiled for tests, benchmarks or examples.
    pub fn is_test(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        let folder = parts[..parts.len() - 1].iter().any(|p| ["tests", "benches", "examples", "fuzz"].contains(p));
        folder || self.path.ends_with("/tests.rs") || self.path.ends_with("_tests.rs")
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A Rust file as its syntax.
    pub fn parse(&self) -> syn::File {
        syn::parse_file(&self.text).unwrap_or_else(|e| panic!("{}: {e}", self.path))
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

/// Every Rust file of the workspace, sorted by path.
pub fn all() -> Vec<Source> {
    let found: Vec<Source> = texts().into_iter().filter(Source::is_rust).collect();
    assert!(found.len() > 20, "the rules must see the workspace, not {} files", found.len());
    found
}

/// Every text file of the workspace that people write: Rust, protocols, scripts, manifests, documents. Sorted by path.
pub fn texts() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(root: &Path, dir: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let hidden = name.starts_with('.') && ![".ci", ".cargo", ".github"].contains(&name.as_str());
            // Generated files are exempt.
            if !hidden && !["target", "__pycache__"].contains(&name.as_str()) {
                collect(root, &path, found);
            }
        } else if name != "Cargo.lock"
            && let Some(text) = fs::read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        {
            let relative = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            found.push(Source { path: relative, text });
        }
    }
}
