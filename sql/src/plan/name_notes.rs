//! Notes of the names of types and relations in a text, for ids in their place ([`super::fixed_names`]).

use sqlparser::ast::{ArrayElemTypeDef, DataType, Spanned};
use sqlparser::tokenizer::Location;

use super::binder::Binder;
use crate::catalog::{FIRST_ID, FIXED_RELATION, FIXED_TYPE, NamedType};
use crate::error::SqlError;
use crate::lexer::{Lexer, Spanned as Lexed, Token};
use crate::object::ObjectId;
use crate::table::quote_identifier;
use pgtypes::{Names, SqlType};

impl Binder<'_> {
    /// Notes the name of a user's type, if that is asked for.
    pub(super) fn note_type_name(&self, name: &DataType, found: NamedType) {
        let mut names = self.names_read.borrow_mut();
        let Some(names) = names.as_mut() else { return };
        let id = found.domain.unwrap_or(ObjectId(found.ty.scalar().oid.0));
        if !self.catalog.object(id).is_some_and(|object| object.is_type()) {
            return;
        }
        let (mut innermost, mut has_brackets) = (name, false);
        while let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = innermost {
            (innermost, has_brackets) = (element, true);
        }
        let DataType::Custom(name, _) = innermost else { return };
        let (text, span) = (&self.statement.text, name.span());
        let (Some(start), Some(end)) = (text.offset(span.start), text.offset(span.end)) else { return };
        // An array has its element's name after an underscore, too.
        let brackets = if found.ty.is_array() && !has_brackets { "[]" } else { "" };
        names.push((start..end, format!("\"{FIXED_TYPE}{}\"{brackets}", id.0)));
    }

    /// Notes the name of a relation in a constant, if that is asked for. 42P01 if there is none.
    pub(super) fn note_relation_name(&self, name: &str, at: Location) -> Result<(), SqlError> {
        let mut names = self.names_read.borrow_mut();
        let Some(names) = names.as_mut() else { return Ok(()) };
        let fixed = match self.catalog.find(SqlType::REGCLASS, name) {
            // A relation of the system keeps its name.
            Ok(oid) if oid.0 < FIRST_ID => return Ok(()),
            Ok(oid) => format!("{FIXED_RELATION}{}", oid.0),
            Err(error) => self.created_name(name).ok_or(error)?,
        };
        let source = &self.statement.text;
        let Some(start) = source.offset(at) else { return Ok(()) };
        let mut lexer = Lexer::new(source.as_str());
        lexer.skip_to(start);
        if let Some(Lexed { token: Token::Text(_), start, end }) = lexer.next() {
            names.push((start..end, format!("'{}'", fixed.replace('\'', "''"))));
        }
        Ok(())
    }

    /// The schema and the name of a relation that the statement creates.
    pub(super) fn created_name(&self, name: &str) -> Option<String> {
        let schema = quote_identifier(&self.catalog.schema_by_id(self.target)?.name);
        // Words without quotes are folded.
        let name = if name.contains('"') { name.to_owned() } else { name.to_ascii_lowercase() };
        let mut created = self.creating.iter().map(|created| quote_identifier(created));
        let created = created.find(|created| *created == name || format!("{schema}.{created}") == name)?;
        Some(format!("{schema}.{created}"))
    }
}
