//! Drops ONLY before a table and `*` behind it. There are no tables that inherit from others, so neither has an effect.
//!
//! ONLY is reserved in PostgreSQL. A star is one of a table only where the name of a table is expected: in FROM, and
//! behind UPDATE, ALTER TABLE and TRUNCATE. The parser knows some of these forms, so all of them are dropped here. A
//! star behind ONLY and a name stays: it is a syntax error.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Drops the tokens that say whether inherited rows are meant.
pub(super) fn without_inheritance(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let dropped = dropped(&tokens);
    if dropped.is_empty() {
        return tokens;
    }
    let mut dropped = dropped.into_iter().peekable();
    let mut at = 0;
    tokens.retain(|_| {
        let is_dropped = dropped.next_if_eq(&at).is_some();
        at += 1;
        !is_dropped
    });
    tokens
}

/// The places of the tokens to drop, in their order.
fn dropped(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let (mut dropped, mut walk) = (Vec::new(), Walk::default());
    for (at, token) in solid(tokens, 0) {
        let is_only = matches!(token, Token::Word(word) if word.keyword == Keyword::ONLY);
        if is_only && walk.place == Place::BeforeTable {
            if let Some(parentheses) = around_name(tokens, at + 1) {
                dropped.push(at);
                dropped.extend(parentheses);
            }
            // What follows is the name. No star belongs to it.
            walk.place = Place::Elsewhere;
            continue;
        }
        if *token == Token::Mul && walk.place == Place::BehindName {
            dropped.push(at);
        }
        walk.step(token);
    }
    dropped
}

/// The tokens from a place on, without white space.
fn solid(tokens: &[TokenWithSpan], from: usize) -> impl Iterator<Item = (usize, &Token)> {
    let rest = tokens.iter().enumerate().skip(from).map(|(at, token)| (at, &token.token));
    rest.filter(|(_, token)| !matches!(token, Token::Whitespace(_)))
}

/// The parentheses of `(name)`. Empty for a name without them, `None` for anything else.
fn around_name(tokens: &[TokenWithSpan], from: usize) -> Option<Vec<usize>> {
    let mut rest = solid(tokens, from);
    let open = match rest.next()? {
        (_, Token::Word(_)) => return Some(Vec::new()),
        (open, Token::LParen) => open,
        _ => return None,
    };
    let mut wants_word = true;
    for (at, token) in rest {
        match token {
            Token::Word(_) if wants_word => wants_word = false,
            Token::Period if !wants_word => wants_word = true,
            Token::RParen if !wants_word => return Some(vec![open, at]),
            // The error is at the star.
            Token::Mul if !wants_word => return Some(vec![open]),
            _ => return None,
        }
    }
    None
}

/// Where a token is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Elsewhere,
    /// The name of a table may follow.
    BeforeTable,
    /// Behind the name of a table, as far as it goes.
    BehindName,
    /// Behind a period in such a name.
    BehindPeriod,
}

/// What is known at a level of parentheses.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Whether FROM is a clause, not a word between arguments.
    has_clauses: bool,
    /// Whether USING is a list of tables.
    is_deletion: bool,
    /// Whether a comma separates tables.
    is_list: bool,
}

/// The state behind some tokens.
#[derive(Default)]
struct Walk {
    place: Place,
    level: Level,
    outer: Vec<Level>,
    /// The last token; `None` at the beginning of a statement.
    last: Option<Keyword>,
}

impl Walk {
    fn step(&mut self, token: &Token) {
        let keyword = match token {
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let before = self.last.replace(keyword);
        match token {
            Token::Word(_) => self.place = self.behind_word(keyword, before),
            Token::Comma if self.level.is_list => self.place = Place::BeforeTable,
            Token::Period if self.place == Place::BehindName => self.place = Place::BehindPeriod,
            // Parentheses around a join.
            Token::LParen if self.place == Place::BeforeTable => {
                let inner = Level { has_clauses: true, ..Level::default() };
                self.outer.push(std::mem::replace(&mut self.level, inner));
            }
            Token::LParen => {
                self.outer.push(std::mem::take(&mut self.level));
                self.place = Place::Elsewhere;
            }
            Token::RParen => {
                self.level = self.outer.pop().unwrap_or_default();
                self.place = Place::Elsewhere;
            }
            Token::SemiColon => *self = Walk::default(),
            _ => self.place = Place::Elsewhere,
        }
    }

    fn behind_word(&mut self, keyword: Keyword, before: Option<Keyword>) -> Place {
        let level = &mut self.level;
        match keyword {
            Keyword::SELECT => *level = Level { has_clauses: true, ..Level::default() },
            Keyword::DELETE => level.has_clauses = true,
            Keyword::JOIN => return Place::BeforeTable,
            Keyword::UPDATE => {
                level.has_clauses = true;
                return Place::BeforeTable;
            }
            Keyword::FROM if level.has_clauses => {
                level.is_deletion |= before == Some(Keyword::DELETE);
                level.is_list = true;
                return Place::BeforeTable;
            }
            Keyword::USING if level.is_deletion => return Place::BeforeTable,
            Keyword::TABLE if before == Some(Keyword::ALTER) => return Place::BeforeTable,
            Keyword::TRUNCATE if before.is_none() => {
                level.is_list = true;
                return Place::BeforeTable;
            }
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::WINDOW
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
            | Keyword::FOR
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::RETURNING => level.is_list = false,
            Keyword::TABLE | Keyword::IF | Keyword::EXISTS if self.place == Place::BeforeTable => return self.place,
            _ if matches!(self.place, Place::BeforeTable | Place::BehindPeriod) => return Place::BehindName,
            _ => {}
        }
        Place::Elsewhere
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::dialect::CortadoDialect;

    fn rest(sql: &str) -> String {
        let tokens = Tokenizer::new(&CortadoDialect::for_tokenizer(), sql).tokenize_with_location().unwrap();
        let kept: Vec<String> = without_inheritance(tokens).iter().map(|token| token.token.to_string()).collect();
        let words = kept.concat().split_whitespace().collect::<Vec<_>>().join(" ");
        words.replace(" ,", ",").replace(" ;", ";")
    }

    #[test]
    fn only_and_stars_of_tables_are_dropped() {
        assert_eq!(rest("select * from only t, only s.u x"), "select * from t, s.u x");
        assert_eq!(
            rest("select 2 * 3 from t*, u * y join only (v) on true"),
            "select 2 * 3 from t, u y join v on true"
        );
        assert_eq!(rest("select * from (only t join u * on true)"), "select * from ( t join u on true)");
        assert_eq!(rest("update only t set a = a * 2 from u *"), "update t set a = a * 2 from u");
        assert_eq!(rest("update t * set a = 1"), "update t set a = 1");
        assert_eq!(rest("delete from only t using u *, only v"), "delete from t using u, v");
        assert_eq!(rest("alter table if exists t * add a int"), "alter table if exists t add a int");
        assert_eq!(rest("alter table only t add a int"), "alter table t add a int");
        assert_eq!(rest("truncate table only t, only (u), v *; table x"), "truncate table t, u, v; table x");
    }

    #[test]
    fn stars_behind_only_stay() {
        assert_eq!(rest("select * from only t *, u *"), "select * from t *, u");
        assert_eq!(rest("select * from only (s.t *)"), "select * from s.t *)");
        assert_eq!(rest("update only t * set a = 1"), "update t * set a = 1");
        assert_eq!(rest("truncate only (t) *, u *"), "truncate t *, u");
    }

    #[test]
    fn other_stars_and_words_stay() {
        for sql in [
            "select substring(a from b * 2), extract(day from c * 2) from t where a * 2 > 1 order by d, e * 2",
            "select 1 from f(a * 2, b) g fetch first row only",
            "start transaction read only",
            "alter table t alter b type int using b * 2",
            "insert into t values (1, 2 * 3) on conflict (a) do update set a = t.a * 2, b = c * 3",
            "select a.* from a join b using (c), lateral (select a.b * 2) d",
            "select count(*) from t where a in (select b * 2 from c)",
        ] {
            assert_eq!(rest(sql), sql);
        }
    }
}
