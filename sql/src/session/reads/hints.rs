//! Hints: `/*+ REPLICA_READ(closest) HEDGE(auto) STALENESS('5s') */` at the head of a statement or after its first
//! keyword. Pure.
//!
//! They are part of the statement's text, and so of the key of its plan. A comment elsewhere is a comment. A text
//! without `/*+` is only searched for that.

use kv::client::{HedgePolicy, ReplicaPolicy};

use super::policy::{ReadSettings, Staleness, hedge, replica};
use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Spanned, Token, skip_blank};

const NAMES: [&str; 3] = ["REPLICA_READ", "HEDGE", "STALENESS"];

/// The hints of a statement. The last of a name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    replica: Option<ReplicaPolicy>,
    hedge: Option<HedgePolicy>,
    staleness: Option<Staleness>,
    /// Names that are not known, and text that is no hint.
    unknown: Vec<String>,
}

impl Hints {
    /// The hints of a statement; `None` if it has no comment for them. 22023 for a value that a hint does not take.
    pub(crate) fn of(text: &str) -> Result<Option<Hints>, SqlError> {
        if !text.contains("/*+") {
            return Ok(None);
        }
        let comments = comments(text);
        let mut hints = Hints::default();
        for (start, end) in &comments {
            hints.read(text, *start, *end)?;
        }
        Ok((!comments.is_empty()).then_some(hints))
    }

    /// The settings of the session as the statement overrides them.
    pub(crate) fn over(&self, settings: ReadSettings) -> ReadSettings {
        ReadSettings {
            replica: self.replica.unwrap_or(settings.replica),
            hedge: self.hedge.unwrap_or(settings.hedge),
            staleness: self.staleness.unwrap_or(settings.staleness),
            ..settings
        }
    }

    /// The staleness that the statement asks for.
    pub(crate) fn staleness(&self) -> Option<Staleness> {
        self.staleness
    }

    /// What is ignored. `is_read`: of a statement that only reads.
    pub(crate) fn notices(&self, is_read: bool) -> Vec<String> {
        let mut notices: Vec<String> =
            self.unknown.iter().map(|name| format!("hint \"{name}\" is not known and ignored")).collect();
        if !is_read {
            let given = [("REPLICA_READ", self.replica.is_some()), ("HEDGE", self.hedge.is_some())];
            let ignored = given.iter().filter(|(_, given)| *given);
            notices.extend(
                ignored.map(|(name, _)| format!("hint \"{name}\" is ignored: the statement does more than read")),
            );
        }
        notices
    }

    /// Reads the hints between two bytes of the text. What is not one of ours may be another system's, and is noted.
    fn read(&mut self, text: &str, start: usize, end: usize) -> Result<(), SqlError> {
        let body = &text[..end];
        let mut lexer = Lexer::new(body);
        lexer.skip_to(start);
        while let Some(Spanned { token, start: at, .. }) = lexer.next() {
            let name = match token {
                Token::Word(name) => name.to_ascii_uppercase(),
                Token::Symbol(',') => continue,
                _ => {
                    self.unknown.push(body[at..].trim().to_owned());
                    return Ok(());
                }
            };
            if !NAMES.contains(&name.as_str()) {
                self.unknown.push(name);
                if arguments(text, &mut lexer, at).is_err() {
                    return Ok(());
                }
                continue;
            }
            let values = arguments(text, &mut lexer, at)?;
            let value = values.join(" ");
            let wrong = |words: &str| {
                let message = format!("invalid value for hint {name}: \"{value}\"");
                malformed(text, at, &message).hint(format!("Available values: {words}."))
            };
            match name.as_str() {
                "REPLICA_READ" => {
                    let words = "leader, follower, closest, any, learner";
                    self.replica = Some(replica(&value).ok_or_else(|| wrong(words))?);
                }
                "HEDGE" => {
                    let words = "off, auto, or a delay such as '2ms'";
                    self.hedge = Some(hedge(&value).ok_or_else(|| wrong(words))?);
                }
                _ => {
                    let words = "'' (fresh), an age such as '5s', 'max 5s', unbounded";
                    self.staleness = Some(Staleness::parse(&value).ok_or_else(|| wrong(words))?);
                }
            }
        }
        Ok(())
    }
}

/// The words in the parentheses that follow a name; none if none follow.
fn arguments(text: &str, lexer: &mut Lexer<'_>, at: usize) -> Result<Vec<String>, SqlError> {
    let before = lexer.clone();
    if lexer.next().is_none_or(|token| token.token != Token::Symbol('(')) {
        *lexer = before;
        return Ok(Vec::new());
    }
    let (mut values, mut depth) = (Vec::new(), 1usize);
    while let Some(Spanned { token, .. }) = lexer.next() {
        match token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') if depth == 1 => return Ok(values),
            Token::Symbol(')') => depth -= 1,
            Token::Text(value) | Token::Quoted(value) => values.push(value),
            Token::Word(value) | Token::Number(value) => values.push(value.to_owned()),
            Token::Symbol(other) => values.push(other.to_string()),
            Token::Unterminated => break,
        }
    }
    Err(malformed(text, at, "a hint is not closed"))
}

/// The bytes within the comments that may hold hints: before the first keyword and right behind it. EXPLAIN is followed
/// by the keyword of what it explains.
fn comments(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let mut comment = |start: usize, end: usize| {
            // Without its end, the parser refuses it.
            if let Some(body) = text[start..end].strip_prefix("/*+").and_then(|body| body.strip_suffix("*/")) {
                found.push((start + 3, start + 3 + body.len()));
            }
        };
        at = skip_blank(text, at, &mut comment);
        let mut lexer = Lexer::new(text);
        lexer.skip_to(at);
        match lexer.next() {
            Some(Spanned { token: Token::Symbol('('), end, .. }) => at = end,
            Some(Spanned { token: Token::Word(word), end, .. }) => {
                at = skip_blank(text, end, &mut comment);
                if !word.eq_ignore_ascii_case("explain") {
                    return found;
                }
                at = explained(text, at);
            }
            _ => return found,
        }
    }
}

/// The byte where the statement of an EXPLAIN begins, or its words and options end.
fn explained(text: &str, at: usize) -> usize {
    let is_option = |word: &str| ["analyze", "analyse", "verbose"].iter().any(|w| word.eq_ignore_ascii_case(w));
    let mut lexer = Lexer::new(text);
    lexer.skip_to(at);
    let (mut depth, mut end) = (0usize, at);
    loop {
        match lexer.next() {
            Some(Spanned { token: Token::Symbol('('), .. }) => depth += 1,
            Some(Spanned { token: Token::Symbol(')'), .. }) => depth = depth.saturating_sub(1),
            Some(Spanned { token: Token::Word(word), .. }) if depth == 0 && !is_option(word) => return end,
            None => return end,
            _ => {}
        }
        end = lexer.position();
    }
}

fn malformed(text: &str, at: usize, message: &str) -> SqlError {
    let position = u32::try_from(text[..at].chars().count() + 1).unwrap_or(0);
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(position)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(text: &str) -> Hints {
        Hints::of(text).unwrap_or_else(|e| panic!("{text}: {e:?}")).unwrap_or_else(|| panic!("{text}: no hints"))
    }

    #[test]
    fn hints_stand_at_the_head_and_after_the_first_keyword() {
        let all = Hints {
            replica: Some(ReplicaPolicy::Closest),
            hedge: Some(HedgePolicy::After(Duration::from_millis(2))),
            staleness: Some(Staleness::Exact(Duration::from_secs(5))),
            unknown: Vec::new(),
        };
        for text in [
            "select /*+ REPLICA_READ(closest) HEDGE(2ms) STALENESS('5s') */ 1",
            "/*+ replica_read('closest'), hedge('2ms') */ /* x */ -- y\n /*+staleness(5s)*/ select 1",
            "/*+ REPLICA_READ(any) */ select /*+ REPLICA_READ(closest) */ /*+ HEDGE(2ms) STALENESS(5000) */ 1",
            "explain (analyze, timing off) /*+ HEDGE(2ms) */ select /*+ REPLICA_READ(closest) STALENESS('5s') */ 1",
            "explain analyze select /*+ REPLICA_READ(closest) STALENESS('5s') HEDGE(2ms) */ 1",
            "(select /*+ REPLICA_READ(closest) STALENESS('5s') HEDGE(2ms) */ 1)",
        ] {
            assert_eq!(of(text), all, "{text}");
        }
        for text in ["select 1 /*+ REPLICA_READ(closest) */", "select '/*+ HEDGE(x) */'", "select 1", "/*+ open"] {
            assert_eq!(Hints::of(text), Ok(None), "{text}");
        }
        assert_eq!(
            of("select /*+ STALENESS('max 5s') */ 1").staleness,
            Some(Staleness::AtMost(Duration::from_secs(5)))
        );
        assert_eq!(of("select /*+ STALENESS('') */ 1").staleness, Some(Staleness::Fresh));
    }

    #[test]
    fn unknown_hints_are_noted_and_wrong_values_refused_where_they_stand() {
        let hints = of("select /*+ NoIndex(t (a)) HEDGE(auto) Leading */ 1");
        let unknown = ["hint \"NOINDEX\" is not known and ignored", "hint \"LEADING\" is not known and ignored"];
        assert_eq!(hints.notices(true), unknown);
        assert_eq!(hints.notices(false)[2..], ["hint \"HEDGE\" is ignored: the statement does more than read"]);
        for (text, unknown) in [
            ("select /*+ @sel_1 NO_MERGE */ 1", &["@sel_1 NO_MERGE"][..]),
            ("select /*+ t.c HEDGE(x) */ 1", &["T", ".c HEDGE(x)"]),
            ("select /*+ 42 */ 1", &["42"]),
            ("select /*+ don't do it */ 1", &["DON", "'t do it"]),
            ("select /*+ INDEX(t, (a) */ 1", &["INDEX"]),
            ("select /*+ ) */ 1", &[")"]),
        ] {
            assert_eq!(
                of(text),
                Hints { unknown: unknown.iter().map(ToString::to_string).collect(), ..Hints::default() }
            );
        }
        for (text, position) in [
            ("select /*+ REPLICA_READ(nearest) */ 1", 12),
            ("select /*+ REPLICA_READ */ 1", 12),
            ("select /*+ HEDGE(auto) STALENESS(-5s) */ 1", 24),
            ("/* é */ /*+ HEDGE(auto */ select 1", 13),
            ("select /*+ HEDGE('auto) */ 1", 12),
        ] {
            let error = Hints::of(text).expect_err(text);
            assert_eq!((error.code.0, error.position), ("22023", Some(position)), "{text}: {error}");
        }
    }
}
