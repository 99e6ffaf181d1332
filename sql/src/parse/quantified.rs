//! ANY, ALL and SOME behind operators with which the parser does not know them: LIKE, `@>`, `OPERATOR(...)`.
//!
//! The parser gets `~` instead, with which it knows them. A word that no text of a client contains follows the
//! parenthesis and says what the operator is. The operand becomes a prefix node of that word ([`operator`]).

use sqlparser::ast::{Expr, Ident, UnaryOperator};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use super::normalize::is_distinct;
use super::precedence;
use super::text::word;

/// What the word begins with. The parts of the operator's name follow.
const MARK: &str = "\0op";
/// What stands before each part.
const SEPARATOR: char = '\0';
/// The only schema of operators.
const SCHEMA: &str = "pg_catalog";

/// An operator behind which the parser does not know ANY and ALL.
pub(crate) struct Operator<'e> {
    /// Its name; `None` if it is one of a schema that has no operators.
    pub(crate) symbol: Option<&'e str>,
    /// Where it stands.
    pub(crate) at: Location,
    /// The operand in parentheses.
    pub(crate) operand: &'e Expr,
}

/// The operator that the right operand of ANY or ALL says; `None` if the tree says it.
pub(crate) fn operator(right: &Expr) -> Option<Operator<'_>> {
    let Expr::Prefixed { prefix, value } = right else { return None };
    let name = prefix.value.strip_prefix(MARK)?;
    let name = name.strip_prefix(SEPARATOR)?;
    let symbol = match name.split_once(SEPARATOR) {
        Some((schema, symbol)) => Some(symbol).filter(|_| schema == SCHEMA),
        None => Some(name),
    };
    Some(Operator { symbol, at: prefix.span.start, operand: value })
}

/// The text of an expression, with the operators that it was written with.
pub(crate) fn text_of(expr: &Expr) -> String {
    let shown = expr.to_string();
    let start = format!("\"{MARK}{SEPARATOR}");
    let mut parts = shown.split(start.as_str());
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `a ~ ANY(` is before the word, the operand behind it.
        let Some((name, operand)) = part.split_once("\" ") else { return shown };
        let symbol = name.rsplit(SEPARATOR).next().unwrap_or(name);
        let Some(place) = out.rfind("~ ") else { return shown };
        out.replace_range(place..=place, symbol);
        out.push_str(operand);
    }
    out
}

/// Whether a word stands for an operator.
pub(super) fn is_mark(word: &Word) -> bool {
    word.quote_style.is_some() && word.value.starts_with(MARK)
}

/// Parses the word and the operand.
pub(super) fn operand(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let token = parser.next_token();
    let Token::Word(mark) = token.token else { return parser.expected("an operand", token) };
    let prefix = Ident { value: mark.value, quote_style: mark.quote_style, span: token.span };
    let is_query = match &parser.peek_token_ref().token {
        Token::Word(word) => matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES),
        _ => false,
    };
    let value = match is_query {
        true => Expr::Subquery(parser.parse_query()?),
        false => parser.parse_expr()?,
    };
    Ok(Expr::Prefixed { prefix, value: Box::new(value) })
}

/// Rewrites these operators before ANY, ALL and SOME.
pub(super) fn with_quantified(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 2);
    let mut mark = None;
    let mut rest = tokens.into_iter().peekable();
    while let Some(found) = rest.next() {
        if matches!(found.token, Token::Whitespace(_)) {
            continue;
        }
        let is_quantifier =
            matches!(&found.token, Token::Word(w) if matches!(w.keyword, Keyword::ANY | Keyword::ALL | Keyword::SOME));
        while rest.next_if(|next| matches!(next.token, Token::Whitespace(_))).is_some() {}
        if is_quantifier
            && rest.peek().is_some_and(|next| next.token == Token::LParen)
            && let Some((start, name)) = operator_at_end(&out)
        {
            let span = Span { start: out[start].span.start, end: out[out.len() - 1].span.end };
            out.truncate(start);
            out.push(TokenWithSpan { token: Token::Tilde, span });
            let word = Word { value: name, quote_style: Some('"'), keyword: Keyword::NoKeyword };
            mark = Some(TokenWithSpan { token: Token::Word(word), span });
        }
        let opens = found.token == Token::LParen;
        out.push(found);
        if opens {
            out.extend(mark.take());
        }
    }
    out
}

/// The place and the word of the operator that tokens end with; `None` if there is none, or one that the parser knows.
fn operator_at_end(tokens: &[TokenWithSpan]) -> Option<(usize, String)> {
    let last = tokens.len().checked_sub(1)?;
    let is = |at: usize, keyword| matches!(&tokens[at].token, Token::Word(word) if word.keyword == keyword);
    let marked = |name: &str| format!("{MARK}{SEPARATOR}{name}");
    match &tokens[last].token {
        Token::Word(word) => {
            let is_negated = last > 0 && is(last - 1, Keyword::NOT);
            let name = match (word.keyword, is_negated) {
                (Keyword::LIKE, false) => "~~",
                (Keyword::LIKE, true) => "!~~",
                (Keyword::ILIKE, false) => "~~*",
                (Keyword::ILIKE, true) => "!~~*",
                _ => return None,
            };
            Some((last - usize::from(is_negated), marked(name)))
        }
        Token::RParen => {
            let mut at = last.checked_sub(1)?;
            let mut name = symbol(&tokens[at].token)?;
            while at >= 2 && tokens[at - 1].token == Token::Period {
                name = format!("{}{SEPARATOR}{name}", folded(&tokens[at - 2].token)?);
                at -= 2;
            }
            let start = at.checked_sub(2)?;
            (tokens[at - 1].token == Token::LParen && is(start, Keyword::OPERATOR)).then(|| (start, marked(&name)))
        }
        token if precedence::of_symbol(token) == precedence::OPERATOR && !is_known(token) => {
            Some((last, marked(&symbol(token)?)))
        }
        _ => None,
    }
}

/// Whether the parser knows ANY and ALL behind an operator.
fn is_known(token: &Token) -> bool {
    matches!(
        token,
        Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
    )
}

/// The name of an operator.
fn symbol(token: &Token) -> Option<String> {
    match token {
        Token::CustomBinaryOperator(name) if is_distinct(name).is_some() => None,
        Token::CustomBinaryOperator(name) => Some(name.clone()),
        token if precedence::of_symbol(token) == precedence::NONE => None,
        token => Some(token.to_string()).filter(|name| name.bytes().all(|byte| byte.is_ascii_punctuation())),
    }
}

/// A name as PostgreSQL folds it.
fn folded(token: &Token) -> Option<String> {
    match token {
        Token::Word(found) if found.quote_style.is_some() => Some(found.value.clone()),
        token => word(token).map(str::to_ascii_lowercase),
    }
}

/// Parses `OPERATOR(pg_catalog.-) operand`; `None` if it is not that.
pub(super) fn prefix_operator(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let token = |at| &parser.peek_nth_token_ref(at).token;
    if *token(1) != Token::LParen {
        return None;
    }
    let has_schema = *token(3) == Token::Period && folded(token(2)).as_deref() == Some(SCHEMA);
    let at = if has_schema { 4 } else { 2 };
    let op = match token(at) {
        Token::Minus => UnaryOperator::Minus,
        Token::Plus => UnaryOperator::Plus,
        Token::Tilde => UnaryOperator::BitwiseNot,
        Token::AtSign => UnaryOperator::PGAbs,
        Token::PGSquareRoot => UnaryOperator::PGSquareRoot,
        Token::PGCubeRoot => UnaryOperator::PGCubeRoot,
        _ => return None,
    };
    if *token(at + 1) != Token::RParen {
        return None;
    }
    (0..at + 2).for_each(|_| parser.advance_token());
    let operand = parser.parse_subexpr(precedence::OPERATOR);
    Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
}
