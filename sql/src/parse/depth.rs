//! An upper bound of a syntax tree's depth, from its tokens.
//!
//! The parser builds chains of operators, casts and UNIONs in loops, which its recursion limit does not count. The tree
//! of `a + b + c ...` is as deep as the chain is long, and walking or freeing it needs as much stack. So the depth is
//! bounded before parsing, from the tokens alone.
//!
//! A group (parentheses, brackets, CASE ... END) is a list of items separated by commas. An item is a chain. Its tree
//! is at most as deep as its number of operators plus the deepest group among its operands. A group adds its depth to
//! the chain around it. ANDs and ORs bind loosest, and the binder flattens them, so they are counted separately with a
//! higher limit.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Limit of nested groups.
pub(super) const MAX_NESTING: usize = 100;
/// Limit of the depth of operators other than AND and OR.
pub(super) const MAX_DEPTH: usize = 1000;
/// Limit of ANDs and ORs on a path from root to leaf.
pub(super) const MAX_LOGICAL: usize = 4000;

/// The depth of a tree: ANDs and ORs, and other operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Depth {
    logical: usize,
    other: usize,
}

impl Depth {
    fn max(self, other: Depth) -> Depth {
        Depth { logical: self.logical.max(other.logical), other: self.other.max(other.other) }
    }
}

/// The state of an open group.
#[derive(Debug, Default)]
struct Group {
    /// Whether it is CASE, not parentheses.
    case: bool,
    /// The deepest item so far.
    items: Depth,
    /// UNIONs and the like: each puts everything before it one level deeper, across commas.
    unions: usize,
    /// ANDs and ORs of the current item, and the deepest of their operands.
    logical: usize,
    joined: Depth,
    /// Operators since the last AND, OR or comma, and the deepest group among their operands.
    operators: usize,
    operand: Depth,
}

impl Group {
    /// Ends an operand at an AND, an OR or the end of the item.
    fn end_of_operand(&mut self) {
        let depth = Depth { logical: self.operand.logical, other: self.operand.other + self.operators };
        self.joined = self.joined.max(depth);
        (self.operators, self.operand) = (0, Depth::default());
    }

    fn end_of_item(&mut self) {
        self.end_of_operand();
        let depth = Depth { logical: self.joined.logical + self.logical, other: self.joined.other };
        self.items = self.items.max(depth);
        (self.logical, self.joined) = (0, Depth::default());
    }

    /// The depth so far, including the group itself.
    fn depth(&self) -> Depth {
        let operand = Depth { logical: self.operand.logical, other: self.operand.other + self.operators };
        let joined = self.joined.max(operand);
        let item = Depth { logical: joined.logical + self.logical, other: joined.other };
        let items = self.items.max(item);
        Depth { logical: items.logical, other: items.other + self.unions + 1 }
    }
}

/// An upper bound of the depth of the tokens' tree; `None` beyond the limits.
pub(super) fn max_depth(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut outer: Vec<Group> = Vec::new();
    let mut group = Group::default();
    let mut deepest = 0;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => open(&mut outer, &mut group, false),
            // CASEs without END form no tree: close them too.
            Token::RParen | Token::RBracket => while close(&mut outer, &mut group) == Some(true) {},
            Token::Comma => group.end_of_item(),
            Token::SemiColon if outer.is_empty() => group = Group::default(),
            Token::SemiColon => group.end_of_item(),
            Token::Word(word) => match word.keyword {
                // A quoted word or a plain identifier.
                Keyword::NoKeyword => {}
                Keyword::AND | Keyword::OR => {
                    group.end_of_operand();
                    group.logical += 1;
                }
                Keyword::CASE => open(&mut outer, &mut group, true),
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if group.case => group.end_of_item(),
                Keyword::END if group.case => drop(close(&mut outer, &mut group)),
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                    group.end_of_item();
                    group.unions += 1;
                }
                Keyword::TRUE | Keyword::FALSE | Keyword::NULL => {}
                // Some other keywords are operators. Count all of them.
                _ => group.operators += 1,
            },
            token if is_operator(token) => group.operators += 1,
            _ => {}
        }
        let depth = group.depth();
        if outer.len() > MAX_NESTING || depth.other > MAX_DEPTH || depth.logical > MAX_LOGICAL {
            return None;
        }
        deepest = deepest.max(outer.len() + depth.other + depth.logical);
    }
    Some(deepest)
}

fn open(outer: &mut Vec<Group>, group: &mut Group, case: bool) {
    outer.push(std::mem::replace(group, Group { case, ..Group::default() }));
}

/// Closes a group. Returns whether it was a CASE; `None` if none is open.
fn close(outer: &mut Vec<Group>, group: &mut Group) -> Option<bool> {
    let up = outer.pop()?;
    let ended = std::mem::replace(group, up);
    // A subscript, a call or empty parentheses are a node of their own, like an operator.
    group.operators += 1;
    group.operand = group.operand.max(ended.depth());
    Some(ended.case)
}

/// Whether a token may be an operator symbol.
fn is_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::Placeholder(_)
    )
}
