//! How deep the syntax tree of a token list can get.
//!
//! The parser builds chains of operators, casts and UNIONs in loops, so that its own limit of recursion does not see
//! them; the tree of `a + b + c ...` is as deep as the chain is long, and whoever walks over it, or frees it, needs as
//! much stack. So the depth is bounded beforehand, from the tokens alone.
//!
//! A group (parentheses, brackets, CASE ... END) is a list of items apart by commas; an item is a chain whose tree is at
//! most as deep as it has operators, plus the deepest group among its operands. Groups hand their depth to the chain
//! that they stand in. ANDs and ORs bind less than all others, and the binder flattens them, hence they are counted
//! apart and allowed more of.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Deepest nesting of parentheses and the like.
pub(super) const MAX_NESTING: usize = 100;
/// Deepest tree of operators other than AND and OR.
pub(super) const MAX_DEPTH: usize = 1000;
/// Most ANDs and ORs on the way from the root of a tree to a leaf.
pub(super) const MAX_LOGICAL: usize = 4000;

/// The depth of a tree: AND and OR, and all else.
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

/// A group under way.
#[derive(Debug, Default)]
struct Group {
    /// Whether it is CASE rather than parentheses.
    case: bool,
    /// The deepest item so far.
    items: Depth,
    /// UNIONs and the like: each puts what stands before it one level deeper, commas or not.
    unions: usize,
    /// ANDs and ORs of the item at hand, and the deepest of what they join.
    logical: usize,
    joined: Depth,
    /// Operators since the last AND, OR or comma, and the deepest group among their operands.
    operators: usize,
    operand: Depth,
}

impl Group {
    /// An AND or OR, or the end of the item: what came since the last one is as deep as it gets.
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

    /// The depth so far, itself included.
    fn depth(&self) -> Depth {
        let operand = Depth { logical: self.operand.logical, other: self.operand.other + self.operators };
        let joined = self.joined.max(operand);
        let item = Depth { logical: joined.logical + self.logical, other: joined.other };
        let items = self.items.max(item);
        Depth { logical: items.logical, other: items.other + self.unions + 1 }
    }
}

/// How deep the tree of the tokens may get at most; `None` if that is deeper than any walk over it should follow.
pub(super) fn max_depth(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut outer: Vec<Group> = Vec::new();
    let mut group = Group::default();
    let mut deepest = 0;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => open(&mut outer, &mut group, false),
            // What CASEs lack their END makes no tree.
            Token::RParen | Token::RBracket => while close(&mut outer, &mut group) == Some(true) {},
            Token::Comma => group.end_of_item(),
            Token::SemiColon if outer.is_empty() => group = Group::default(),
            Token::SemiColon => group.end_of_item(),
            Token::Word(word) => match word.keyword {
                // A quoted word, or one without a meaning.
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
                // Some are operators, and more may become so.
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

/// Ends a group; says whether it was a CASE, and `None` if there is none to end.
fn close(outer: &mut Vec<Group>, group: &mut Group) -> Option<bool> {
    let up = outer.pop()?;
    let ended = std::mem::replace(group, up);
    // A subscript, a call or an empty pair of parentheses is a node of its own, as an operator is.
    group.operators += 1;
    group.operand = group.operand.max(ended.depth());
    Some(ended.case)
}

/// Whether a token is, or may be, an operator symbol.
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
