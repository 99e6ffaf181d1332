//! The ids that stand for names in stored texts of expressions, and the texts as they are shown.
//!
//! The plan writes them (`plan::fixed_names`): `"pg_type 16385"` for a user's type, `'pg_class 16390'` for a relation
//! in a constant.

use std::borrow::Cow;

use super::snapshot::Catalog;
use crate::lexer::{Lexer, Token};
use crate::object::ObjectId;
use pgtypes::{Names, Oid, SqlType};

/// What stands before the id of a type.
pub(crate) const FIXED_TYPE: &str = "pg_type ";
/// What stands before the OID of a relation.
pub(crate) const FIXED_RELATION: &str = "pg_class ";

/// The id in a name that stands for an object.
pub(crate) fn fixed_id(name: &str, prefix: &str) -> Option<ObjectId> {
    name.strip_prefix(prefix)?.parse().ok().map(ObjectId)
}

/// A stored text with names in the place of ids. They have their schemas unless the search path finds them.
pub(crate) fn shown_text<'t>(text: &'t str, names: &dyn Names) -> Cow<'t, str> {
    if !text.contains(FIXED_TYPE) && !text.contains(FIXED_RELATION) {
        return Cow::Borrowed(text);
    }
    let (mut lexer, mut out, mut done) = (Lexer::new(text), String::new(), 0);
    while let Some(next) = lexer.next() {
        let shown = match &next.token {
            Token::Quoted(name) => fixed_id(name, FIXED_TYPE).and_then(|id| names.show(SqlType::REGTYPE, Oid(id.0))),
            Token::Text(name) => {
                let shown = fixed_id(name, FIXED_RELATION).and_then(|id| names.show(SqlType::REGCLASS, Oid(id.0)));
                shown.map(|name| format!("'{}'", name.replace('\'', "''")))
            }
            _ => None,
        };
        if let Some(shown) = shown {
            out.push_str(text.get(done..next.start).unwrap_or_default());
            out.push_str(&shown);
            done = next.end;
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

impl Catalog {
    /// As [`shown_text`], with the names of this catalog.
    pub(crate) fn shown_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        shown_text(text, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_names() {
        assert_eq!(fixed_id("pg_type 16385", FIXED_TYPE), Some(ObjectId(16385)));
        assert_eq!(fixed_id("pg_type x", FIXED_TYPE), None);
        assert_eq!(fixed_id("pg_type 16385", FIXED_RELATION), None);
    }
}
