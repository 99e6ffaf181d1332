//! A text through parser and binder, without parameters, with parameters of any type, and with declared ones.
//!
//! - Nothing panics, and what is refused is refused with an error of the client's fault, whose position is in the text.
//! - A text is bound the same way again.

use std::sync::{Arc, OnceLock};

use pgtypes::SqlType;
use sql::catalog::Catalog;
use sql::error::SqlError;
use sql::parse::parse;
use sql::plan::bind;

use crate::node::FuzzNode;

/// The objects that a text may name.
const SCHEMA: &str = include_str!("schema.sql");

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if text.contains('\0') {
        return;
    }
    plan(text, &catalog());
}

/// Plans the statements of a text in a catalog.
pub fn plan(text: &str, catalog: &Catalog) {
    let statements = match parse(text) {
        Ok(statements) => statements,
        Err(error) => return check(&error, text),
    };
    let declared = [SqlType::INT4, SqlType::TEXT, SqlType::UNKNOWN];
    for statement in &statements {
        for types in [None, Some(&[][..]), Some(&declared[..])] {
            let shape = |result: Result<Arc<sql::plan::Plan>, SqlError>| {
                let plan = result.map_err(|error| (error.code, error.message, error.position))?;
                Ok::<_, (_, _, _)>((plan.params.clone(), plan.columns.as_ref().map(Vec::len)))
            };
            let first = bind(statement, types, catalog);
            if let Err(error) = &first {
                check(error, text);
            }
            assert_eq!(shape(first), shape(bind(statement, types, catalog)), "bound in another way: {text}");
        }
    }
}

/// An error of a text is not one of the server (XX000), and it points into the text.
pub fn check(error: &SqlError, text: &str) {
    assert!(!error.code.0.starts_with("XX"), "{error}: {text}");
    let characters = text.chars().count();
    // One after the end: the end of the input.
    assert!(
        error.position.is_none_or(|at| (1..=characters + 1).contains(&(at as usize))),
        "points outside: {error:?}: {text}"
    );
}

fn catalog() -> Arc<Catalog> {
    static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();
    CATALOG.get_or_init(|| FuzzNode::with(SCHEMA).catalog()).clone()
}
