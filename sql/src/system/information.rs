//! The rows of `information_schema`: the same facts in the words of the SQL standard.

use std::sync::Arc;

use super::env::{Rows, SystemEnv, int, maybe, one_row, rows_of, text, yes};
use super::facts;
use super::names::shown_default;
use super::objects::{owner_of_schema, roles, schemas, sequences, views};
use super::producer::Producer;
use super::relations::{self, INFORMATION_SCHEMA, PG_CATALOG};
use super::tables::named_tables;
use crate::catalog::Catalog;
use crate::object::SchemaId;
use crate::object::{ObjectId, Sequence};
use crate::table::{Column, Identity, Table};
use pgtypes::functions::{self, ProcRow, Volatility};
use pgtypes::{Datum, Oid, SqlType};

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "information_schema.information_schema_catalog_name",
        constants: &[],
        columns: &["catalog_name"],
        rows: |env| one_row(vec![database(env)]),
    },
    Producer {
        relation: "information_schema.enabled_roles",
        constants: &[],
        columns: &["role_name"],
        rows: |env| rows_of(roles(env.session.user()).into_iter().map(|(_, name)| vec![text(name)]).collect()),
    },
    Producer {
        relation: "information_schema.schemata",
        constants: &[],
        columns: &["catalog_name", "schema_name", "schema_owner"],
        rows: |env| {
            let row = |(_, name)| vec![database(env), text(name), text(owner_of_schema(name).1)];
            rows_of(schemas(env.catalog()).into_iter().map(row).collect())
        },
    },
    Producer {
        relation: "information_schema.character_sets",
        constants: &[("character_set_name", "UTF8"), ("character_repertoire", "UCS"), ("form_of_use", "UTF8")],
        columns: &["default_collate_catalog"],
        rows: |env| one_row(vec![database(env)]),
    },
    Producer {
        relation: "information_schema.collations",
        constants: &[("collation_schema", "pg_catalog"), ("pad_attribute", "NO PAD")],
        columns: &["collation_catalog", "collation_name"],
        rows: |env| {
            let names = ["default", "C", "POSIX", "ucs_basic"];
            rows_of(names.iter().map(|name| vec![database(env), text(name)]).collect())
        },
    },
    Producer {
        relation: "information_schema.tables",
        constants: &[("is_typed", "NO")],
        columns: &["table_catalog", "table_schema", "table_name", "table_type", "is_insertable_into"],
        rows: table_rows,
    },
    Producer {
        relation: "information_schema.views",
        constants: &[
            ("check_option", "NONE"),
            ("is_updatable", "NO"),
            ("is_insertable_into", "NO"),
            ("is_trigger_updatable", "NO"),
            ("is_trigger_deletable", "NO"),
            ("is_trigger_insertable_into", "NO"),
        ],
        columns: &["table_catalog", "table_schema", "table_name", "view_definition"],
        rows: |env| {
            let database = database(env);
            let row = move |schema: &str, name: &str, definition: Datum| {
                vec![database.clone(), text(schema), text(name), definition]
            };
            let of_user = row.clone();
            let system = relations::all().iter().filter(|relation| relation.is_view);
            let system = system.map(move |relation| row(relation.schema.1, &relation.table.name, Datum::Null));
            let views = views(env.catalog()).into_iter();
            Box::new(
                system.chain(views.map(move |view| of_user(&view.schema, &view.table.name, text(view.definition)))),
            )
        },
    },
    Producer {
        relation: "information_schema.columns",
        constants: &[("is_self_referencing", "NO")],
        columns: &[
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "column_default",
            "is_nullable",
            "dtd_identifier",
            "is_updatable",
            "udt_catalog",
            "udt_schema",
            "udt_name",
            "data_type",
            "domain_catalog",
            "domain_schema",
            "domain_name",
            "collation_catalog",
            "collation_schema",
            "collation_name",
            "character_maximum_length",
            "character_octet_length",
            "numeric_precision",
            "numeric_precision_radix",
            "numeric_scale",
            "datetime_precision",
            "interval_type",
            "is_identity",
            "identity_generation",
            "identity_start",
            "identity_increment",
            "identity_maximum",
            "identity_minimum",
            "identity_cycle",
            "is_generated",
            "generation_expression",
        ],
        rows: column_rows,
    },
    Producer {
        relation: "information_schema.routines",
        constants: &[
            ("specific_schema", "pg_catalog"),
            ("routine_schema", "pg_catalog"),
            ("type_udt_schema", "pg_catalog"),
            ("dtd_identifier", "0"),
            ("routine_body", "EXTERNAL"),
            ("external_language", "INTERNAL"),
            ("parameter_style", "GENERAL"),
            ("sql_data_access", "MODIFIES"),
            ("schema_level_routine", "YES"),
            ("max_dynamic_result_sets", "0"),
            ("security_type", "INVOKER"),
            ("as_locator", "NO"),
            ("is_udt_dependent", "NO"),
        ],
        columns: &[
            "specific_catalog",
            "routine_catalog",
            "type_udt_catalog",
            "specific_name",
            "routine_name",
            "routine_type",
            "data_type",
            "type_udt_name",
            "is_deterministic",
            "is_null_call",
        ],
        rows: |env| {
            let database = database(env);
            Box::new(functions::all().map(move |function| routine(&database, function)))
        },
    },
    Producer {
        relation: "information_schema.parameters",
        constants: &[
            ("specific_schema", "pg_catalog"),
            ("udt_schema", "pg_catalog"),
            ("is_result", "NO"),
            ("as_locator", "NO"),
        ],
        columns: &[
            "specific_catalog",
            "udt_catalog",
            "specific_name",
            "ordinal_position",
            "parameter_mode",
            "parameter_name",
            "data_type",
            "udt_name",
            "dtd_identifier",
        ],
        rows: |env| {
            let database = database(env);
            Box::new(functions::all().flat_map(move |function| parameters(&database, function)))
        },
    },
];

fn database(env: &SystemEnv<'_>) -> Datum {
    text(env.session.database())
}

fn table_rows(env: &SystemEnv<'_>) -> Rows {
    let database = database(env);
    let row = move |schema: &str, table: &Table, kind: &str, can_insert: bool| {
        vec![database.clone(), text(schema), text(&table.name), text(kind), yes(can_insert)]
    };
    let of_user = row.clone();
    let system = relations::all().iter().map(move |relation| {
        let kind = if relation.is_view { "VIEW" } else { "BASE TABLE" };
        row(relation.schema.1, &relation.table, kind, false)
    });
    let of_view = of_user.clone();
    let catalog = env.catalog();
    let temporary: Vec<SchemaId> =
        catalog.schemas().filter(|schema| schema.session_node.is_some()).map(|schema| schema.id).collect();
    let tables = named_tables(env).map(move |(schema, table)| {
        let kind = if temporary.contains(&table.schema) { "LOCAL TEMPORARY" } else { "BASE TABLE" };
        of_user(&schema, &table, kind, true)
    });
    let views = views(env.catalog()).into_iter();
    Box::new(system.chain(tables).chain(views.map(move |view| of_view(&view.schema, &view.table, "VIEW", false))))
}

fn column_rows(env: &SystemEnv<'_>) -> Rows {
    let database = database(env);
    let of_user = database.clone();
    let (catalog, sequences) = (env.catalog().clone(), sequences(env.catalog()));
    let system = relations::all().iter().flat_map(move |relation| {
        let database = database.clone();
        let declared = relation.table.columns.iter().zip(&relation.declared);
        declared.map(move |(column, (ty, collation))| {
            let (schema, table) = (relation.schema.1, &*relation.table);
            let place = Place { database: &database, schema, table, default: None, generated: None, sequence: None };
            place.row(column, *ty, *collation, false)
        })
    });
    let tables = named_tables(env).map(|(schema, table)| (schema, table, true));
    let views = views(env.catalog()).into_iter().map(|view| (view.schema, Arc::new(view.table), false));
    Box::new(system.chain(tables.chain(views).flat_map(move |(schema, table, is_table)| {
        let row = |column: &Column| {
            let owner = Some((ObjectId(table.id.0), column.id.0));
            let sequence = sequences.iter().find(|sequence| sequence.owner == owner && column.identity.is_some());
            let default = shown_default(column, &catalog);
            let generated = column.generated.as_deref().map(|text| catalog.shown_text(text).into_owned());
            let place = Place { database: &of_user, schema: &schema, table: &table, default, generated, sequence };
            let collation = facts::of_type(column.ty).map_or(Oid::NONE, |facts| facts.collation);
            let mut row = place.row(column, column.ty.oid, collation, is_table);
            if let Some((schema, name)) = user_type(&catalog, column.ty) {
                let shown = if column.ty.is_array() { "ARRAY" } else { "USER-DEFINED" };
                row.splice(10..13, [text(schema), text(name), text(shown)]);
            }
            if let Some(domain) = column.domain.and_then(|domain| catalog.domain(domain)) {
                row.splice(13..16, [of_user.clone(), schema_text(&catalog, domain.schema), text(&domain.name)]);
                if domain.not_null {
                    row.splice(6..7, [yes(false)]);
                }
                if let Some(parent) = domain.parent.and_then(|parent| catalog.domain(parent)) {
                    let shown = [schema_text(&catalog, parent.schema), text(&parent.name), text("USER-DEFINED")];
                    row.splice(10..13, shown);
                    row.splice(19..26, [const { Datum::Null }; 7]);
                }
            }
            row
        };
        table.columns.iter().map(row).collect::<Vec<_>>()
    })))
}

/// Where a column is.
struct Place<'a> {
    database: &'a Datum,
    schema: &'a str,
    table: &'a Table,
    /// The default of the column, and the sequence of its identity.
    default: Option<String>,
    /// The expression that it is generated by.
    generated: Option<String>,
    sequence: Option<&'a Sequence>,
}

impl Place<'_> {
    fn row(&self, column: &Column, declared: Oid, collation: Oid, is_updatable: bool) -> Vec<Datum> {
        let domain = facts::domains().iter().find(|domain| domain.oid == declared);
        let (database, in_catalog) = (self.database.clone(), text(PG_CATALOG.1));
        let of_domain = |value: Datum| domain.map_or(Datum::Null, |_| value);
        // The collation of most texts is that of the database, and goes without saying.
        let collation = match collation.0 {
            950 => Some("C"),
            951 => Some("POSIX"),
            _ => None,
        };
        let collated = |value: Datum| collation.map_or(Datum::Null, |_| value);
        let mut row = vec![
            database.clone(),
            text(self.schema),
            text(&self.table.name),
            text(&column.name),
            int(column.id.0),
            maybe(self.default.as_ref()),
            yes(!column.not_null),
            text(column.id.0.to_string()),
            yes(is_updatable),
            database.clone(),
            in_catalog.clone(),
            text(column.ty.row().name),
            text(standard_name(column.ty)),
            of_domain(database.clone()),
            of_domain(text(INFORMATION_SCHEMA.1)),
            maybe(domain.map(|domain| domain.name)),
            collated(database),
            collated(in_catalog),
            maybe(collation),
        ];
        row.extend(sizes(column.ty));
        row.extend(identity(column, self.sequence));
        row.push(text(if self.generated.is_some() { "ALWAYS" } else { "NEVER" }));
        row.push(maybe(self.generated.as_ref()));
        row
    }
}

/// What the columns about identity say.
fn identity(column: &Column, sequence: Option<&Sequence>) -> [Datum; 7] {
    let number = |value: fn(&Sequence) -> i64| maybe(sequence.map(|sequence| value(sequence).to_string()));
    let generation = column.identity.map(|identity| match identity {
        Identity::Always => "ALWAYS",
        Identity::ByDefault => "BY DEFAULT",
    });
    [
        yes(column.identity.is_some()),
        maybe(generation),
        number(|sequence| sequence.start),
        number(|sequence| sequence.increment),
        number(|sequence| sequence.max),
        number(|sequence| sequence.min),
        yes(sequence.is_some_and(|sequence| sequence.cycles)),
    ]
}

/// The name of a schema.
pub(super) fn schema_text(catalog: &Catalog, schema: SchemaId) -> Datum {
    maybe(catalog.schema_by_id(schema).map(|schema| &schema.name))
}

/// Schema and name of a user's type.
pub(super) fn user_type(catalog: &Catalog, ty: SqlType) -> Option<(String, String)> {
    let element = ty.scalar();
    let found = catalog.enum_type(element.oid)?;
    let schema = catalog.schema_by_id(found.schema)?.name.clone();
    let underscore = if element == ty { "" } else { "_" };
    Some((schema, format!("{underscore}{}", found.name)))
}

/// The name of a type in `data_type`.
pub(super) fn standard_name(ty: SqlType) -> &'static str {
    if ty.is_array() { "ARRAY" } else { ty.row().sql_name }
}

/// Lengths and precisions of a type: the last seven columns.
pub(super) fn sizes(ty: SqlType) -> [Datum; 7] {
    const NULL: Datum = Datum::Null;
    let none = [NULL; 7];
    let [length, octets, precision, radix, scale, moment, kind] = none;
    match ty.base() {
        SqlType::VARCHAR | SqlType::BPCHAR if ty.typmod >= 0 => {
            let characters = ty.length().unwrap_or(0);
            [int(characters), int(characters.saturating_mul(4)), precision, radix, scale, moment, kind]
        }
        SqlType::TEXT | SqlType::VARCHAR | SqlType::BPCHAR => {
            [length, int(1_073_741_824), precision, radix, scale, moment, kind]
        }
        SqlType::INT2 => [length, octets, int(16), int(2), int(0), moment, kind],
        SqlType::INT4 => [length, octets, int(32), int(2), int(0), moment, kind],
        SqlType::INT8 => [length, octets, int(64), int(2), int(0), moment, kind],
        SqlType::FLOAT4 => [length, octets, int(24), int(2), scale, moment, kind],
        SqlType::FLOAT8 => [length, octets, int(53), int(2), scale, moment, kind],
        SqlType::NUMERIC if ty.typmod >= 4 => {
            let packed = ty.typmod - 4;
            // PostgreSQL shows the eleven bits of a scale, also of a negative one.
            [length, octets, int((packed >> 16) & 0xffff), int(10), int(packed & 0x7ff), moment, kind]
        }
        SqlType::NUMERIC => [length, octets, precision, int(10), scale, moment, kind],
        SqlType::DATE => [length, octets, precision, radix, scale, int(0), kind],
        SqlType::TIME | SqlType::TIMETZ | SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ => {
            let digits = if ty.typmod >= 0 { ty.typmod } else { 6 };
            [length, octets, precision, radix, scale, int(digits), kind]
        }
        SqlType::INTERVAL => {
            let digits = if ty.typmod < 0 { 6 } else { ty.typmod & 0xffff };
            let digits = if digits == 0xffff { 6 } else { digits };
            let fields = interval_fields(ty);
            [length, octets, precision, radix, scale, int(digits), maybe(fields)]
        }
        _ => [length, octets, precision, radix, scale, moment, kind],
    }
}

/// The fields of an interval in upper case: `DAY TO SECOND(3)`.
fn interval_fields(ty: SqlType) -> Option<String> {
    ty.name().strip_prefix("interval ").map(str::to_ascii_uppercase)
}

fn specific_name(function: &ProcRow) -> Datum {
    text(format!("{}_{}", function.name, function.oid))
}

fn routine(database: &Datum, function: &'static ProcRow) -> Vec<Datum> {
    let (kind, result) = if function.is_aggregate() {
        (Datum::Null, Datum::Null)
    } else {
        (text("FUNCTION"), text(standard_name(function.result)))
    };
    vec![
        database.clone(),
        database.clone(),
        database.clone(),
        specific_name(function),
        text(function.name),
        kind,
        result,
        text(function.result.row().name),
        yes(function.volatility == Volatility::Immutable),
        yes(function.is_strict && !function.is_aggregate()),
    ]
}

fn parameters(database: &Datum, function: &'static ProcRow) -> Vec<Vec<Datum>> {
    let inputs = function.args.iter().enumerate().map(|(at, ty)| (function.names.get(at).copied(), *ty, "IN"));
    let outputs = function.columns.iter().map(|(name, ty)| (Some(*name), *ty, "OUT"));
    let row = |(at, (name, ty, mode)): (usize, (Option<&str>, SqlType, &str))| {
        vec![
            database.clone(),
            database.clone(),
            specific_name(function),
            int(at + 1),
            text(mode),
            maybe(name.filter(|name| !name.is_empty())),
            text(standard_name(ty)),
            text(ty.row().name),
            text((at + 1).to_string()),
        ]
    };
    inputs.chain(outputs).enumerate().map(row).collect()
}
