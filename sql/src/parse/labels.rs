//! Names that are keywords: those that need AS as the label of a column, and those behind a period.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Whether a keyword may be the label of a column without AS: PostgreSQL's `BARE_LABEL`. It takes ISNULL, which is none
/// either, for an operator before.
pub(super) fn may_be_bare(keyword: Keyword) -> bool {
    !matches!(
        keyword,
        Keyword::ARRAY
            | Keyword::AS
            | Keyword::CHAR
            | Keyword::CHARACTER
            | Keyword::CREATE
            | Keyword::DAY
            | Keyword::EXCEPT
            | Keyword::FETCH
            | Keyword::FILTER
            | Keyword::FOR
            | Keyword::FROM
            | Keyword::GRANT
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::HOUR
            | Keyword::INTERSECT
            | Keyword::INTO
            | Keyword::LIMIT
            | Keyword::MINUTE
            | Keyword::MONTH
            | Keyword::NOTNULL
            | Keyword::OFFSET
            | Keyword::ON
            | Keyword::ORDER
            | Keyword::OVER
            | Keyword::OVERLAPS
            | Keyword::PRECISION
            | Keyword::RETURNING
            | Keyword::SECOND
            | Keyword::TO
            | Keyword::UNION
            | Keyword::VARYING
            | Keyword::WHERE
            | Keyword::WINDOW
            | Keyword::WITH
            | Keyword::WITHIN
            | Keyword::WITHOUT
            | Keyword::YEAR
    )
}

/// Whether the parser takes a keyword behind a period for something else than a name: for a call, for a value, or for
/// the beginning of an expression.
pub(super) fn hides_name(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::ASYMMETRIC
            | Keyword::CURRENT_CATALOG
            | Keyword::CURRENT_DATE
            | Keyword::CURRENT_TIME
            | Keyword::CURRENT_TIMESTAMP
            | Keyword::CURRENT_USER
            | Keyword::FALSE
            | Keyword::INTERVAL
            | Keyword::LOCALTIME
            | Keyword::LOCALTIMESTAMP
            | Keyword::NULL
            | Keyword::SESSION_USER
            | Keyword::SYMMETRIC
            | Keyword::TRUE
            | Keyword::USER
            | Keyword::VARIADIC
    )
}

/// Makes such words behind a period plain names.
pub(super) fn with_plain_names(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut is_behind_period = false;
    for TokenWithSpan { token, .. } in &mut tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::Word(word) if is_behind_period && hides_name(word.keyword) => word.keyword = Keyword::NoKeyword,
            _ => {}
        }
        is_behind_period = *token == Token::Period;
    }
    tokens
}
