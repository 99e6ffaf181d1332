//! The ends of operators, as PostgreSQL's lexer finds them: an operator is the longest run of operator characters up to
//! a comment, without the `+` and `-` at its end, unless it has one of the characters that arithmetic does not use.
//!
//! The parser's tokenizer ends some operators early: `1 +* 2` is `+` and `*` to it, and one operator to PostgreSQL.

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use super::text::SourceText;

const OPERATOR: &str = "~!@#^&|`?+-*/%<>=";
/// An operator with one of these may end with `+` or `-`.
const NOT_ARITHMETIC: &str = "~!@#^&|`?%";

/// Joins the tokens of each operator.
pub(super) fn join_operators(text: &SourceText, tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let touches = |pair: &[TokenWithSpan]| matches!(pair, [a, b] if may_be_part(&a.token) && may_be_part(&b.token) && a.span.end == b.span.start);
    if !tokens.windows(2).any(touches) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some(first) = rest.first() {
        let mut count = 1;
        while rest.get(count - 1..=count).is_some_and(touches) {
            count += 1;
        }
        let (run, behind) = rest.split_at(count);
        rest = behind;
        let span = Span { start: first.span.start, end: run.last().unwrap_or(first).span.end };
        let source = text.source(span);
        if count == 1 || !source.chars().all(|c| OPERATOR.contains(c)) {
            out.extend_from_slice(run);
        } else {
            split_run(run, source, &mut out);
        }
    }
    out
}

/// Whether a token may be a part of an operator. Its text decides.
fn may_be_part(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Whitespace(_)
            | Token::Comma
            | Token::SemiColon
            | Token::Period
            | Token::Colon
            | Token::DoubleColon
            | Token::Assignment
            | Token::LParen
            | Token::RParen
            | Token::LBracket
            | Token::RBracket
            | Token::LBrace
            | Token::RBrace
            | Token::Placeholder(_)
    )
}

/// Appends the operators of a run of tokens that touch each other.
fn split_run(run: &[TokenWithSpan], source: &str, out: &mut Vec<TokenWithSpan>) {
    let Some(first) = run.first() else { return };
    // No line ends within an operator.
    let Location { line, column } = first.span.start;
    let location = |at: usize| Location { line, column: column + at as u64 };
    let mut at = 0;
    while at < source.len() {
        let length = operator_length(&source[at..]);
        let span = Span { start: location(at), end: location(at + length) };
        match run.iter().find(|token| token.span == span) {
            Some(known) => out.push(known.clone()),
            None => out.push(TokenWithSpan { token: token_of(&source[at..at + length]), span }),
        }
        at += length;
    }
}

/// The length of the operator at the beginning of a text of operator characters.
fn operator_length(text: &str) -> usize {
    let has_others = text.contains(|c| NOT_ARITHMETIC.contains(c));
    let short = if has_others { text } else { text.trim_end_matches(['+', '-']) };
    short.len().max(1)
}

fn token_of(operator: &str) -> Token {
    match operator {
        "+" => Token::Plus,
        "-" => Token::Minus,
        "*" => Token::Mul,
        "/" => Token::Div,
        "<" => Token::Lt,
        ">" => Token::Gt,
        "=" => Token::Eq,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "<>" => Token::Neq,
        "=>" => Token::RArrow,
        other => Token::CustomBinaryOperator(other.to_owned()),
    }
}
