//! Subscripts of the columns that a statement assigns: `SET a[2] = x`, `INSERT INTO t (a[1:2])`.
//!
//! The parser takes names alone there, whose parts may be calls. So `a[2]` becomes `a.element(2)`, and `a[1:]` becomes
//! `a.slice(1, omitted)`, under names that no text of a client contains.

use sqlparser::ast::{Expr, ObjectNamePart, ObjectNamePartFunction};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

const ELEMENT: &str = "\0element";
const SLICE: &str = "\0slice";
const OMITTED: &str = "\0omitted";

/// Whether a part of a name stands for subscripts.
pub(super) fn is_subscript(name: &str) -> bool {
    name == ELEMENT || name == SLICE
}

/// The subscript that a part of a name stands for, and whether it is a slice.
pub(crate) fn subscript(part: &ObjectNamePart) -> Option<(&ObjectNamePartFunction, bool)> {
    match part {
        ObjectNamePart::Function(call) if is_subscript(&call.name.value) => Some((call, call.name.value == SLICE)),
        _ => None,
    }
}

/// Whether an expression stands for a bound that is left out.
pub(crate) fn is_omitted(bound: &Expr) -> bool {
    matches!(bound, Expr::Identifier(ident) if ident.value == OMITTED)
}

/// Rewrites the subscripts of assigned columns.
pub(super) fn with_targets(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut rewriter = Rewriter { out: Vec::with_capacity(tokens.len() + 16), ..Rewriter::default() };
    tokens.into_iter().for_each(|token| rewriter.add(token));
    rewriter.out
}

/// What may follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Anything,
    /// The table of INSERT, then its columns.
    Table,
    /// A column, or a list of some.
    Target,
    /// A subscript of a column.
    Subscript,
    /// A subscript of the column `values`, or a row of the clause.
    SubscriptOrRow,
}

impl Expect {
    fn may_be_subscript(self) -> bool {
        matches!(self, Expect::Subscript | Expect::SubscriptOrRow)
    }
}

/// What is known at a level of parentheses or brackets.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    expect: Expect,
    /// Whether SET is that of UPDATE.
    is_update: bool,
    /// Whether INTO is that of INSERT.
    is_insert: bool,
    /// Whether a comma separates columns that are assigned.
    has_targets: bool,
    /// The subscript that the level is.
    subscript: Option<Subscript>,
}

/// A subscript under construction.
#[derive(Clone, Copy, Debug)]
struct Subscript {
    /// The place of its name.
    name: usize,
    is_slice: bool,
    /// Whether there is something behind the bracket, or behind the colon.
    has_bound: bool,
}

#[derive(Default)]
struct Rewriter {
    out: Vec<TokenWithSpan>,
    level: Level,
    outer: Vec<Level>,
}

impl Rewriter {
    fn add(&mut self, token: TokenWithSpan) {
        let TokenWithSpan { token, span } = token;
        match (&token, self.level.subscript) {
            (Token::Whitespace(_), _) => return self.push(token, span),
            (Token::LBracket, _) if self.level.expect.may_be_subscript() => return self.open(span),
            (Token::RBracket, Some(subscript)) => return self.close(subscript, span),
            (Token::Colon, Some(subscript)) => {
                self.bound(subscript, span);
                self.level.subscript = Some(Subscript { is_slice: true, has_bound: false, ..subscript });
                return self.push(Token::Comma, span);
            }
            (_, Some(subscript)) => self.level.subscript = Some(Subscript { has_bound: true, ..subscript }),
            _ => {}
        }
        match &token {
            Token::Word(word) => self.word(word.keyword),
            Token::Comma => {
                self.level.expect = if self.level.has_targets { Expect::Target } else { Expect::Anything };
            }
            Token::Period if self.level.expect == Expect::Table => {}
            Token::LParen if matches!(self.level.expect, Expect::Target | Expect::Table) => {
                let list = Level { expect: Expect::Target, has_targets: true, ..Level::default() };
                self.outer.push(std::mem::replace(&mut self.level, list));
            }
            Token::LParen | Token::LBracket => {
                // The other rows of VALUES are no targets either.
                self.level.has_targets &= self.level.expect != Expect::SubscriptOrRow;
                self.outer.push(std::mem::take(&mut self.level));
            }
            Token::RParen | Token::RBracket => {
                self.level = Level { expect: Expect::Anything, ..self.outer.pop().unwrap_or_default() };
            }
            Token::SemiColon => (self.level, self.outer) = (Level::default(), Vec::new()),
            _ => self.level.expect = Expect::Anything,
        }
        self.push(token, span);
    }

    fn word(&mut self, keyword: Keyword) {
        let level = &mut self.level;
        let expect = std::mem::take(&mut level.expect);
        match keyword {
            Keyword::UPDATE => level.is_update = true,
            Keyword::INSERT => level.is_insert = true,
            Keyword::INTO if level.is_insert => level.expect = Expect::Table,
            Keyword::SET if level.is_update => (level.expect, level.has_targets) = (Expect::Target, true),
            Keyword::VALUES if expect == Expect::Target => level.expect = Expect::SubscriptOrRow,
            // In an expression of SET it is a column.
            Keyword::VALUES => level.has_targets &= level.is_update,
            Keyword::SELECT | Keyword::WITH | Keyword::FROM | Keyword::WHERE | Keyword::RETURNING => {
                level.has_targets = false;
            }
            _ if expect == Expect::Table => level.expect = Expect::Table,
            _ if expect == Expect::Target => level.expect = Expect::Subscript,
            _ => {}
        }
    }

    /// Begins a subscript.
    fn open(&mut self, span: Span) {
        self.push(Token::Period, span);
        let subscript = Subscript { name: self.out.len(), is_slice: false, has_bound: false };
        self.push(name(ELEMENT), span);
        self.push(Token::LParen, span);
        let inner = Level { subscript: Some(subscript), ..Level::default() };
        self.outer.push(std::mem::replace(&mut self.level, inner));
    }

    /// Ends a subscript. Another one may follow.
    fn close(&mut self, subscript: Subscript, span: Span) {
        self.bound(subscript, span);
        if subscript.is_slice
            && let Some(found) = self.out.get_mut(subscript.name)
        {
            found.token = name(SLICE);
        }
        self.push(Token::RParen, span);
        self.level = self.outer.pop().unwrap_or_default();
    }

    /// Marks a bound that is left out.
    fn bound(&mut self, subscript: Subscript, span: Span) {
        if !subscript.has_bound {
            self.push(name(OMITTED), span);
        }
    }

    fn push(&mut self, token: Token, span: Span) {
        self.out.push(TokenWithSpan { token, span });
    }
}

fn name(name: &str) -> Token {
    Token::Word(Word { value: name.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::dialect::CortadoDialect;

    fn shown(sql: &str) -> String {
        let tokens = Tokenizer::new(&CortadoDialect::for_tokenizer(), sql).tokenize_with_location().unwrap();
        let tokens: Vec<String> = with_targets(tokens).iter().map(|token| token.token.to_string()).collect();
        tokens.concat().replace(['"', '\0'], "")
    }

    #[test]
    fn subscripts_of_assigned_columns_become_calls() {
        assert_eq!(
            shown("update t set a[1][b[2]] = c[3], d[1:2] = e[4] from f where g[5] = 1"),
            "update t set a.element(1).element(b[2]) = c[3], d.slice(1,2) = e[4] from f where g[5] = 1"
        );
        assert_eq!(
            shown("update t set (a[:], b[1:]) = (x[1], y[2])"),
            "update t set (a.slice(omitted,omitted), b.slice(1,omitted)) = (x[1], y[2])"
        );
        assert_eq!(
            shown("insert into s.t as u (a[1], b) values (c[1], d[2]) on conflict do update set a[:2] = e[1]"),
            "insert into s.t as u (a.element(1), b) values (c[1], d[2]) on conflict do update set \
             a.slice(omitted,2) = e[1]"
        );
        assert_eq!(
            shown("update t set values[1] = values[2], values = 3, \"values\"[4] = 5"),
            "update t set values.element(1) = values[2], values = 3, values.element(4) = 5"
        );
        assert_eq!(shown("insert into t (values[1]) values (a[2])"), "insert into t (values.element(1)) values (a[2])");
    }

    #[test]
    fn other_brackets_stay() {
        for sql in [
            "insert into t (select a[1], b[2] from c)",
            "insert into t (values (a[1]), (b[2]))",
            "select a[1], array[b[1], c[2]] from t order by d[1]",
            "create table t (a int references u on update set null, b int[])",
            "update t set a = b[1], c = d[2]",
        ] {
            assert_eq!(shown(sql), sql);
        }
    }
}
