//! Parses ALTER ... SET SCHEMA, which the parser lacks.
//!
//! The tree is that of ALTER TABLE ... RENAME TO. A first part of the new name that no text of a client contains says
//! what it is ([`new_schema`]).

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AlterTable, AlterTableOperation, Ident, ObjectName, ObjectNamePart, RenameTableNameKind, Statement,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::sequences::is_word;

/// The first part of the new name.
const SCHEMA: &str = "\0schema";

/// What can be moved. Types cannot have IF EXISTS.
const KINDS: [(Keyword, bool); 5] = [
    (Keyword::TABLE, true),
    (Keyword::VIEW, true),
    (Keyword::SEQUENCE, true),
    (Keyword::TYPE, false),
    (Keyword::DOMAIN, false),
];

/// The schema that the operations of a tree move the object to; `None` if they do something else.
pub(crate) fn new_schema(operations: &[AlterTableOperation]) -> Option<&Ident> {
    let [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(name) }] = operations else {
        return None;
    };
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(mark), ObjectNamePart::Identifier(schema)] if mark.value == SCHEMA => Some(schema),
        _ => None,
    }
}

/// ALTER ... SET SCHEMA; `None` for any other statement.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let is = |at, keyword| is_word(parser, at, keyword);
    let may_be_missing = KINDS.iter().find(|(kind, _)| is(0, Keyword::ALTER) && is(1, *kind))?.1;
    let mut at = 2;
    if may_be_missing && is(at, Keyword::IF) && is(at + 1, Keyword::EXISTS) {
        at += 2;
    }
    while matches!(parser.peek_nth_token_ref(at).token, Token::Word(_))
        && parser.peek_nth_token_ref(at + 1).token == Token::Period
    {
        at += 2;
    }
    let is_it = is(at + 1, Keyword::SET) && is(at + 2, Keyword::SCHEMA);
    is_it.then(|| parse(parser))
}

fn parse(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    (0..2).for_each(|_| parser.advance_token());
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    parser.expect_keywords(&[Keyword::SET, Keyword::SCHEMA])?;
    let schema = [Ident::new(SCHEMA), parser.parse_identifier()?];
    let table_name = RenameTableNameKind::To(ObjectName(schema.map(ObjectNamePart::Identifier).into()));
    Ok(Statement::AlterTable(AlterTable {
        name,
        if_exists,
        only: false,
        operations: vec![AlterTableOperation::RenameTable { table_name }],
        location: None,
        on_cluster: None,
        table_type: None,
        end_token: AttachedToken::empty(),
    }))
}
