//! Constraints and indexes in the system catalog: `pg_constraint`, `pg_index`, and what `information_schema` says of
//! them.

use std::borrow::Cow;
use std::sync::Arc;

use super::describe::{action_text, foreign_key_definition, key_definition, shown_predicate};
use super::env::{Rows, SystemEnv, array, int, oid, rows_of, text, vector};
use super::facts;
use super::objects::{IndexView, domains, indexes, schema_of};
use super::pretty::pretty;
use super::producer::Producer;
use super::tables::{each_index, tables};
use crate::catalog::Catalog;
use crate::object::Domain;
use crate::table::{Check, Column, ForeignKey, KeyOf, ReferenceAction, Table};
use pgtypes::{Datum, Oid, SqlType};

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "pg_index",
        constants: &[
            ("indisexclusion", "f"),
            ("indimmediate", "t"),
            ("indisclustered", "f"),
            ("indisvalid", "t"),
            ("indcheckxmin", "f"),
            ("indisready", "t"),
            ("indislive", "t"),
            ("indisreplident", "f"),
        ],
        columns: &[
            "indexrelid",
            "indrelid",
            "indnatts",
            "indnkeyatts",
            "indisunique",
            "indnullsnotdistinct",
            "indisprimary",
            "indkey",
            "indcollation",
            "indclass",
            "indoption",
            "indexprs",
            "indpred",
        ],
        rows: |env| each_index(env, index),
    },
    Producer {
        relation: "pg_constraint",
        constants: &[
            ("condeferred", "f"),
            ("convalidated", "t"),
            ("conparentid", "0"),
            ("conislocal", "t"),
            ("coninhcount", "0"),
            ("connoinherit", "t"),
        ],
        columns: &[
            "oid",
            "conname",
            "connamespace",
            "contype",
            "condeferrable",
            "conrelid",
            "conindid",
            "confrelid",
            "confupdtype",
            "confdeltype",
            "confmatchtype",
            "conkey",
            "confkey",
            "conbin",
            "contypid",
        ],
        rows: constraints,
    },
    Producer {
        relation: "information_schema.table_constraints",
        constants: &[("initially_deferred", "NO"), ("enforced", "YES")],
        columns: &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "constraint_type",
            "is_deferrable",
            "nulls_distinct",
        ],
        rows: |env| {
            each(env, |place| {
                let row = |constraint: &Constraint<'_>| {
                    let (kind, distinct) = match constraint.kind {
                        Kind::Key(index) if index.is_primary => ("PRIMARY KEY", Datum::Null),
                        Kind::Key(index) => ("UNIQUE", text(if index.nulls_not_distinct { "NO" } else { "YES" })),
                        Kind::Check(_) | Kind::NotNull(_) => ("CHECK", Datum::Null),
                        Kind::Foreign(_) => ("FOREIGN KEY", Datum::Null),
                    };
                    let is_deferrable = matches!(constraint.kind, Kind::Foreign(key) if key.is_deferrable);
                    let mut row = place.row(constraint);
                    row.extend(place.table_row());
                    row.extend([text(kind), text(if is_deferrable { "YES" } else { "NO" }), distinct]);
                    row
                };
                place.constraints().iter().map(row).collect()
            })
        },
    },
    Producer {
        relation: "information_schema.check_constraints",
        constants: &[],
        columns: &["constraint_catalog", "constraint_schema", "constraint_name", "check_clause"],
        rows: |env| {
            let of_tables = each(env, |place| {
                let row = |constraint: &Constraint<'_>| {
                    let clause = match constraint.kind {
                        Kind::Check(check) => format!("({})", whole(&place.catalog.shown_text(&check.text))),
                        Kind::NotNull(column) => format!("{} IS NOT NULL", column.name),
                        Kind::Key(_) | Kind::Foreign(_) => return None,
                    };
                    let mut row = place.row(constraint);
                    row.push(text(clause));
                    Some(row)
                };
                place.constraints().iter().filter_map(row).collect()
            });
            Box::new(of_tables.chain(checks_of_domains(env)))
        },
    },
    Producer {
        relation: "information_schema.key_column_usage",
        constants: &[],
        columns: &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "position_in_unique_constraint",
        ],
        rows: |env| {
            each(env, |place| {
                let rows = |constraint: &Constraint<'_>| {
                    let columns: Vec<usize> = match constraint.kind {
                        Kind::Key(index) => index.keys.iter().filter_map(|key| key.column).collect(),
                        Kind::Foreign(key) => key.columns.clone(),
                        Kind::Check(_) | Kind::NotNull(_) => Vec::new(),
                    };
                    let column = |(at, place_of): (usize, usize)| {
                        let mut row = place.row(constraint);
                        row.extend(place.table_row());
                        row.push(place.table.columns.get(place_of).map_or(Datum::Null, |column| text(&column.name)));
                        row.push(int(at + 1));
                        row.push(place.position_in_key(constraint, at).map_or(Datum::Null, int));
                        row
                    };
                    columns.into_iter().enumerate().map(column).collect::<Vec<_>>()
                };
                place.constraints().iter().flat_map(rows).collect()
            })
        },
    },
    Producer {
        relation: "information_schema.constraint_column_usage",
        constants: &[],
        columns: &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
        ],
        rows: |env| {
            each(env, |place| {
                let rows = |constraint: &Constraint<'_>| place.used_columns(constraint);
                place.constraints().iter().flat_map(rows).collect()
            })
        },
    },
    Producer {
        relation: "information_schema.referential_constraints",
        constants: &[],
        columns: &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "unique_constraint_catalog",
            "unique_constraint_schema",
            "unique_constraint_name",
            "match_option",
            "update_rule",
            "delete_rule",
        ],
        rows: |env| {
            each(env, |place| {
                let row = |constraint: &Constraint<'_>| {
                    let Kind::Foreign(key) = constraint.kind else { return None };
                    let parent = place.catalog.by_id(key.parent)?;
                    let unique = place.catalog.name_of_relation(key_index(parent, key).0)?;
                    let mut row = place.row(constraint);
                    row.extend([place.database.clone(), text(schema_of(place.catalog, parent)), text(unique.1)]);
                    row.push(text(if key.is_full { "FULL" } else { "NONE" }));
                    let rules = [key.on_update, key.on_delete];
                    row.extend(rules.map(|action| text(action_text(action).unwrap_or("NO ACTION"))));
                    Some(row)
                };
                place.constraints().iter().filter_map(row).collect()
            })
        },
    },
];

/// A table of the session's database, for `information_schema`.
struct Place<'e> {
    catalog: &'e Catalog,
    database: Datum,
    schema: &'e str,
    table: &'e Table,
    indexes: Vec<IndexView>,
}

/// A constraint as `information_schema` counts them: NOT NULL is one.
struct Constraint<'t> {
    name: String,
    kind: Kind<'t>,
}

#[derive(Clone, Copy)]
enum Kind<'t> {
    Key(&'t IndexView),
    Check(&'t Check),
    NotNull(&'t Column),
    Foreign(&'t ForeignKey),
}

/// The rows that each table gives.
fn each(env: &SystemEnv<'_>, rows: fn(&Place<'_>) -> Vec<Vec<Datum>>) -> Rows {
    let catalog = env.catalog();
    let of_table = |table: Arc<Table>| {
        let database = text(env.session.database());
        let schema = schema_of(catalog, &table);
        rows(&Place { catalog, database, schema, table: &table, indexes: indexes(&table, catalog) })
    };
    rows_of(tables(env).flat_map(of_table).collect())
}

/// The checks of domains, as `information_schema` shows them.
fn checks_of_domains(env: &SystemEnv<'_>) -> Vec<Vec<Datum>> {
    let (catalog, database) = (env.catalog(), text(env.session.database()));
    let mut rows = Vec::new();
    for domain in domains(catalog) {
        let schema = catalog.schema_by_id(domain.schema).map_or("", |schema| &schema.name);
        rows.extend(domain.checks.iter().map(|check| {
            vec![
                database.clone(),
                text(schema),
                text(&check.name),
                text(format!("(({}))", catalog.shown_text(&check.text))),
            ]
        }));
    }
    rows
}

impl Place<'_> {
    fn constraints(&self) -> Vec<Constraint<'_>> {
        let keys = self.indexes.iter().filter(|index| index.constraint.is_some());
        let keys = keys.map(|index| Constraint { name: index.name.clone(), kind: Kind::Key(index) });
        let checks = self.table.checks.iter();
        let checks = checks.map(|check| Constraint { name: check.name.clone(), kind: Kind::Check(check) });
        let foreign = self.table.foreign_keys.iter();
        let foreign = foreign.map(|key| Constraint { name: key.name.clone(), kind: Kind::Foreign(key) });
        let required = self.table.columns.iter().filter(|column| column.not_null).map(|column| Constraint {
            name: format!("{}_{}_{}_not_null", self.table.schema.0, self.table.id, column.id.0),
            kind: Kind::NotNull(column),
        });
        keys.chain(checks).chain(foreign).chain(required).collect()
    }

    /// Database, schema and name of a constraint.
    fn row(&self, constraint: &Constraint<'_>) -> Vec<Datum> {
        vec![self.database.clone(), text(self.schema), text(&constraint.name)]
    }

    /// Database, schema and name of the table.
    fn table_row(&self) -> [Datum; 3] {
        [self.database.clone(), text(self.schema), text(&self.table.name)]
    }

    /// For a column of a foreign key: the place of the one that it refers to in the key there.
    fn position_in_key(&self, constraint: &Constraint<'_>, at: usize) -> Option<usize> {
        let Kind::Foreign(key) = constraint.kind else { return None };
        let parent = self.catalog.by_id(key.parent)?;
        let wanted = parent.position_of(*key.parent_columns.get(at)?)?;
        let index = key_index(parent, key);
        let unique = indexes(parent, self.catalog).into_iter().find(|known| known.oid == index)?;
        unique.keys.iter().position(|known| known.column == Some(wanted)).map(|at| at + 1)
    }

    /// The columns that a constraint uses: of a foreign key, those that it refers to.
    fn used_columns(&self, constraint: &Constraint<'_>) -> Vec<Vec<Datum>> {
        let (schema, table, columns): (&str, &Table, Vec<&str>) = match constraint.kind {
            Kind::Key(index) => {
                (self.schema, self.table, index.columns(self.table).map(|column| column.name.as_str()).collect())
            }
            Kind::Foreign(key) => {
                let Some(parent) = self.catalog.by_id(key.parent) else { return Vec::new() };
                let columns = key.parent_columns.iter().filter_map(|id| parent.columns.get(parent.position_of(*id)?));
                (schema_of(self.catalog, parent), parent, columns.map(|column| column.name.as_str()).collect())
            }
            Kind::Check(check) => {
                let columns =
                    check.columns.iter().filter_map(|id| self.table.columns.get(self.table.position_of(*id)?));
                (self.schema, self.table, columns.map(|column| column.name.as_str()).collect())
            }
            Kind::NotNull(_) => return Vec::new(),
        };
        let row = |column: &str| {
            let mut row = self.row(constraint);
            row.extend([self.database.clone(), text(schema), text(&table.name), text(column)]);
            row
        };
        columns.into_iter().map(row).collect()
    }
}

fn index(table: &Table, index: &IndexView) -> Vec<Datum> {
    let collation = |ty| facts::of_type(ty).map_or(Oid::NONE, |facts| facts.collation);
    let number = |at: usize| table.columns.get(at).map_or(0, |column| column.id.0);
    let keys = index.keys.iter().map(|key| key.column.map_or(0, number));
    let included = index.included.iter().map(|at| number(*at));
    let expressions: Vec<&str> =
        index.keys.iter().filter(|key| key.column.is_none()).map(|key| key.text.as_str()).collect();
    // In PostgreSQL's order of bits: DESC, NULLS FIRST.
    let option = |descends, nulls_first| u8::from(descends) + 2 * u8::from(nulls_first);
    vec![
        oid(index.oid),
        int(table.id.0),
        int(index.keys.len() + index.included.len()),
        int(index.keys.len()),
        Datum::Bool(index.is_unique),
        Datum::Bool(index.nulls_not_distinct),
        Datum::Bool(index.is_primary),
        vector(SqlType::INT2, keys.chain(included).map(int).collect()),
        vector(SqlType::OID, index.keys.iter().map(|key| oid(collation(key.ty))).collect()),
        vector(SqlType::OID, index.keys.iter().map(|key| oid(facts::operator_class(key.ty))).collect()),
        vector(
            SqlType::INT2,
            index.keys.iter().map(|key| int(option(key.order.descends, key.order.nulls_first))).collect(),
        ),
        if expressions.is_empty() { Datum::Null } else { text(expressions.join(", ")) },
        index.predicate.as_deref().map_or(Datum::Null, |predicate| text(shown_predicate(predicate))),
    ]
}

/// A row of `pg_constraint` without what most constraints do not have.
fn row(table: &Table, (number, name, kind): (Oid, &str, &str), columns: Datum) -> Vec<Datum> {
    vec![
        oid(number),
        text(name),
        int(table.schema.0),
        text(kind),
        Datum::Bool(false),
        int(table.id.0),
        int(0),
        int(0),
        text(" "),
        text(" "),
        text(" "),
        columns,
        Datum::Null,
        Datum::Null,
        int(0),
    ]
}

fn numbers<'t>(columns: impl Iterator<Item = &'t Column>) -> Datum {
    array(SqlType::INT2, columns.map(|column| int(column.id.0)).collect())
}

fn constraints(env: &SystemEnv<'_>) -> Rows {
    let catalog = env.catalog();
    let mut rows = Vec::new();
    for table in tables(env) {
        for index in indexes(&table, catalog) {
            let Some(number) = index.constraint else { continue };
            let kind = if index.is_primary { "p" } else { "u" };
            let mut of_key = row(&table, (number, &index.name, kind), numbers(index.columns(&table)));
            of_key[6] = oid(index.oid);
            rows.push(of_key);
        }
        for check in &table.checks {
            let columns = check.columns.iter().filter_map(|id| table.columns.get(table.position_of(*id)?));
            let columns = if check.columns.is_empty() { Datum::Null } else { numbers(columns) };
            let mut of_check = row(&table, (Oid(check.id.0), &check.name, "c"), columns);
            of_check[13] = text(catalog.shown_text(&check.text));
            rows.push(of_check);
        }
        rows.extend(table.foreign_keys.iter().map(|key| foreign_key(catalog, &table, key)));
    }
    rows.extend(
        domains(catalog).iter().flat_map(|domain| domain.checks.iter().map(|check| of_domain(catalog, domain, check))),
    );
    rows_of(rows)
}

/// A check of a domain.
fn of_domain(catalog: &Catalog, domain: &Domain, check: &Check) -> Vec<Datum> {
    let (none, letter) = (Datum::Null, |letter: &str| text(letter));
    vec![
        int(check.id.0),
        text(&check.name),
        int(domain.schema.0),
        letter("c"),
        Datum::Bool(false),
        int(0),
        int(0),
        int(0),
        letter(" "),
        letter(" "),
        letter(" "),
        none.clone(),
        none,
        text(catalog.shown_text(&check.text)),
        int(domain.id.0),
    ]
}

fn foreign_key(catalog: &Catalog, table: &Arc<Table>, key: &ForeignKey) -> Vec<Datum> {
    let columns = key.columns.iter().filter_map(|at| table.columns.get(*at));
    let mut out = row(table, (Oid(key.id.0), &key.name, "f"), numbers(columns));
    out[4] = Datum::Bool(key.is_deferrable);
    out[6] = oid(catalog.by_id(key.parent).map_or(Oid::NONE, |parent| key_index(parent, key)));
    out[7] = int(key.parent.0);
    out[8] = text(letter(key.on_update));
    out[9] = text(letter(key.on_delete));
    out[10] = text(if key.is_full { "f" } else { "s" });
    out[12] = array(SqlType::INT2, key.parent_columns.iter().map(|id| int(id.0)).collect());
    out
}

/// The index that makes the referenced columns unique.
fn key_index(parent: &Table, key: &ForeignKey) -> Oid {
    let places: Vec<usize> = key.parent_columns.iter().filter_map(|id| parent.position_of(*id)).collect();
    match parent.key_of(&places) {
        Some(KeyOf::Primary) => Oid(parent.key_id.0),
        Some(KeyOf::Index(at)) => parent.indexes.get(at).map_or(Oid::NONE, |index| Oid(index.id.0)),
        None => Oid::NONE,
    }
}

fn letter(action: ReferenceAction) -> &'static str {
    match action {
        ReferenceAction::NoAction => "a",
        ReferenceAction::Restrict => "r",
        ReferenceAction::Cascade => "c",
        ReferenceAction::SetNull => "n",
        ReferenceAction::SetDefault => "d",
    }
}

/// A condition in parentheses, unless it is a name or a call, or has them already.
fn whole(text: &str) -> Cow<'_, str> {
    let name_end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let rest = text.get(name_end..).unwrap_or_default();
    if rest.is_empty() || closes_at_end(rest) { text.into() } else { format!("({text})").into() }
}

/// Whether a text is one pair of parentheses with all that is in them.
fn closes_at_end(text: &str) -> bool {
    let (mut depth, mut in_text) = (0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => in_text = !in_text,
            '(' if !in_text => depth += 1,
            ')' if !in_text => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1 == text.len();
                }
            }
            _ if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// The definition of a constraint by its OID. `is_pretty`: without parentheses that are not needed.
pub(super) fn definition(catalog: &Catalog, number: Oid, is_pretty: bool) -> Option<String> {
    let shown = |check: &Check| match is_pretty {
        true => format!("CHECK ({})", pretty(&catalog.shown_text(&check.text))),
        false => format!("CHECK ({})", whole(&catalog.shown_text(&check.text))),
    };
    let is_it = |check: &&Check| check.id.0 == number.0;
    let Some(table) = catalog.table_of_part(number.0) else {
        return catalog.check_of_domain(number.0).as_ref().map(shown);
    };
    if let Some(index) = indexes(table, catalog).into_iter().find(|index| index.constraint == Some(number)) {
        return Some(key_definition(table, &index));
    }
    if let Some(check) = table.checks.iter().find(is_it) {
        return Some(shown(check));
    }
    let key = table.foreign_keys.iter().find(|key| key.id.0 == number.0)?;
    Some(foreign_key_definition(catalog, table, key))
}
