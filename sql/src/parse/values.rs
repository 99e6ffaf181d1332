//! `= ANY (VALUES ...)`, where the parser knows SELECT alone: VALUES becomes an item of FROM.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::text::keyword;

/// The alias of the item. No text of a client contains it.
const ALIAS: &str = "\0values";

/// Puts SELECT before VALUES behind ANY, SOME and ALL. Not in CREATE VIEW: the view's text is cut at the places of its
/// stars.
pub(super) fn with_values(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    // The last tokens, and whether each open parenthesis has got another one in it.
    let (mut last, mut open): ([Token; 3], Vec<bool>) =
        ([Token::SemiColon, Token::SemiColon, Token::SemiColon], Vec::new());
    let mut is_create = false;
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            out.push(token);
            continue;
        }
        let span = token.span;
        let made = |token| TokenWithSpan { token, span };
        if last[2] == Token::SemiColon {
            is_create = keyword(&token.token) == Keyword::CREATE;
        }
        match &token.token {
            Token::LParen => open.push(false),
            Token::RParen if open.pop() == Some(true) => {
                let alias = Word { value: ALIAS.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
                out.extend([Token::RParen, Token::Word(alias)].map(made));
            }
            Token::SemiColon => open.clear(),
            found if keyword(found) == Keyword::VALUES && !is_create && is_behind_any(&last) => {
                let select = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM"), Token::LParen];
                out.extend(select.map(made));
                if let Some(is_closed_twice) = open.last_mut() {
                    *is_closed_twice = true;
                }
            }
            _ => {}
        }
        last.rotate_left(1);
        last[2] = token.token.clone();
        out.push(token);
    }
    out
}

/// Whether the last tokens are an operator, ANY and a parenthesis. UNION ALL is no such ALL.
fn is_behind_any([operator, any, parenthesis]: &[Token; 3]) -> bool {
    let is_any = matches!(keyword(any), Keyword::ANY | Keyword::SOME | Keyword::ALL);
    *parenthesis == Token::LParen && is_any && !matches!(operator, Token::Word(_))
}
