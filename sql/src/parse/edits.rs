//! Which edits of tokens a query string needs. One walk finds that, so a plain statement pays for no other.
//!
//! An edit that is needed in vain costs time only: each looks again.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::labels::hides_name;
use super::operators::may_be_operator;
use super::text::{is_comparison, keyword, string_of};

/// An edit of tokens, or a check of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// ISNULL.
    IsNull,
    /// Operators of several tokens.
    Operators,
    /// What else `normalize` does.
    Normalize,
    /// The precision of float.
    Floats,
    /// ROWS FROM.
    Rows,
    /// ALL and DISTINCT behind GROUP BY.
    GroupWords,
    /// Joins inside joins, without parentheses.
    NestedJoins,
    /// TABLE as a query.
    Tables,
    /// ONLY, and a star behind a name.
    Inheritance,
    /// Subscripts of assigned columns.
    Targets,
    /// Stars that are values.
    Stars,
    /// VALUES behind ANY.
    Values,
    /// SUBSTRING with SIMILAR.
    Substrings,
    /// SELECT without a list.
    EmptyLists,
    /// Several names behind FOR UPDATE OF.
    LockLists,
    /// FOR NO KEY UPDATE and FOR KEY SHARE.
    KeyLocks,
    /// LIMIT behind FOR UPDATE.
    LateLimits,
    /// ANY and ALL behind operators that the parser does not know them with.
    Quantified,
    /// Names behind a period that are keywords.
    FieldNames,
    /// The options of a key: INCLUDE and WITH.
    KeyOptions,
    /// What `rewrite` does statement by statement.
    Statements,
}

/// A set of edits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edits(u32);

impl Edits {
    /// Whether an edit is one of them.
    pub(super) fn has(self, edit: Edit) -> bool {
        self.0 & (1 << edit as u32) != 0
    }

    fn add(&mut self, edit: Edit) {
        self.0 |= 1 << edit as u32;
    }

    fn add_if(&mut self, edit: Edit, is_needed: bool) {
        if is_needed {
            self.add(edit);
        }
    }
}

/// The edits that tokens need.
pub(super) fn needed(tokens: &[TokenWithSpan]) -> Edits {
    let mut edits = Edits::default();
    // The last token, and whether the next one follows at once.
    let (mut before, mut touches) = (&Token::SemiColon, false);
    let mut clauses = Clauses::default();
    for TokenWithSpan { token, .. } in tokens {
        if matches!(token, Token::Whitespace(_)) {
            touches = false;
            continue;
        }
        note(&mut edits, (before, touches), token);
        clauses.note(&mut edits, before, token);
        (before, touches) = (token, true);
    }
    edits.add_if(Edit::EmptyLists, keyword(before) == Keyword::SELECT);
    edits
}

/// What precedes a token at a distance.
#[derive(Default)]
struct Clauses {
    /// Whether there is a locking clause.
    locks: bool,
    /// Whether there is a join whose condition has not come yet.
    joins: bool,
    /// The parentheses since the last INSERT; 0 without one.
    parentheses: usize,
}

impl Clauses {
    fn note(&mut self, edits: &mut Edits, before: &Token, token: &Token) {
        match keyword(token) {
            Keyword::UPDATE | Keyword::SHARE => self.locks |= matches!(keyword(before), Keyword::FOR | Keyword::KEY),
            Keyword::OF => edits.add_if(Edit::LockLists, self.locks),
            Keyword::LIMIT | Keyword::OFFSET | Keyword::FETCH => edits.add_if(Edit::LateLimits, self.locks),
            Keyword::INSERT => self.parentheses = 1,
            Keyword::JOIN => {
                edits.add_if(Edit::NestedJoins, self.joins);
                self.joins |= !matches!(keyword(before), Keyword::CROSS | Keyword::NATURAL);
            }
            Keyword::ON | Keyword::USING => self.joins = false,
            _ => {}
        }
        // A source of INSERT in parentheses.
        if self.parentheses == 2 {
            let begins = matches!(keyword(token), Keyword::WITH | Keyword::VALUES) || *token == Token::LParen;
            edits.add_if(Edit::Statements, begins);
        }
        self.parentheses += usize::from(self.parentheses == 2 || self.parentheses == 1 && *token == Token::LParen);
    }
}

/// Notes what a token needs behind another one.
fn note(edits: &mut Edits, (before, touches): (&Token, bool), token: &Token) {
    match token {
        Token::Word(word) => note_word(edits, (before, touches), word),
        Token::Comma | Token::LParen | Token::Period => {}
        Token::SemiColon | Token::RParen => edits.add_if(Edit::EmptyLists, keyword(before) == Keyword::SELECT),
        Token::LBracket => edits.add(Edit::Targets),
        Token::Number(digits, is_long) => {
            edits.add_if(Edit::Normalize, *is_long || digits.contains('_'));
        }
        // `$1` is one.
        Token::Placeholder(name) => {
            let is_number = name.strip_prefix('$').is_none_or(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
            edits.add_if(Edit::Normalize, !is_number);
        }
        Token::DoubleEq | Token::HexStringLiteral(_) => edits.add(Edit::Normalize),
        token if string_of(token).is_some() => {
            let continues = match before {
                Token::DollarQuotedString(_) | Token::Number(..) | Token::Placeholder(_) => true,
                before => string_of(before).is_some() || keyword(before) == Keyword::AS,
            };
            edits.add_if(Edit::Normalize, continues);
        }
        _ => {}
    }
    if may_be_operator(token) {
        edits.add_if(Edit::Operators, touches && may_be_operator(before));
        edits.add_if(Edit::Normalize, keyword(before) == Keyword::USING);
        let is_behind_name = matches!(before, Token::Word(word) if word.keyword != Keyword::SELECT);
        edits.add_if(Edit::Inheritance, *token == Token::Mul && is_behind_name);
        edits.add_if(Edit::Stars, *token == Token::Mul && *before == Token::Period);
    }
}

fn note_word(edits: &mut Edits, (before, touches): (&Token, bool), word: &Word) {
    if word.quote_style.is_some() {
        // `U&"name"`, and `""`.
        let is_unicode = touches && *before == Token::Ampersand;
        return edits.add_if(Edit::Normalize, is_unicode || word.value.is_empty());
    }
    edits.add_if(Edit::Normalize, touches && matches!(before, Token::Number(..)));
    let last = keyword(before);
    edits.add_if(Edit::FieldNames, *before == Token::Period && hides_name(word.keyword));
    match word.keyword {
        Keyword::NoKeyword => {
            edits.add_if(Edit::IsNull, word.value.eq_ignore_ascii_case("isnull"));
            let is_statement = |text: &&str| word.value.eq_ignore_ascii_case(text);
            edits.add_if(Edit::Statements, ["overriding", "analyse"].iter().any(is_statement));
        }
        Keyword::VIEW | Keyword::UESCAPE => edits.add(Edit::Normalize),
        Keyword::DISTINCT => {
            edits.add_if(Edit::Normalize, matches!(last, Keyword::IS | Keyword::NOT));
            edits.add_if(Edit::GroupWords, last == Keyword::BY);
        }
        Keyword::OPERATOR => edits.add_if(Edit::Normalize, last == Keyword::USING),
        Keyword::ANY | Keyword::ALL | Keyword::SOME => {
            let is_like = matches!(last, Keyword::LIKE | Keyword::ILIKE);
            let is_operator = may_be_operator(before) && !is_comparison(before);
            edits.add_if(Edit::Quantified, is_like || is_operator || *before == Token::RParen);
            edits.add_if(Edit::GroupWords, last == Keyword::BY);
        }
        Keyword::FROM => edits.add_if(Edit::Statements, *before == Token::LParen),
        Keyword::FLOAT => edits.add(Edit::Floats),
        Keyword::ROWS => edits.add(Edit::Rows),
        Keyword::TABLE => edits.add(Edit::Tables),
        Keyword::ONLY => {
            edits.add(Edit::Inheritance);
            edits.add(Edit::Statements);
        }
        Keyword::VALUES => edits.add_if(Edit::Values, *before == Token::LParen),
        Keyword::SIMILAR => edits.add(Edit::Substrings),
        Keyword::KEY => edits.add_if(Edit::KeyLocks, matches!(last, Keyword::FOR | Keyword::NO)),
        Keyword::INCLUDE => edits.add(Edit::KeyOptions),
        Keyword::WITH => edits.add_if(Edit::KeyOptions, *before == Token::RParen),
        Keyword::VACUUM
        | Keyword::ANALYZE
        | Keyword::ABORT
        | Keyword::DEFERRABLE
        | Keyword::LEADING
        | Keyword::TRAILING
        | Keyword::BOTH
        | Keyword::UNLOGGED
        | Keyword::CONCURRENTLY
        | Keyword::CREATE
        | Keyword::COMMENT
        | Keyword::ALTER => edits.add(Edit::Statements),
        Keyword::WHERE
        | Keyword::GROUP
        | Keyword::HAVING
        | Keyword::ORDER
        | Keyword::LIMIT
        | Keyword::OFFSET
        | Keyword::FETCH
        | Keyword::FOR
        | Keyword::UNION
        | Keyword::INTERSECT
        | Keyword::EXCEPT => edits.add_if(Edit::EmptyLists, last == Keyword::SELECT),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::dialect::CortadoDialect;

    fn of(sql: &str) -> Edits {
        needed(&Tokenizer::new(&CortadoDialect::for_tokenizer(), sql).tokenize_with_location().unwrap())
    }

    #[test]
    fn plain_statements_need_none() {
        for sql in [
            "SELECT c FROM sbtest1 WHERE id=$1",
            "select distinct c from t where id between $1 and $2 order by c",
            "select count(*), sum(k) from t join u using (a) where b='x' and c<=$3 and d::int > 2",
            "update t set k=k+1, c=$2 where id=$1",
            "insert into t (a, b) values ($1, 'x') on conflict (a) do update set b = excluded.b returning a",
            "select * from t where a is not null limit 10 for update",
            "select a from t where id = any ($1) and b in (select (c) from u limit 1)",
            "begin; delete from t where a = 'x'; commit",
        ] {
            assert_eq!(of(sql), Edits::default(), "{sql}");
        }
    }

    #[test]
    fn each_edit_is_found() {
        for (sql, edit) in [
            ("select a isnull", Edit::IsNull),
            ("select 7%-2", Edit::Operators),
            ("select a is not distinct from b", Edit::Normalize),
            ("select 'a'\n'b'", Edit::Normalize),
            ("select U&\"a\"", Edit::Normalize),
            ("select a from t order by a using <", Edit::Normalize),
            ("select 1::float(3)", Edit::Floats),
            ("select * from rows from (f())", Edit::Rows),
            ("table t", Edit::Tables),
            ("select a from t group by all a", Edit::GroupWords),
            ("select * from a join b join c on d on e", Edit::NestedJoins),
            ("select * from only t", Edit::Inheritance),
            ("select * from t *", Edit::Inheritance),
            ("update t set a[1] = 2", Edit::Targets),
            ("select substring(a similar b escape c)", Edit::Substrings),
            ("select", Edit::EmptyLists),
            ("select; select 1", Edit::EmptyLists),
            ("select where true", Edit::EmptyLists),
            ("select 1 for no key update", Edit::KeyLocks),
            ("select 1 for update of t skip locked limit 1", Edit::LateLimits),
            ("select a like any (b)", Edit::Quantified),
            ("select a @> all (b)", Edit::Quantified),
            ("select a operator(pg_catalog.=) some (b)", Edit::Quantified),
            ("select u . user", Edit::FieldNames),
            ("select \"\"", Edit::Normalize),
            ("select $1a", Edit::Normalize),
            ("select trim(from a)", Edit::Statements),
            ("insert into t (values (1))", Edit::Statements),
            ("create table t (a int, unique (a) with (fillfactor = 70))", Edit::KeyOptions),
            ("create table t (a int)", Edit::Statements),
        ] {
            assert!(of(sql).has(edit), "{sql}");
        }
    }
}
