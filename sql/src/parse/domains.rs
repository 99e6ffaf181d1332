//! Parses statements about domains: the parser knows CREATE DOMAIN without NOT NULL, no ALTER DOMAIN, and DROP DOMAIN
//! of one.
//!
//! CREATE and ALTER become trees of ALTER TABLE, DROP one of DROP TYPE. A first part of each name that no text of a
//! client contains says what it is ([`domain_name`]).

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOptionDef, Ident, ObjectName,
    ObjectNamePart, ObjectType, Statement,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

use super::text::word;

/// The first part of the name in a tree that is about a domain.
const DOMAIN: &str = "\0domain";

/// The name of the domain that a tree is about; `None` if it is about something else.
pub(crate) fn domain_name(name: &ObjectName) -> Option<ObjectName> {
    let (first, rest) = name.0.split_first()?;
    let is_domain = first.as_ident().is_some_and(|ident| ident.value == DOMAIN);
    is_domain.then(|| ObjectName(rest.to_vec()))
}

/// A statement about domains; `None` for any other one.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let is = |at, wanted: &str| {
        word(&parser.peek_nth_token_ref(at).token).is_some_and(|found| found.eq_ignore_ascii_case(wanted))
    };
    if !is(1, "domain") {
        return None;
    }
    let parse = match () {
        () if is(0, "create") => create,
        () if is(0, "alter") => alter,
        () if is(0, "drop") => drop_domains,
        () => return None,
    };
    (0..2).for_each(|_| parser.advance_token());
    Some(parse(parser))
}

fn marked_name(parser: &mut Parser<'_>) -> Result<ObjectName, ParserError> {
    let mut name = parser.parse_object_name(false)?;
    name.0.insert(0, ObjectNamePart::Identifier(Ident::new(DOMAIN)));
    Ok(name)
}

fn tree(name: ObjectName, operation: AlterTableOperation) -> Statement {
    Statement::AlterTable(AlterTable {
        name,
        if_exists: false,
        only: false,
        operations: vec![operation],
        location: None,
        on_cluster: None,
        table_type: None,
        end_token: AttachedToken::empty(),
    })
}

/// The definition is that of a column to add.
fn create(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let name = marked_name(parser)?;
    let _has_as = parser.parse_keyword(Keyword::AS);
    let data_type = parser.parse_data_type()?;
    let mut options = Vec::new();
    loop {
        let name = if parser.parse_keyword(Keyword::CONSTRAINT) { Some(parser.parse_identifier()?) } else { None };
        match parser.parse_optional_column_option()? {
            Some(option) => options.push(ColumnOptionDef { name, option }),
            None if name.is_some() => {
                return parser.expected_ref("a constraint", parser.peek_token_ref());
            }
            None => break,
        }
    }
    let column_def = ColumnDef { name: Ident::new("value"), data_type, options };
    let operation = AlterTableOperation::AddColumn {
        column_keyword: true,
        if_not_exists: false,
        column_def,
        column_position: None,
    };
    Ok(tree(name, operation))
}

fn alter(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let name = marked_name(parser)?;
    let of_value = |op| AlterTableOperation::AlterColumn { column_name: Ident::new("value"), op };
    let operation = if parser.parse_keywords(&[Keyword::SET, Keyword::NOT, Keyword::NULL]) {
        of_value(AlterColumnOperation::SetNotNull)
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::NOT, Keyword::NULL]) {
        of_value(AlterColumnOperation::DropNotNull)
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::DEFAULT]) {
        of_value(AlterColumnOperation::SetDefault { value: parser.parse_expr()? })
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::DEFAULT]) {
        of_value(AlterColumnOperation::DropDefault)
    } else {
        parser.parse_alter_table_operation()?
    };
    Ok(tree(name, operation))
}

fn drop_domains(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parser.parse_comma_separated(marked_name)?;
    let cascade = parser.parse_keyword(Keyword::CASCADE);
    let restrict = !cascade && parser.parse_keyword(Keyword::RESTRICT);
    Ok(Statement::Drop {
        object_type: ObjectType::Type,
        if_exists,
        names,
        cascade,
        restrict,
        purge: false,
        temporary: false,
        table: None,
    })
}
