//! Parses ALTER ... SET SCHEMA and ALTER ... OWNER TO, which the parser lacks for most kinds of objects.
//!
//! The tree is that of ALTER TABLE ... RENAME TO. A first part of the new name that no text of a client contains says
//! what it is ([`new_schema`], [`new_owner`]).

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
const OWNER: &str = "\0owner";

/// What can be moved. Types cannot have IF EXISTS.
const KINDS: [(Keyword, bool); 6] = [
    (Keyword::TABLE, true),
    (Keyword::VIEW, true),
    (Keyword::SEQUENCE, true),
    (Keyword::INDEX, true),
    (Keyword::TYPE, false),
    (Keyword::DOMAIN, false),
];

/// The schema that the operations of a tree move the object to; `None` if they do something else.
pub(crate) fn new_schema(operations: &[AlterTableOperation]) -> Option<&Ident> {
    marked(operations, SCHEMA)
}

/// The role that the operations of a tree give the object to; `None` if they do something else.
pub(crate) fn new_owner(operations: &[AlterTableOperation]) -> Option<&Ident> {
    marked(operations, OWNER)
}

fn marked<'t>(operations: &'t [AlterTableOperation], wanted: &str) -> Option<&'t Ident> {
    let [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(name) }] = operations else {
        return None;
    };
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(mark), ObjectNamePart::Identifier(new)] if mark.value == wanted => Some(new),
        _ => None,
    }
}

/// ALTER ... SET SCHEMA or OWNER TO; `None` for any other statement.
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
    if is(at + 1, Keyword::SET) && is(at + 2, Keyword::SCHEMA) && !is(1, Keyword::INDEX) {
        return Some(parse(parser, SCHEMA));
    }
    // There may be other actions of ALTER TABLE. Domains have their own OWNER TO.
    let is_last = matches!(parser.peek_nth_token_ref(at + 4).token, Token::SemiColon | Token::EOF);
    let is_owner = is(at + 1, Keyword::OWNER) && is(at + 2, Keyword::TO) && is_last && !is(1, Keyword::DOMAIN);
    is_owner.then(|| parse(parser, OWNER))
}

fn parse(parser: &mut Parser<'_>, mark: &str) -> Result<Statement, ParserError> {
    (0..2).for_each(|_| parser.advance_token());
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    (0..2).for_each(|_| parser.advance_token());
    let new = [Ident::new(mark), parser.parse_identifier()?];
    let table_name = RenameTableNameKind::To(ObjectName(new.map(ObjectNamePart::Identifier).into()));
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
