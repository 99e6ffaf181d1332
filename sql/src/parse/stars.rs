//! Marks the stars that are values: `count(t.*)`, `t.*::text`, `(row).*`.
//!
//! The parser takes `t.*` at the start of a select item for all of it, and knows `(row).*` nowhere. A name takes the
//! place of such a star, which is a field like any other to the parser. A star that is an item of a select list stays.

use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::text::is_comparison;

/// The name that stands for the star. No text of a client contains it.
const STAR: &str = "\0star";

/// Whether a name stands for a star.
pub(crate) fn is_star(ident: &Ident) -> bool {
    ident.value == STAR
}

/// An open parenthesis.
#[derive(Clone, Copy)]
struct Open {
    /// Whether a query follows.
    is_query: bool,
    /// Whether it is that of a call: a name is before it.
    is_call: bool,
}

/// Puts a name in the place of each star that is a value.
pub(super) fn with_stars(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let solid: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let mut stars: Vec<usize> = Vec::new();
    let (mut open, mut closed): (Vec<Open>, Option<Open>) = (Vec::new(), None);
    let token = |place: usize| solid.get(place).map(|at| &tokens[*at].token);
    let before = |place: usize, by: usize| place.checked_sub(by).and_then(token);
    for place in 0..solid.len() {
        match token(place) {
            Some(Token::LParen) => {
                let is_call = before(place, 1).is_some_and(ends_name);
                open.push(Open { is_query: token(place + 1).is_some_and(begins_query), is_call });
            }
            Some(Token::RParen) => closed = open.pop(),
            Some(Token::SemiColon) => open.clear(),
            Some(Token::Mul) if before(place, 1) == Some(&Token::Period) => {
                let is_value = match before(place, 2) {
                    Some(Token::RParen) => closed.is_some_and(|closed| !closed.is_call),
                    Some(Token::Word(_)) => {
                        let in_expression = open.last().is_some_and(|open| !open.is_query);
                        in_expression || token(place + 1).is_some_and(continues)
                    }
                    _ => false,
                };
                if is_value {
                    stars.extend(solid.get(place));
                }
            }
            _ => {}
        }
    }
    for at in stars {
        let name = Word { value: STAR.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        tokens[at].token = Token::Word(name);
    }
    tokens
}

fn begins_query(token: &Token) -> bool {
    use Keyword::{DELETE, INSERT, SELECT, UPDATE, VALUES, WITH};
    matches!(token, Token::Word(word) if [SELECT, WITH, VALUES, INSERT, UPDATE, DELETE].contains(&word.keyword))
}

/// Whether a parenthesis behind it is that of a call.
fn ends_name(token: &Token) -> bool {
    use Keyword::{ALL, DISTINCT, RETURNING, SELECT};
    matches!(token, Token::Word(word) if ![SELECT, DISTINCT, ALL, RETURNING].contains(&word.keyword))
}

/// Whether an expression goes on with it.
fn continues(token: &Token) -> bool {
    match token {
        // IS DISTINCT FROM is one, too.
        Token::DoubleColon | Token::CustomBinaryOperator(_) => true,
        Token::Word(word) => {
            matches!(word.keyword, Keyword::IS | Keyword::IN | Keyword::NOT | Keyword::BETWEEN)
        }
        token => is_comparison(token),
    }
}
