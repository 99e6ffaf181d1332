//! Operator precedence of PostgreSQL's grammar (`gram.y`), lowest first:
//!
//! | operators | |
//! |---|---|
//! | `OR`, `AND`, `NOT` | |
//! | `IS`, `ISNULL`, `NOTNULL`, `IS [NOT] DISTINCT FROM` | not in a row |
//! | `=`, `<`, `>`, `<=`, `>=`, `<>` | not in a row |
//! | `BETWEEN`, `IN`, `LIKE`, `ILIKE`, `SIMILAR` | not in a row |
//! | all other operators, `OPERATOR(...)` and the prefix ones among them | from the left |
//! | `+ -`, then `* / %`, then `^` | from the left |
//! | `AT TIME ZONE`, `COLLATE`, unary `+ -`, subscripts, `::`, `.` | |
//!
//! The parser's table for PostgreSQL differs: `~` and `!~` are comparisons there, and unary minus binds less than `^`.
//! It also has words without meaning in PostgreSQL (XOR, REGEXP, DIV). The binder, which still sees the parentheses,
//! refuses chains of non-associative operators.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::normalize::is_distinct;
use super::text::is_comparison;

pub(super) const NONE: u8 = 0;
pub(super) const OR: u8 = 10;
pub(super) const AND: u8 = 20;
pub(super) const NOT: u8 = 30;
pub(super) const IS: u8 = 40;
pub(super) const COMPARISON: u8 = 50;
pub(super) const BETWEEN: u8 = 60;
pub(super) const OPERATOR: u8 = 70;
pub(super) const ADDITION: u8 = 80;
pub(super) const MULTIPLICATION: u8 = 90;
pub(super) const POWER: u8 = 100;
pub(super) const AT: u8 = 110;
pub(super) const SIGN: u8 = 125;
pub(super) const SUBSCRIPT: u8 = 130;
pub(super) const CAST: u8 = 140;
pub(super) const PERIOD: u8 = 200;

/// The precedence of the next token as a binary or postfix operator; [`NONE`] if it is none.
pub(super) fn of_next(parser: &Parser<'_>) -> u8 {
    match &parser.peek_token_ref().token {
        Token::Word(word) => of_word(word.keyword, parser),
        token => of_symbol(token),
    }
}

/// The precedence of a token other than a word.
pub(super) fn of_symbol(token: &Token) -> u8 {
    match token {
        token if is_comparison(token) => COMPARISON,
        Token::Plus | Token::Minus => ADDITION,
        Token::Mul | Token::Div | Token::Mod => MULTIPLICATION,
        Token::Caret => POWER,
        Token::LBracket => SUBSCRIPT,
        Token::DoubleColon => CAST,
        Token::Period => PERIOD,
        Token::CustomBinaryOperator(operator) if is_distinct(operator).is_some() => IS,
        Token::CustomBinaryOperator(_)
        | Token::StringConcat
        | Token::Pipe
        | Token::Ampersand
        | Token::Sharp
        | Token::ShiftLeft
        | Token::ShiftRight
        | Token::Tilde
        | Token::TildeAsterisk
        | Token::ExclamationMarkTilde
        | Token::ExclamationMarkTildeAsterisk
        | Token::DoubleTilde
        | Token::DoubleTildeAsterisk
        | Token::ExclamationMarkDoubleTilde
        | Token::ExclamationMarkDoubleTildeAsterisk
        | Token::Spaceship
        | Token::Overlap
        | Token::CaretAt
        | Token::Arrow
        | Token::LongArrow
        | Token::HashArrow
        | Token::HashLongArrow
        | Token::AtArrow
        | Token::ArrowAt
        | Token::HashMinus
        | Token::AtQuestion
        | Token::AtAt
        | Token::Question
        | Token::QuestionAnd
        | Token::QuestionPipe
        | Token::DoubleSharp
        | Token::AmpersandLeftAngleBracket
        | Token::AmpersandRightAngleBracket
        | Token::AmpersandLeftAngleBracketVerticalBar
        | Token::VerticalBarAmpersandRightAngleBracket
        | Token::QuestionMarkDash
        | Token::QuestionMarkDashVerticalBar
        | Token::QuestionMarkSharp
        | Token::QuestionMarkDoubleVerticalBar
        | Token::TwoWayArrow
        | Token::LeftAngleBracketCaret
        | Token::RightAngleBracketCaret
        | Token::TildeEqual
        | Token::AtSign
        | Token::ShiftLeftVerticalBar
        | Token::VerticalBarShiftRight => OPERATOR,
        _ => NONE,
    }
}

fn of_word(keyword: Keyword, parser: &Parser<'_>) -> u8 {
    let following = |n: usize| match &parser.peek_nth_token_ref(n).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match keyword {
        Keyword::OR => OR,
        Keyword::AND => AND,
        Keyword::IS | Keyword::NOTNULL => IS,
        Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::ILIKE | Keyword::SIMILAR | Keyword::OVERLAPS => {
            BETWEEN
        }
        Keyword::NOT
            if matches!(
                following(1),
                Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::ILIKE | Keyword::SIMILAR
            ) =>
        {
            BETWEEN
        }
        Keyword::OPERATOR if parser.peek_nth_token_ref(1).token == Token::LParen => OPERATOR,
        Keyword::AT if following(1) == Keyword::TIME && following(2) == Keyword::ZONE => AT,
        _ => NONE,
    }
}
