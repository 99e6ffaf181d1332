//! Tables of cases for tests: a function, its arguments, and what PostgreSQL answers.
//!
//! A line has fields between tabs, in the text form of COPY. The last one is the result: `\N` for NULL, `!` with the
//! SQLSTATE, message, detail and hint for an error.

use crate::error::ValueError;

/// The arguments of a case.
pub(crate) struct Args(Vec<Option<String>>);

impl Args {
    /// An argument, with `None` for NULL.
    pub(crate) fn nullable(&self, at: usize) -> Option<&str> {
        self.0[at].as_deref()
    }

    /// An argument that is not NULL.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.nullable(at).unwrap()
    }

    /// An integer.
    pub(crate) fn int(&self, at: usize) -> i32 {
        self.text(at).parse().unwrap()
    }

    /// `true` or `false`.
    pub(crate) fn bool(&self, at: usize) -> bool {
        self.text(at).parse().unwrap()
    }

    /// A `text[]` of words: `{a,NULL,""}`.
    pub(crate) fn words(&self, at: usize) -> Vec<Option<&str>> {
        let inner = self.text(at).strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap();
        let word = |word| match word {
            "NULL" => None,
            "\"\"" => Some(""),
            word => Some(word),
        };
        if inner.is_empty() { Vec::new() } else { inner.split(',').map(word).collect() }
    }
}

/// The result of a case.
pub(crate) type Outcome = Result<Option<String>, ValueError>;

/// Runs the cases of a table. Fails with all that differ.
pub(crate) fn check(table: &str, run: impl Fn(&str, &Args) -> Outcome) {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut fields: Vec<Option<String>> = line.split('\t').map(unescape).collect();
        let wanted = fields.pop().unwrap();
        let function = fields.remove(0).unwrap();
        let got = match run(&function, &Args(fields)) {
            Ok(value) => value,
            Err(error) => Some(shown(&error)),
        };
        count += 1;
        if got != wanted {
            failures.push(format!("{line}\n    wanted {wanted:?}\n    got    {got:?}"));
        }
    }
    let shown = failures.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {count} cases differ:\n{shown}", failures.len());
}

fn shown(error: &ValueError) -> String {
    let mut out = format!("!{} {}", error.code().0, error.message());
    if let Some(detail) = error.detail() {
        out.push_str(&format!(" | DETAIL: {detail}"));
    }
    if let Some(hint) = error.hint() {
        out.push_str(&format!(" | HINT: {hint}"));
    }
    out
}

fn unescape(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let mut out = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next().unwrap() {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\x08',
                'f' => '\x0c',
                'v' => '\x0b',
                c => c,
            },
            c => c,
        });
    }
    Some(out)
}
