//! Names of objects for the text forms of `regclass`, `regtype` and the like. The system catalog knows them; the name
//! of a type is one for the parser.

use sqlparser::ast::Expr as Ast;

use super::type_name;
use crate::catalog::{Catalog, NamedType};
use crate::error::SqlState;
use crate::parse;
use crate::system;
use pgtypes::{Label, Names, Oid, SqlType, ValueError};

impl Names for Catalog {
    fn labels(&self, ty: Oid) -> Option<&[Label]> {
        self.enum_type(ty).map(|ty| ty.labels.as_slice())
    }

    fn find(&self, class: SqlType, name: &str) -> Result<Oid, ValueError> {
        if class == SqlType::REGTYPE { find_type(self, name) } else { system::find_object(self, class, name) }
    }

    fn show(&self, class: SqlType, oid: Oid) -> Option<String> {
        system::show_object(self, class, oid)
    }
}

/// A type by any of its names.
fn find_type(catalog: &Catalog, name: &str) -> Result<Oid, ValueError> {
    let missing = || ValueError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"));
    if let Some(domain) = system::find_domain(name) {
        return Ok(domain);
    }
    let parsed = parse::parse(&format!("SELECT NULL::{name}"))
        .map_err(|_| ValueError::new(SqlState::SYNTAX_ERROR, format!("invalid type name \"{name}\"")))?;
    let [statement] = parsed.as_slice() else { return Err(missing()) };
    match statement.only_expression() {
        Some(Ast::Cast { data_type, .. }) => {
            let found = type_name::resolve_in(catalog, data_type).map(NamedType::oid);
            found.map_err(|error| match type_name::is_far(data_type) {
                true => ValueError::new(error.code, error.message),
                false => missing(),
            })
        }
        _ => Err(missing()),
    }
}
