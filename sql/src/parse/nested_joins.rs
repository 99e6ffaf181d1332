//! Puts parentheses around joins that are nested without them: `a LEFT JOIN b JOIN c ON ... ON ...`.
//!
//! A join needs a condition, but for CROSS and NATURAL ones. So the joins between JOIN and its condition are its right
//! side: `a LEFT JOIN (b JOIN c ON ...) ON ...`. The parser would take them as joins with all that is before them.

use std::collections::BTreeMap;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::text::keyword;

/// Adds the parentheses.
pub(super) fn with_nested_joins(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut parentheses = parentheses(&tokens);
    if parentheses.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + parentheses.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let added = parentheses.remove(&at).map(|added| TokenWithSpan { token: added, span: token.span });
        out.extend(added);
        out.push(token);
    }
    out
}

/// A join whose condition has not come yet.
#[derive(Default)]
struct Open {
    /// Where its right side begins.
    right: usize,
    /// Whether there are joins in its right side.
    is_nested: bool,
}

/// The parentheses to add, with the places of the tokens that they precede.
fn parentheses(tokens: &[TokenWithSpan]) -> BTreeMap<usize, Token> {
    let mut added = BTreeMap::new();
    // The joins of each level of parentheses.
    let mut levels: Vec<Vec<Open>> = vec![Vec::new()];
    let (mut is_bare, mut begins, mut is_behind_dot) = (false, false, false);
    for (at, TokenWithSpan { token, .. }) in tokens.iter().enumerate() {
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        let depth = levels.len();
        let Some(joins) = levels.last_mut() else { break };
        if std::mem::take(&mut begins) {
            joins.last_mut().into_iter().for_each(|join| join.right = at);
        }
        // Behind a dot any word is a name.
        let word = if std::mem::take(&mut is_behind_dot) { Keyword::NoKeyword } else { keyword(token) };
        is_behind_dot = *token == Token::Period;
        match (token, word) {
            (Token::LParen, _) => levels.push(Vec::new()),
            (Token::RParen, _) if depth > 1 => drop(levels.pop()),
            (Token::SemiColon, _) => levels = vec![Vec::new()],
            (_, Keyword::CROSS | Keyword::NATURAL) => is_bare = true,
            (_, Keyword::JOIN) => {
                joins.last_mut().into_iter().for_each(|join| join.is_nested = true);
                begins = !std::mem::take(&mut is_bare);
                joins.extend(begins.then(Open::default));
            }
            (_, Keyword::ON | Keyword::USING) => {
                if let Some(join) = joins.pop_if(|join| join.right > 0).filter(|join| join.is_nested) {
                    added.insert(join.right, Token::LParen);
                    added.insert(at, Token::RParen);
                }
            }
            (token, word) if *token == Token::Comma || ends_from(word) => joins.clear(),
            _ => {}
        }
    }
    added
}

/// Whether FROM ends with a word, or a new one begins.
fn ends_from(word: Keyword) -> bool {
    use Keyword::{EXCEPT, FETCH, FOR, FROM, GROUP, HAVING, INTERSECT, LIMIT, OFFSET, ORDER, RETURNING, SELECT, SET};
    use Keyword::{UNION, WHERE, WINDOW};
    let ends = [EXCEPT, FETCH, FOR, FROM, GROUP, HAVING, INTERSECT, LIMIT, OFFSET, ORDER, RETURNING, SELECT, SET];
    ends.contains(&word) || [UNION, WHERE, WINDOW].contains(&word)
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::dialect::CortadoDialect;

    fn nested(sql: &str) -> String {
        let tokens = Tokenizer::new(&CortadoDialect::for_tokenizer(), sql).tokenize_with_location().unwrap();
        with_nested_joins(tokens).iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn joins_before_a_condition_are_its_right_side() {
        for (sql, wanted) in [
            ("from a left join b join c on x on y", "from a left join (b join c on x )on y"),
            ("from a join b natural join c using (d)", "from a join (b natural join c )using (d)"),
            ("from a join b cross join c on x", "from a join (b cross join c )on x"),
            ("from a join b join c join d on x on y on z", "from a join (b join (c join d on x )on y )on z"),
            ("from a join b join c on x join d on y on z", "from a join (b join c on x join d on y )on z"),
            ("from e, a join b join c on x on y, f join g on z", "from e, a join (b join c on x )on y, f join g on z"),
        ] {
            assert_eq!(nested(sql), wanted);
        }
    }

    #[test]
    fn other_joins_stay() {
        for sql in [
            "from a join b on x join c using (y) natural join d cross join e left join f on z",
            "from a join (select 1 from b join c on x) d on y",
            "from a cross join b join c on x",
            "from a join b join c on x",
            "from a natural join b join c on x where d; create index on e (f)",
        ] {
            assert_eq!(nested(sql), sql);
        }
    }
}
