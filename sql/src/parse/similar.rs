//! `SUBSTRING(s SIMILAR p ESCAPE e)` becomes `SUBSTRING(s FROM p FOR e)`, which calls the same function. The parser
//! knows only the latter.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A level of parentheses.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Whether it holds the arguments of SUBSTRING.
    is_substring: bool,
    /// The place of SIMILAR, until ESCAPE follows.
    similar: Option<usize>,
}

/// Rewrites the form of SUBSTRING with SIMILAR.
pub(super) fn with_substrings(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let keyword = |token: &Token| match token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let (mut level, mut outer, mut last) = (Level::default(), Vec::new(), Keyword::NoKeyword);
    for at in 0..tokens.len() {
        let token = &tokens[at].token;
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        let before = std::mem::replace(&mut last, keyword(token));
        match (token, last) {
            (Token::LParen, _) => {
                let inner = Level { is_substring: before == Keyword::SUBSTRING, similar: None };
                outer.push(std::mem::replace(&mut level, inner));
            }
            (Token::RParen, _) => level = outer.pop().unwrap_or_default(),
            (Token::SemiColon, _) => {
                level = Level::default();
                outer.clear();
            }
            (_, Keyword::SIMILAR) if level.is_substring => level.similar = Some(at),
            // `a SIMILAR TO b`
            (_, Keyword::TO) if before == Keyword::SIMILAR => level.similar = None,
            (_, Keyword::ESCAPE) => {
                if let Some(similar) = level.similar.take() {
                    tokens[similar].token = Token::make_keyword("FROM");
                    tokens[at].token = Token::make_keyword("FOR");
                }
            }
            _ => {}
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::dialect::CortadoDialect;

    #[test]
    fn similar_in_substring_is_rewritten() {
        let shown = |sql: &str| {
            let tokens = Tokenizer::new(&CortadoDialect::for_tokenizer(), sql).tokenize_with_location().unwrap();
            let tokens: Vec<String> = with_substrings(tokens).iter().map(|token| token.token.to_string()).collect();
            tokens.concat()
        };
        assert_eq!(shown("select substring(f(a) similar (b) escape '#')"), "select substring(f(a) FROM (b) FOR '#')");
        for sql in [
            "select a similar to b escape '#'",
            "select substring(a from (b similar to c escape '#')::text)",
            "select substring(a similar to b escape '#')",
        ] {
            assert_eq!(shown(sql), sql);
        }
    }
}
