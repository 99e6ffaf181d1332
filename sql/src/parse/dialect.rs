//! The dialect that statements are parsed in: sqlparser's for PostgreSQL, but for one switch.
//!
//! The switch is for names of arguments that are expressions (`f(a.b => 1)`), which PostgreSQL has not either: to find out whether an argument
//! is named so, the parser parses it twice, and nested calls in time exponential in their depth. Everything else is passed
//! on; the crate's own macro for derived dialects works inside of that crate only.

use std::any::TypeId;

use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// See the module documentation.
#[derive(Debug)]
pub(super) struct CortadoDialect;

impl Dialect for CortadoDialect {
    // To the parser's questions "is this PostgreSQL?" the answer is yes.
    fn dialect(&self) -> TypeId {
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

    fn supports_unicode_string_literal(&self) -> bool {
        BASE.supports_unicode_string_literal()
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        BASE.is_reserved_for_identifier(kw)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        BASE.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        BASE.get_next_precedence(parser)
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        BASE.supports_filter_during_aggregation()
    }

    fn supports_group_by_expr(&self) -> bool {
        BASE.supports_group_by_expr()
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        BASE.prec_value(prec)
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
