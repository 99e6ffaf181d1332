//! Operators that the parser's tokenizer splits and PostgreSQL does not: `7%-2` has the operator `%-`, which does not
//! exist.
//!
//! PostgreSQL takes as many characters of operators as there are. A name of several characters ends in `+` or `-` only
//! if it has one of `~ ! @ # % ^ & | ?` too, so `a=-1` means what it seems to. The work is linear in the text, whatever
//! it consists of.

use std::ops::Range;

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use super::text::SourceText;

const CHARACTERS: &str = "+-*/<>=~!@#%^&|`?";
/// An operator with one of these may end in `+` or `-`.
const SPECIAL: &str = "~!@#%^&|`?";
const SIGNS: [char; 2] = ['+', '-'];

/// Joins the tokens that are one operator.
pub(super) fn joined(text: &SourceText, tokens: &mut Vec<TokenWithSpan>) {
    let mut cursor = Cursor { text, at: Location { line: 0, column: 0 }, byte: 0 };
    // Edits in place: there may be many tokens, and few are operators.
    let (mut kept, mut at) = (0, 0);
    while at < tokens.len() {
        let parts = cursor.run(&tokens[at..]);
        for operator in operators(text, &parts) {
            let (first, last) = (at + operator.start, at + operator.end - 1);
            tokens.swap(kept, first);
            if first != last {
                let span = Span { start: tokens[kept].span.start, end: tokens[last].span.end };
                let name = text.as_str()[parts[operator.start].start..parts[operator.end - 1].end].to_owned();
                tokens[kept] = TokenWithSpan { token: Token::CustomBinaryOperator(name), span };
            }
            kept += 1;
        }
        if parts.is_empty() {
            tokens.swap(kept, at);
            (kept, at) = (kept + 1, at + 1);
        }
        at += parts.len();
    }
    tokens.truncate(kept);
}

/// The operators of PostgreSQL in a run of parts, as ranges of parts.
fn operators(text: &SourceText, parts: &[Range<usize>]) -> Vec<Range<usize>> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Vec::new() };
    let run = &text.as_str()[first.start..last.end];
    let last_special = run.rfind(|c| SPECIAL.contains(c)).map(|at| first.start + at);
    let last_plain = run.rfind(|c| !SIGNS.contains(&c)).map(|at| first.start + at);
    let (mut found, mut next) = (Vec::new(), 0);
    while next < parts.len() {
        let start = parts[next].start;
        let end = match (last_special, last_plain) {
            (Some(special), _) if special >= start => last.end,
            (_, Some(plain)) if plain >= start => plain + 1,
            _ => start + 1,
        };
        // A name that ends inside of a token is left to the parser.
        let count = parts[next..].binary_search_by_key(&end, |part| part.end).map_or(1, |at| at + 1);
        found.push(next..next + count);
        next += count;
    }
    found
}

/// Finds the bytes of locations that follow one another.
struct Cursor<'a> {
    text: &'a SourceText,
    at: Location,
    byte: usize,
}

impl Cursor<'_> {
    /// The bytes of the tokens before the first that is not an operator, or that does not follow at once.
    fn run(&mut self, tokens: &[TokenWithSpan]) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        for token in tokens {
            if !may_be_operator(&token.token) {
                break;
            }
            let Some(part) = self.bytes(token.span) else { break };
            let source = &self.text.as_str()[part.clone()];
            let follows = parts.last().is_none_or(|last| last.end == part.start);
            if !follows || !consists_of_them(source) {
                break;
            }
            parts.push(part);
        }
        parts
    }

    fn bytes(&mut self, span: Span) -> Option<Range<usize>> {
        let (start, end) = (self.byte_of(span.start)?, self.byte_of(span.end)?);
        (start <= end).then_some(start..end)
    }

    /// The byte of a location. Linear in the distance from the location before, or from the start of its line.
    fn byte_of(&mut self, location: Location) -> Option<usize> {
        if location.line != self.at.line || location.column < self.at.column {
            self.at = Location { line: location.line, column: 1 };
            self.byte = self.text.offset(self.at)?;
        }
        let rest = &self.text.as_str()[self.byte..];
        let distance = usize::try_from(location.column - self.at.column).ok()?;
        self.byte += rest.char_indices().nth(distance).map_or(rest.len(), |(at, _)| at);
        self.at = location;
        Some(self.byte)
    }
}

/// Whether a text consists of characters of operators.
pub(super) fn consists_of_them(source: &str) -> bool {
    !source.is_empty() && source.chars().all(|c| CHARACTERS.contains(c))
}

/// Whether a token can consist of characters of operators. A comment is white space.
pub(super) fn may_be_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::Whitespace(_)
            | Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::Comma
            | Token::LParen
            | Token::RParen
            | Token::LBracket
            | Token::RBracket
            | Token::DoubleColon
            | Token::Period
            | Token::SemiColon
            | Token::EOF
    )
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::dialect::CortadoDialect;

    fn operators(sql: &str) -> Vec<String> {
        let mut tokens = Tokenizer::new(&CortadoDialect::for_tokenizer(), sql).tokenize_with_location().unwrap();
        let text = SourceText::new(sql);
        joined(&text, &mut tokens);
        let sources = tokens.iter().filter(|token| may_be_operator(&token.token)).map(|token| text.source(token.span));
        sources
            .filter(|source| !source.is_empty() && source.chars().all(|c| CHARACTERS.contains(c)))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn operators_end_where_those_of_postgresql_do() {
        assert_eq!(operators("7%-2"), ["%-"]);
        assert_eq!(operators("1 +* 2"), ["+*"]);
        assert_eq!(operators("a=-1"), ["=", "-"]);
        assert_eq!(operators("a*-1 + -b"), ["*", "-", "+", "-"]);
        assert_eq!(operators("a||-1"), ["||-"]);
        assert_eq!(operators("j->-1"), ["->", "-"]);
        assert_eq!(operators("a<>-1"), ["<>", "-"]);
        assert_eq!(operators("a <- 1"), ["<", "-"]);
        assert_eq!(operators("2*/* no */-1"), ["*", "-"]);
        assert_eq!(operators("1+-- to the end\n2"), ["+"]);
        assert_eq!(operators("@ -1"), ["@", "-"]);
        assert_eq!(operators("count(*)-1"), ["*", "-"]);
    }

    #[test]
    fn operators_behind_other_letters_and_lines_are_found() {
        assert_eq!(operators("'ä' % -1, 'ö' %-1\n+ 'ü'=-1"), ["%", "-", "%-", "+", "=", "-"]);
        assert_eq!(operators("E'\\nä\n' <>-1"), ["<>", "-"]);
    }

    /// Quadratic work would take minutes.
    #[test]
    fn long_runs_and_long_lines_are_linear() {
        let count = |sql: String| {
            let mut tokens = Tokenizer::new(&CortadoDialect::for_tokenizer(), &sql).tokenize_with_location().unwrap();
            joined(&SourceText::new(&sql), &mut tokens);
            tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).count()
        };
        assert_eq!(count("+".repeat(200_000)), 200_000);
        assert_eq!(count(format!("1 @{}", "+".repeat(200_000))), 2);
        assert_eq!(count("('ä' = -1), ".repeat(100_000)), 700_000);
    }
}
