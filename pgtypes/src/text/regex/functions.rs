//! The functions of SQL over regular expressions. Positions count characters from 1.

use super::matcher::Span;
use super::search::{Match, Regex, Search};
use crate::error::ValueError;
use crate::sqlstate::SqlState;
use crate::text::limit::check_growth;

/// Groups of a match, or the whole match if the pattern has none.
type Row<'a> = Vec<Option<&'a str>>;

/// Which match `regexp_count`, `regexp_substr` and `regexp_instr` look for. Made before the options are read, as
/// PostgreSQL checks the numbers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchPlace {
    /// Characters before the search begins
    skipped: usize,
    /// Matches before the one that is meant
    nth: usize,
    at_end: bool,
    group: usize,
}

impl MatchPlace {
    /// From a position, the number of the match, `endoption` (1 for the position after the match), and the group (0 for
    /// the whole match). 22023 for a value out of range.
    pub fn new(start: i32, nth: i32, end: i32, group: i32) -> Result<MatchPlace, ValueError> {
        let skipped = from_one("start", start)?;
        let nth = from_one("n", nth)?;
        if !matches!(end, 0 | 1) {
            return Err(bad_value("endoption", end));
        }
        let group = usize::try_from(group).map_err(|_| bad_value("subexpr", group))?;
        Ok(MatchPlace { skipped, nth, at_end: end == 1, group })
    }

    /// The first match from a position on. 22023 for a position below 1.
    pub fn from(start: i32) -> Result<MatchPlace, ValueError> {
        MatchPlace::new(start, 1, 0, 0)
    }
}

/// Which matches `regexp_replace` replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplacePlace {
    skipped: usize,
    /// Matches before the one that is replaced; `None` to replace all
    nth: Option<usize>,
}

impl ReplacePlace {
    /// From a position, match number `nth`, or all if it is 0. 22023 for a value out of range.
    pub fn new(start: i32, nth: i32) -> Result<ReplacePlace, ValueError> {
        let skipped = from_one("start", start)?;
        let nth = usize::try_from(nth).map_err(|_| bad_value("n", nth))?;
        Ok(ReplacePlace { skipped, nth: nth.checked_sub(1) })
    }

    /// From the start, all matches or only the first: the option `g`.
    pub fn all(global: bool) -> ReplacePlace {
        ReplacePlace { skipped: 0, nth: if global { None } else { Some(0) } }
    }
}

fn bad_value(name: &str, value: i32) -> ValueError {
    let message = format!("invalid value for parameter \"{name}\": {value}");
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A number from 1, as one from 0.
fn from_one(name: &str, value: i32) -> Result<usize, ValueError> {
    usize::try_from(value).ok().and_then(|value| value.checked_sub(1)).ok_or_else(|| bad_value(name, value))
}

/// The byte offset after a number of characters. `None` if there are fewer.
fn offset(text: &str, characters: usize) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(characters)
}

fn slice(text: &str, (start, end): Span) -> &str {
    text.get(start..end).unwrap_or("")
}

impl<'a> Search<'a> {
    /// The next match after the one before, in a search for all matches.
    fn all(&self, from: usize) -> impl Iterator<Item = Result<Match, ValueError>> {
        let mut from = Some(from);
        std::iter::from_fn(move || {
            let found = self.find(from?).transpose()?;
            from = found.as_ref().ok().and_then(|found| self.next(found.span));
            Some(found)
        })
    }

    fn row(&self, text: &'a str, found: &Match) -> Result<Row<'a>, ValueError> {
        let groups = self.groups(found)?;
        if groups.is_empty() {
            return Ok(vec![Some(slice(text, found.span))]);
        }
        Ok(groups.into_iter().map(|group| group.map(|group| slice(text, group))).collect())
    }
}

impl Regex {
    /// `regexp_match`: the groups of the first match, or the match if there are no groups.
    pub fn first<'a>(&'a self, text: &'a str) -> Result<Option<Row<'a>>, ValueError> {
        let search = self.search(text);
        search.find(0)?.map(|found| search.row(text, &found)).transpose()
    }

    /// `regexp_matches`: what [`Regex::first`] gives, for the first match or with `global` for all.
    pub fn matches<'a>(&'a self, text: &'a str, global: bool) -> Result<Vec<Row<'a>>, ValueError> {
        let search = self.search(text);
        let most = if global { usize::MAX } else { 1 };
        search.all(0).take(most).map(|found| search.row(text, &found?)).collect()
    }

    /// `substring(text from pattern)`: the first group of the first match, or the match if there are no groups.
    pub fn substring<'a>(&'a self, text: &'a str) -> Result<Option<&'a str>, ValueError> {
        let first = self.first(text)?;
        Ok(first.and_then(|row| row.first().copied().flatten()))
    }

    /// `regexp_replace`. In the replacement, `\1` to `\9` are groups, `\&` is the match and `\\` a backslash. 54000 for
    /// a result that is too large.
    pub fn replace(&self, text: &str, replacement: &str, place: ReplacePlace) -> Result<String, ValueError> {
        let Some(from) = offset(text, place.skipped) else { return Ok(text.to_owned()) };
        let search = self.search(text);
        let pieces = pieces(replacement);
        let needs_groups = pieces.iter().any(|piece| matches!(piece, Piece::Group(_)));
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for (at, found) in search.all(from).enumerate() {
            let found = found?;
            let span = found.span;
            if place.nth.is_some_and(|nth| nth != at) {
                continue;
            }
            out.push_str(slice(text, (copied, span.0)));
            let groups = if needs_groups { search.groups(&found)? } else { Vec::new() };
            for piece in &pieces {
                let piece = match piece {
                    Piece::Text(piece) => piece,
                    Piece::Match => slice(text, span),
                    Piece::Group(number) => {
                        let group = groups.get(number - 1).copied().flatten();
                        group.map_or("", |group| slice(text, group))
                    }
                };
                check_growth(out.len(), piece.len())?;
                out.push_str(piece);
            }
            copied = span.1;
            if place.nth.is_some() {
                break;
            }
        }
        let rest = slice(text, (copied, text.len()));
        check_growth(out.len(), rest.len())?;
        out.push_str(rest);
        Ok(out)
    }

    /// `regexp_split_to_array` and `regexp_split_to_table`: the parts between matches. An empty match at an end of the
    /// text or after another match does not split.
    pub fn split<'a>(&self, text: &'a str) -> Result<Vec<&'a str>, ValueError> {
        let search = self.search(text);
        let mut out = Vec::new();
        let (mut part, mut previous) = (0, 0);
        for found in search.all(0) {
            let span = found?.span;
            if span.0 < text.len() && span.1 > previous {
                out.push(slice(text, (part, span.0)));
                part = span.1;
            }
            previous = span.1;
        }
        out.push(slice(text, (part, text.len())));
        Ok(out)
    }

    /// `regexp_count`: the matches from a position on.
    pub fn count(&self, text: &str, place: MatchPlace) -> Result<i32, ValueError> {
        let Some(from) = offset(text, place.skipped) else { return Ok(0) };
        let mut count = 0i32;
        for found in self.search(text).all(from) {
            found?;
            count = count.saturating_add(1);
        }
        Ok(count)
    }

    /// `regexp_substr`
    pub fn substr<'a>(&self, text: &'a str, place: MatchPlace) -> Result<Option<&'a str>, ValueError> {
        Ok(self.place(text, place)?.map(|span| slice(text, span)))
    }

    /// `regexp_instr`: the position of a match or the one after it, 0 if there is none.
    pub fn instr(&self, text: &str, place: MatchPlace) -> Result<i32, ValueError> {
        let Some((start, end)) = self.place(text, place)? else { return Ok(0) };
        let before = slice(text, (0, if place.at_end { end } else { start }));
        Ok(i32::try_from(before.chars().count() + 1).unwrap_or(i32::MAX))
    }

    fn place(&self, text: &str, place: MatchPlace) -> Result<Option<Span>, ValueError> {
        // A pattern without groups counts as one group.
        if place.group > self.groups().max(1) {
            return Ok(None);
        }
        let Some(from) = offset(text, place.skipped) else { return Ok(None) };
        let search = self.search(text);
        let Some(found) = search.all(from).nth(place.nth).transpose()? else { return Ok(None) };
        match place.group.checked_sub(1) {
            Some(at) if self.groups() > 0 => Ok(search.groups(&found)?.get(at).copied().flatten()),
            _ => Ok(Some(found.span)),
        }
    }
}

/// A part of a replacement.
enum Piece<'a> {
    Text(&'a str),
    Match,
    Group(usize),
}

fn pieces(replacement: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        let (plain, tail) = rest.split_at(at);
        let (piece, length) = match tail.as_bytes().get(1) {
            Some(digit @ b'1'..=b'9') => (Piece::Group(usize::from(digit - b'0')), 2),
            Some(b'&') => (Piece::Match, 2),
            Some(b'\\') => (Piece::Text("\\"), 2),
            // Another backslash stands for itself.
            _ => (Piece::Text("\\"), 1),
        };
        out.push(Piece::Text(plain));
        out.push(piece);
        rest = tail.get(length..).unwrap_or("");
    }
    out.push(Piece::Text(rest));
    out
}
