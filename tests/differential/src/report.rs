//! Counts what differs, grouped by what is likely one cause, and writes a file for each group.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::case::{Case, Verdict};
use crate::compare::{Class, Difference};

/// Differences of one group.
struct Group {
    class: Class,
    count: u64,
    example: String,
}

/// Refusals with one message.
struct Refusals {
    count: u64,
    is_listed: bool,
    example: String,
}

/// The counts of a run.
#[derive(Default)]
pub struct Report {
    /// Statements that ran.
    pub statements: u64,
    /// Cases that took too long on one side.
    pub inconclusive: u64,
    groups: BTreeMap<String, Group>,
    known: BTreeMap<&'static str, u64>,
    unsupported: BTreeMap<String, Refusals>,
}

impl Report {
    /// Counts a difference that `docs/compatibility.md` lists.
    pub(crate) fn known(&mut self, rule: &'static str) {
        *self.known.entry(rule).or_default() += 1;
    }

    /// Counts a statement that Cortado refuses with 0A000: by its message, and whether that is documented.
    pub(crate) fn unsupported(&mut self, message: &str, text: &str, is_listed: bool) {
        let refusals = self.unsupported.entry(normalized(message)).or_insert_with(|| Refusals {
            count: 0,
            is_listed,
            example: text.to_string(),
        });
        refusals.count += 1;
    }

    /// Whether a group of this difference has been seen. Only differences between errors have a group without
    /// shrinking.
    pub(crate) fn count_if_seen(&mut self, difference: &Difference) -> bool {
        let Some(key) = early_key(difference) else { return false };
        let Some(group) = self.groups.get_mut(&key) else { return false };
        group.count += 1;
        true
    }

    /// Counts a difference, as it is after shrinking.
    pub(crate) fn differs(&mut self, case: &Case, verdict: &Verdict, number: u64) {
        let Verdict::Differs { difference, .. } = verdict else { return };
        let key =
            early_key(difference).unwrap_or_else(|| format!("{:?} {}", difference.class, normalized(&case.text())));
        let example = format!("{}\n{difference}\n  case {number}", case.text());
        let group = self.groups.entry(key).or_insert_with(|| Group { class: difference.class, count: 0, example });
        group.count += 1;
    }

    /// Differences that no rule lists, apart from messages and positions.
    pub fn unlisted(&self) -> u64 {
        let groups = self.groups.values().filter(|group| group.class < Class::Message).map(|group| group.count);
        let refusals = self.unsupported.values().filter(|refusals| !refusals.is_listed).map(|refusals| refusals.count);
        groups.sum::<u64>() + refusals.sum::<u64>()
    }

    /// Whether a group of wrong rows has a case with this text.
    pub(crate) fn found(&self, text: &str) -> bool {
        self.groups.values().any(|group| group.class == Class::Rows && group.example.contains(text))
    }

    /// The report as text, the worst first.
    pub fn show(&self) -> String {
        let mut out = String::new();
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| (group.class, std::cmp::Reverse(group.count)));
        for (_, group) in groups {
            let _ = writeln!(out, "--- {} times: {}\n", group.count, group.example);
        }
        let of =
            |class| self.groups.values().filter(|group| group.class == class).map(|group| group.count).sum::<u64>();
        for (rule, count) in &self.known {
            let _ = writeln!(out, "known   {count:7}  {rule}");
        }
        for (message, refusals) in &self.unsupported {
            let _ = match refusals.is_listed {
                true => writeln!(out, "0A000   {:7}  {message}", refusals.count),
                false => writeln!(out, "0A000   {:7}  NOT LISTED: {message}\n{}", refusals.count, refusals.example),
            };
        }
        let _ = writeln!(out, "{} statements, {} inconclusive", self.statements, self.inconclusive);
        let _ = writeln!(
            out,
            "{} differences that are not listed; {} messages, {} positions",
            self.unlisted(),
            of(Class::Message),
            of(Class::Position)
        );
        out
    }

    /// Writes each group into a file of its own.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for (at, (_, group)) in self.groups.iter().enumerate() {
            let file = folder.join(format!("{:?}-{at:04}.sql", group.class).to_lowercase());
            std::fs::write(file, format!("{}\n", group.example))?;
        }
        Ok(())
    }
}

/// The group of a difference between errors: codes and messages, without names and values.
fn early_key(difference: &Difference) -> Option<String> {
    let is_error = matches!(difference.class, Class::SqlState | Class::Message | Class::Refused | Class::Accepted);
    let has_text = |side: &String| side.as_bytes().get(5) == Some(&b' ') && !side.starts_with('[');
    let sides: Vec<String> = difference
        .sides
        .iter()
        .filter(|side| has_text(side))
        .map(|side| normalized(side.split(" at ").next().unwrap_or(side)))
        .collect();
    (is_error && !sides.is_empty() && difference.class != Class::Accepted)
        .then(|| format!("{:?} {:?} {}", difference.class, difference.codes, sides.join(" / ")))
}

/// A text without its literals and numbers, so that statements of one form are equal.
pub fn normalized(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                while rest.next().is_some_and(|next| next != c) {}
                out.push(c);
            }
            c if c.is_ascii_digit() => {
                while rest.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
                out.push('#');
            }
            c => out.push(c),
        }
    }
    out
}
