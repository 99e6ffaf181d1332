//! Definitions of objects as SQL text: types, indexes, constraints, the arguments of functions.

use std::borrow::Cow;

use super::facts;
use super::objects::{IndexView, KeyView, of_row_type};
use super::relations::INFORMATION_SCHEMA;
use crate::catalog::Catalog;
use crate::lexer::{Lexer, Token};
use crate::table::{ForeignKey, ReferenceAction, Table, quote_identifier};
use pgtypes::functions::{ProcRow, Run};
use pgtypes::{Names, Oid, SqlType};

/// The name of a type with a modifier. `???` for an OID that is none, `-` for none.
pub(super) fn type_name(catalog: &Catalog, oid: Oid, typmod: Option<i64>) -> String {
    if oid == Oid::NONE {
        return "-".to_owned();
    }
    if let Some(shown) = catalog.user_type_text(oid) {
        return shown;
    }
    if let Some(relation) = of_row_type(catalog, oid) {
        return catalog.show(SqlType::REGCLASS, relation).unwrap_or_default();
    }
    let has_type = pgtypes::find(oid).is_some();
    let domain = facts::domains().iter().find(|domain| domain.oid == oid || domain.array == oid);
    match (domain, has_type) {
        (Some(domain), _) => {
            let brackets = if domain.array == oid { "[]" } else { "" };
            format!("{}.{}{brackets}", INFORMATION_SCHEMA.1, domain.name)
        }
        (None, true) => {
            let typmod = typmod.and_then(|typmod| i32::try_from(typmod).ok());
            match (oid, typmod) {
                // A modifier that was asked for, and is none, tells `character(n)` from the type itself.
                (oid, Some(-1)) if oid == SqlType::BPCHAR.oid => "bpchar".to_owned(),
                (oid, Some(-1)) if SqlType::new(oid).element() == Some(SqlType::BPCHAR) => "bpchar[]".to_owned(),
                _ => SqlType { oid, typmod: typmod.unwrap_or(-1) }.name(),
            }
        }
        (None, false) => "???".to_owned(),
    }
}

/// CREATE INDEX. `schema`: the name of the table's schema, if it is to be shown.
pub(super) fn index_definition(table: &Table, index: &IndexView, schema: Option<&str>) -> String {
    let schema = schema.map_or_else(String::new, |schema| format!("{}.", quote_identifier(schema)));
    let unique = if index.is_unique { "UNIQUE " } else { "" };
    let (name, table_name) = (quote_identifier(&index.name), quote_identifier(&table.name));
    let keys: Vec<String> = index.keys.iter().map(|key| format!("{}{}", key.text, order_text(key))).collect();
    let mut out = format!("CREATE {unique}INDEX {name} ON {schema}{table_name} USING btree ({})", keys.join(", "));
    if !index.included.is_empty() {
        out.push_str(&format!(" INCLUDE ({})", names(table, &index.included)));
    }
    if index.nulls_not_distinct {
        out.push_str(" NULLS NOT DISTINCT");
    }
    if let Some(predicate) = &index.predicate {
        out.push_str(&format!(" WHERE {}", shown_predicate(predicate)));
    }
    out
}

/// A predicate in parentheses, unless it has them or is a name or a call.
pub(super) fn shown_predicate(text: &str) -> Cow<'_, str> {
    let mut lexer = Lexer::new(text);
    let (mut depth, mut tokens, mut is_one, mut is_name) = (0_usize, 0, true, false);
    while let Some(next) = lexer.next() {
        // What stands behind a part in parentheses, or behind a name, needs them. The arguments of a call do not.
        is_one &= tokens == 0 || depth > 0 || (is_name && next.token == Token::Symbol('('));
        is_name = tokens == 0 && matches!(next.token, Token::Word(word) if !word.eq_ignore_ascii_case("not"));
        tokens += 1;
        match next.token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if is_one { text.into() } else { format!("({text})").into() }
}

fn order_text(key: &KeyView) -> &'static str {
    match (key.order.descends, key.order.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}

/// PRIMARY KEY or UNIQUE.
pub(super) fn key_definition(table: &Table, index: &IndexView) -> String {
    let kind = match (index.is_primary, index.nulls_not_distinct) {
        (true, _) => "PRIMARY KEY",
        (false, true) => "UNIQUE NULLS NOT DISTINCT",
        (false, false) => "UNIQUE",
    };
    let columns: Vec<&str> = index.keys.iter().map(|key| key.text.as_str()).collect();
    let included = match index.included.as_slice() {
        [] => String::new(),
        included => format!(" INCLUDE ({})", names(table, included)),
    };
    format!("{kind} ({}){included}", columns.join(", "))
}

/// FOREIGN KEY.
pub(super) fn foreign_key_definition(catalog: &Catalog, table: &Table, key: &ForeignKey) -> String {
    let parent = catalog.by_id(key.parent);
    let parent_name = parent.map_or_else(String::new, |parent| catalog.relation_text(parent.schema, &parent.name));
    let parent_columns: Vec<usize> =
        key.parent_columns.iter().filter_map(|id| parent.and_then(|parent| parent.position_of(*id))).collect();
    let referenced = parent.map_or_else(String::new, |parent| names(parent, &parent_columns));
    let mut out = format!("FOREIGN KEY ({}) REFERENCES {parent_name}({referenced})", names(table, &key.columns));
    if key.is_full {
        out.push_str(" MATCH FULL");
    }
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if let Some(word) = action_text(action) {
            out.push_str(&format!(" ON {event} {word}"));
        }
    }
    if key.is_deferrable {
        out.push_str(" DEFERRABLE");
    }
    out
}

/// The words of an action; `None` for the default one.
pub(super) fn action_text(action: ReferenceAction) -> Option<&'static str> {
    match action {
        ReferenceAction::NoAction => None,
        ReferenceAction::Restrict => Some("RESTRICT"),
        ReferenceAction::Cascade => Some("CASCADE"),
        ReferenceAction::SetNull => Some("SET NULL"),
        ReferenceAction::SetDefault => Some("SET DEFAULT"),
    }
}

fn names(table: &Table, places: &[usize]) -> String {
    let columns = places.iter().filter_map(|at| table.columns.get(*at));
    columns.map(|column| quote_identifier(&column.name)).collect::<Vec<_>>().join(", ")
}

/// The arguments of a function; with its defaults, or as they identify it.
pub(super) fn arguments(row: &ProcRow, with_defaults: bool) -> String {
    let first_default = row.args.len().saturating_sub(row.defaults.len());
    let mut shown = Vec::with_capacity(row.args.len());
    for (at, ty) in row.args.iter().enumerate() {
        let mode = if row.is_variadic && at + 1 == row.args.len() { "VARIADIC " } else { "" };
        let name = row.names.get(at).filter(|name| !name.is_empty());
        let name = name.map_or_else(String::new, |name| format!("{} ", quote_identifier(name)));
        let default = at.checked_sub(first_default).and_then(|at| row.defaults.get(at)).filter(|_| with_defaults);
        let default = match default {
            None => String::new(),
            Some(None) => format!(" DEFAULT NULL::{}", ty.name()),
            Some(Some(text)) => format!(" DEFAULT {}", constant(text, *ty)),
        };
        shown.push(format!("{mode}{name}{}{default}", ty.name()));
    }
    shown.extend(row.columns.iter().map(|(name, ty)| format!("OUT {} {}", quote_identifier(name), ty.name())));
    if let Run::OrderedSet(direct, _) = row.run {
        let ordered = shown.split_off(usize::from(direct).min(shown.len()));
        return format!("{} ORDER BY {}", shown.join(", "), ordered.join(", ")).trim_start().to_owned();
    }
    shown.join(", ")
}

fn constant(text: &str, ty: SqlType) -> String {
    let plain = ty.is_number() || ty == SqlType::BOOL;
    if plain { text.to_owned() } else { format!("'{}'::{}", text.replace('\'', "''"), ty.name()) }
}

/// The result of a function.
pub(super) fn result(row: &ProcRow) -> String {
    if row.is_listed_as_set() { format!("SETOF {}", row.result.name()) } else { row.result.name() }
}
