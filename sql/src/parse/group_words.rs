//! Drops ALL and DISTINCT behind GROUP BY, which the parser does not know there. They tell what becomes of equal
//! grouping sets, and there are none.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::keyword;

/// Drops these words.
pub(super) fn without_group_words(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut before = [Keyword::NoKeyword; 2];
    tokens.retain(|found| {
        if matches!(found.token, Token::Whitespace(_)) {
            return true;
        }
        let word = keyword(&found.token);
        let is_dropped = before == [Keyword::GROUP, Keyword::BY] && matches!(word, Keyword::ALL | Keyword::DISTINCT);
        before = [before[1], word];
        !is_dropped
    });
    tokens
}
