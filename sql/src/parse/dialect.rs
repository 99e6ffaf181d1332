//! The parser's dialect: sqlparser's for PostgreSQL, except for:
//!
//! - expressions as argument names (`f(a.b => 1)`), which PostgreSQL lacks too: to detect them the parser parses each
//!   argument twice, which makes nested calls exponential in their depth;
//! - arguments named with `:=`;
//! - the ends of operator tokens;
//! - operator precedence, which is PostgreSQL's ([`precedence`]);
//! - DEFAULT of a column, whose location in the text is kept ([`default_span`]);
//! - labels of columns without AS ([`labels`]);
//! - BETWEEN SYMMETRIC and ASYMMETRIC, VARIADIC arguments, literals of users' types (`mood 'sad'`);
//! - ANY and ALL behind any operator, and OPERATOR() as a prefix ([`quantified`]);
//! - INTERVAL as a name, and with a precision; VALUES as a sub-query of an expression;
//! - SET SCHEMA ([`set_schema`]);
//! - statements about domains ([`domains`]) and sequences, and GENERATED ... AS IDENTITY ([`sequences`]);
//! - ALTER TABLE of identity columns ([`identity`]);
//! - keys of a column with WITH, NULLS DISTINCT or NULLS NOT DISTINCT ([`mod@include`]);
//! - subscripts of columns that a statement assigns ([`targets`]);
//! - columns, numbers and parameters, which are most operands: the parser would try them as types first;
//! - a bound on the work: in doubt the parser tries one alternative after another, nested to any depth, so malformed
//!   text of a few hundred bytes could run practically forever ([`Exhausted`]).
//!
//! All other methods delegate. The crate's macro for derived dialects works only inside that crate.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{
    ColumnOption, DataType, Expr, Ident, Interval, ObjectNamePart, Statement, TypedString, UnaryOperator,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token};

use super::text::string_of;
use super::{domains, identity, include, labels, precedence, quantified, sequences, set_schema, targets};

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// Limit of dialect queries per token of a long text. Unambiguous text needs less than one.
const CALLS_PER_TOKEN: usize = 5;
/// Limit of dialect queries of any text. Short texts need up to three per token.
const MIN_CALLS: usize = 20_000;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct CortadoDialect {
    /// Remaining dialect queries.
    left: Cell<usize>,
}

/// The prefix of a column's DEFAULT.
const DEFAULT: &str = "default";
/// The prefix of a bound of BETWEEN SYMMETRIC. DEFAULT of a column has another one.
const SYMMETRIC: &str = "symmetric";
/// The prefix of an argument after VARIADIC.
const VARIADIC: &str = "variadic";

/// The payload of the unwind that stops a parser over its limit. There is no other way: few of its steps can fail, but
/// all of them query the dialect.
pub(super) struct Exhausted;

impl CortadoDialect {
    /// For the tokenizer, which reads each character once.
    pub(super) fn for_tokenizer() -> CortadoDialect {
        CortadoDialect { left: Cell::new(usize::MAX) }
    }

    /// For parsing this many tokens.
    pub(super) fn for_parser(tokens: usize) -> CortadoDialect {
        CortadoDialect { left: Cell::new(MIN_CALLS + CALLS_PER_TOKEN * tokens) }
    }
}

/// An expression behind a prefix of ours, and the span that the prefix carries.
fn prefixed<'e>(expr: &'e Expr, name: &str) -> Option<(&'e Expr, Span)> {
    match expr {
        Expr::Prefixed { prefix, value } if prefix.value == name => Some((value, prefix.span)),
        _ => None,
    }
}

/// The DEFAULT expression of a column and its span in the text.
pub(crate) fn default_span(option: &Expr) -> Option<(&Expr, Span)> {
    prefixed(option, DEFAULT)
}

/// Parses `DEFAULT expr` of a column. The tree lacks the ends of expressions, so a prefix node that nothing else
/// produces carries the span.
fn column_default(parser: &mut Parser<'_>) -> Result<Option<ColumnOption>, ParserError> {
    parser.advance_token();
    let start = parser.peek_token_ref().span.start;
    // The parser's column-definition state affects only operators that have no precedence here.
    let value = Box::new(parser.parse_expr()?);
    let mut last = parser.get_current_index();
    while last > 0 && matches!(parser.token_at(last).token, Token::Whitespace(_)) {
        last -= 1;
    }
    let end = parser.token_at(last).span.end;
    let prefix = Ident { value: DEFAULT.to_owned(), quote_style: None, span: Span { start, end } };
    Ok(Some(ColumnOption::Default(Expr::Prefixed { prefix, value })))
}

/// The first bound of BETWEEN SYMMETRIC.
pub(crate) fn symmetric_bound(bound: &Expr) -> Option<&Expr> {
    prefixed(bound, SYMMETRIC).map(|(value, _)| value)
}

/// Parses the word after BETWEEN and the first bound. Both words are reserved in PostgreSQL.
fn bound(parser: &mut Parser<'_>, is_symmetric: bool) -> Result<Expr, ParserError> {
    parser.advance_token();
    let span = parser.get_current_token().span;
    let value = parser.parse_subexpr(precedence::BETWEEN)?;
    let prefix = Ident { value: SYMMETRIC.to_owned(), quote_style: None, span };
    Ok(if is_symmetric { Expr::Prefixed { prefix, value: Box::new(value) } } else { value })
}

/// The argument after VARIADIC.
pub(crate) fn variadic_argument(argument: &Expr) -> Option<&Expr> {
    prefixed(argument, VARIADIC).map(|(value, _)| value)
}

/// Parses VARIADIC, which is reserved in PostgreSQL, and the argument after it.
fn variadic(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    let span = parser.get_current_token().span;
    let value = Box::new(parser.parse_expr()?);
    Ok(Expr::Prefixed { prefix: Ident { value: VARIADIC.to_owned(), quote_style: None, span }, value })
}

/// Parses `mood 'sad'`: a literal of a type whose name the parser does not know. `None` if that is not what follows.
fn typed_literal(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if !matches!(parser.peek_nth_token_ref(1).token, Token::SingleQuotedString(_)) {
        return None;
    }
    let parse = |parser: &mut Parser<'_>| {
        let name = parser.parse_object_name(false)?;
        let value = parser.parse_value()?;
        let data_type = DataType::Custom(name, Vec::new());
        Ok(Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }))
    };
    Some(parse(parser))
}

/// Parses a word as a column. `None` if it may be more. Most words are columns, and the parser would try each as a type
/// before a literal first: a third of the time of a short query.
fn column(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let is_call = parser.peek_nth_token_ref(1).token == Token::LParen;
    let is_introducer = matches!(&parser.peek_token_ref().token, Token::Word(word) if word.value.starts_with('_'));
    (!is_call && !is_introducer).then(|| parser.parse_identifier().map(Expr::Identifier))
}

/// Parses `(VALUES ...)`, which the parser takes for a call; `None` for other parentheses.
fn values(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let [word, list] = [1, 2].map(|at| &parser.peek_nth_token_ref(at).token);
    if *list != Token::LParen || !matches!(word, Token::Word(word) if word.keyword == Keyword::VALUES) {
        return None;
    }
    parser.advance_token();
    let query = parser.parse_query();
    Some(query.and_then(|query| parser.expect_token(&Token::RParen).map(|_| Expr::Subquery(query))))
}

/// Parses a prefix operator and its operand.
fn prefix(parser: &mut Parser<'_>, op: UnaryOperator, binding: u8) -> Result<Expr, ParserError> {
    parser.advance_token();
    Ok(Expr::UnaryOp { op, expr: Box::new(parser.parse_subexpr(binding)?) })
}

/// Parses `INTERVAL(3) '1.5 s'`, whose precision the parser loses, and INTERVAL as the name of a column: it is only a
/// type with a string behind it. `None` for `INTERVAL '1 s'`.
fn interval(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let token = |at| &parser.peek_nth_token_ref(at).token;
    let is_string = |at| matches!(token(at), Token::DollarQuotedString(_)) || string_of(token(at)).is_some();
    if is_string(1) {
        return None;
    }
    let precision = match (token(1), token(2), token(3)) {
        (Token::LParen, Token::Number(digits, _), Token::RParen) if is_string(4) => digits.parse().ok(),
        _ => None,
    };
    let start = parser.next_token();
    let Some(precision) = precision else {
        let Token::Word(word) = start.token else { return Some(parser.expected("a name", start)) };
        return Some(Ok(Expr::Identifier(word.into_ident(start.span))));
    };
    (0..3).for_each(|_| parser.advance_token());
    Some(parser.parse_prefix().map(|value| {
        Expr::Interval(Interval {
            value: Box::new(value),
            leading_field: None,
            leading_precision: Some(precision),
            last_field: None,
            fractional_seconds_precision: None,
        })
    }))
}

impl Dialect for CortadoDialect {
    // Counts the query and answers as PostgreSQL's dialect.
    fn dialect(&self) -> TypeId {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => std::panic::resume_unwind(Box::new(Exhausted)),
        }
        BASE.dialect()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch)
    }

    // Subscripts of assigned columns.
    fn is_identifier_generating_function_name(&self, ident: &Ident, name_parts: &[ObjectNamePart]) -> bool {
        !name_parts.is_empty() && targets::is_subscript(&ident.value)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        BASE.supports_unicode_string_literal()
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        BASE.is_reserved_for_identifier(kw)
    }

    // A sign after an operator belongs to the operand, and `/*` and `--` start comments. Operators that contain such
    // characters are tokens of their own.
    fn is_custom_operator_part(&self, ch: char) -> bool {
        !matches!(ch, '+' | '-' | '*' | '/') && BASE.is_custom_operator_part(ch)
    }

    fn is_column_alias(&self, kw: &Keyword, _: &mut Parser) -> bool {
        labels::may_be_bare(*kw)
    }

    // `f(a := 1)`, the older form of `f(a => 1)`.
    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        Some(Ok(precedence::of_next(parser)))
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match parser.peek_token_ref().token {
            Token::Minus => Some(prefix(parser, UnaryOperator::Minus, precedence::SIGN)),
            Token::Plus => Some(prefix(parser, UnaryOperator::Plus, precedence::SIGN)),
            Token::Tilde => Some(prefix(parser, UnaryOperator::BitwiseNot, precedence::OPERATOR)),
            Token::AtSign => Some(prefix(parser, UnaryOperator::PGAbs, precedence::OPERATOR)),
            Token::PGSquareRoot => Some(prefix(parser, UnaryOperator::PGSquareRoot, precedence::OPERATOR)),
            Token::PGCubeRoot => Some(prefix(parser, UnaryOperator::PGCubeRoot, precedence::OPERATOR)),
            Token::LParen => values(parser),
            // A quoted word is no keyword.
            Token::Word(ref word) if quantified::is_mark(word) => Some(quantified::operand(parser)),
            Token::Word(ref word) => match word.keyword {
                Keyword::SYMMETRIC => Some(bound(parser, true)),
                Keyword::ASYMMETRIC => Some(bound(parser, false)),
                Keyword::VARIADIC => Some(variadic(parser)),
                Keyword::INTERVAL => interval(parser),
                Keyword::OPERATOR => quantified::prefix_operator(parser),
                // The others are words of the parser, but plain names.
                Keyword::NoKeyword | Keyword::NAME | Keyword::ID | Keyword::KEY | Keyword::VALUE => {
                    typed_literal(parser).or_else(|| column(parser))
                }
                _ => None,
            },
            Token::Number(..) | Token::Placeholder(_) => Some(parser.parse_value().map(Expr::Value)),
            _ => None,
        }
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        let is_default =
            matches!(&parser.peek_token_ref().token, Token::Word(word) if word.keyword == Keyword::DEFAULT);
        if is_default {
            return Ok(Some(column_default(parser)));
        }
        Ok(sequences::identity(parser).or_else(|| include::key_column(parser)))
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        let moved = set_schema::statement(parser).or_else(|| domains::statement(parser));
        moved.or_else(|| sequences::statement(parser)).or_else(|| identity::statement(parser))
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        BASE.supports_filter_during_aggregation()
    }

    fn supports_group_by_expr(&self) -> bool {
        BASE.supports_group_by_expr()
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        match prec {
            Precedence::Period => precedence::PERIOD,
            Precedence::DoubleColon => precedence::CAST,
            Precedence::AtTz => precedence::AT,
            Precedence::Caret => precedence::POWER,
            Precedence::MulDivModOp => precedence::MULTIPLICATION,
            Precedence::PlusMinus => precedence::ADDITION,
            Precedence::Xor | Precedence::Ampersand | Precedence::Pipe | Precedence::PgOther => precedence::OPERATOR,
            // The parser asks for it only before a subscript, which is any expression.
            Precedence::Colon => precedence::NONE,
            Precedence::Between | Precedence::Like => precedence::BETWEEN,
            Precedence::Eq => precedence::COMPARISON,
            Precedence::Is => precedence::IS,
            Precedence::UnaryNot => precedence::NOT,
            Precedence::And => precedence::AND,
            Precedence::Or => precedence::OR,
        }
    }

    fn allow_extract_custom(&self) -> bool {
        BASE.allow_extract_custom()
    }

    fn allow_extract_single_quotes(&self) -> bool {
        BASE.allow_extract_single_quotes()
    }

    fn supports_create_index_with_clause(&self) -> bool {
        BASE.supports_create_index_with_clause()
    }

    fn supports_explain_with_utility_options(&self) -> bool {
        BASE.supports_explain_with_utility_options()
    }

    fn supports_listen_notify(&self) -> bool {
        BASE.supports_listen_notify()
    }

    fn supports_factorial_operator(&self) -> bool {
        BASE.supports_factorial_operator()
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        BASE.supports_bitwise_shift_operators()
    }

    fn supports_comment_on(&self) -> bool {
        BASE.supports_comment_on()
    }

    fn supports_load_extension(&self) -> bool {
        BASE.supports_load_extension()
    }

    fn supports_named_fn_args_with_colon_operator(&self) -> bool {
        BASE.supports_named_fn_args_with_colon_operator()
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    fn supports_empty_projections(&self) -> bool {
        BASE.supports_empty_projections()
    }

    fn supports_nested_comments(&self) -> bool {
        BASE.supports_nested_comments()
    }

    fn supports_string_escape_constant(&self) -> bool {
        BASE.supports_string_escape_constant()
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        BASE.supports_numeric_literal_underscores()
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        BASE.supports_array_typedef_with_brackets()
    }

    fn supports_geometric_types(&self) -> bool {
        BASE.supports_geometric_types()
    }

    fn supports_set_names(&self) -> bool {
        BASE.supports_set_names()
    }

    fn supports_alter_column_type_using(&self) -> bool {
        BASE.supports_alter_column_type_using()
    }

    fn supports_notnull_operator(&self) -> bool {
        BASE.supports_notnull_operator()
    }

    fn supports_interval_options(&self) -> bool {
        BASE.supports_interval_options()
    }

    fn supports_insert_table_alias(&self) -> bool {
        BASE.supports_insert_table_alias()
    }

    fn supports_create_table_like_parenthesized(&self) -> bool {
        BASE.supports_create_table_like_parenthesized()
    }

    fn supports_select_wildcard_with_alias(&self) -> bool {
        BASE.supports_select_wildcard_with_alias()
    }

    fn supports_comma_separated_trim(&self) -> bool {
        BASE.supports_comma_separated_trim()
    }

    fn supports_xml_expressions(&self) -> bool {
        BASE.supports_xml_expressions()
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        BASE.supports_comment_optimizer_hint()
    }
}
