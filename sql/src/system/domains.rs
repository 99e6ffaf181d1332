//! What `information_schema` says of domains: those of users, and its own.

use super::env::{Rows, SystemEnv, maybe, rows_of, text};
use super::facts;
use super::information::{schema_text, sizes, standard_name, user_type};
use super::names::shown_default;
use super::objects::domains;
use super::producer::Producer;
use super::relations::{INFORMATION_SCHEMA, PG_CATALOG};
use super::tables::named_tables;
use crate::catalog::Catalog;
use crate::object::Domain;
use pgtypes::{Datum, SqlType};

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "information_schema.domains",
        constants: &[("dtd_identifier", "1")],
        columns: &[
            "domain_catalog",
            "domain_schema",
            "domain_name",
            "udt_catalog",
            "udt_schema",
            "udt_name",
            "data_type",
            "domain_default",
            "character_maximum_length",
            "character_octet_length",
            "numeric_precision",
            "numeric_precision_radix",
            "numeric_scale",
            "datetime_precision",
            "interval_type",
        ],
        rows: domain_rows,
    },
    Producer {
        relation: "information_schema.domain_constraints",
        constants: &[("is_deferrable", "NO"), ("initially_deferred", "NO")],
        columns: &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "domain_catalog",
            "domain_schema",
            "domain_name",
        ],
        rows: |env| {
            let mut rows = Vec::new();
            for domain in domains(env.catalog()) {
                let [database, schema, name] = named(&domain, env);
                rows.extend(domain.checks.iter().map(|check| {
                    let constraint = [database.clone(), schema.clone(), text(&check.name)];
                    let of = [database.clone(), schema.clone(), name.clone()];
                    constraint.into_iter().chain(of).collect::<Vec<Datum>>()
                }));
            }
            rows_of(rows)
        },
    },
    Producer {
        relation: "information_schema.domain_udt_usage",
        constants: &[],
        columns: &["udt_catalog", "udt_schema", "udt_name", "domain_catalog", "domain_schema", "domain_name"],
        rows: |env| {
            let row = |domain: &Domain| {
                let [udt_schema, udt_name, _] = made_of(domain, env.catalog());
                let [database, schema, name] = named(domain, env);
                vec![database.clone(), udt_schema, udt_name, database, schema, name]
            };
            rows_of(domains(env.catalog()).iter().map(row).collect())
        },
    },
    Producer {
        relation: "information_schema.column_domain_usage",
        constants: &[],
        columns: &[
            "domain_catalog",
            "domain_schema",
            "domain_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
        ],
        rows: |env| {
            let mut rows = Vec::new();
            for (schema, table) in named_tables(env) {
                for column in &table.columns {
                    let Some(domain) = column.domain.and_then(|domain| env.catalog().domain(domain)) else { continue };
                    let [database, domain_schema, name] = named(domain, env);
                    let of_domain = [database.clone(), domain_schema, name, database];
                    let of_column = [text(&schema), text(&table.name), text(&column.name)];
                    rows.push(of_domain.into_iter().chain(of_column).collect());
                }
            }
            rows_of(rows)
        },
    },
];

/// Database, schema and name of a domain.
fn named(domain: &Domain, env: &SystemEnv<'_>) -> [Datum; 3] {
    [text(env.session.database()), schema_text(env.catalog(), domain.schema), text(&domain.name)]
}

/// Schema and name of the type that a domain is made of, and what `data_type` calls it.
fn made_of(domain: &Domain, catalog: &Catalog) -> [Datum; 3] {
    if let Some(parent) = domain.parent.and_then(|parent| catalog.domain(parent)) {
        return [schema_text(catalog, parent.schema), text(&parent.name), text("USER-DEFINED")];
    }
    match user_type(catalog, domain.base) {
        Some((schema, name)) => [text(schema), text(name), text("USER-DEFINED")],
        None => of_system(domain.base),
    }
}

fn of_system(base: SqlType) -> [Datum; 3] {
    // Unlike those of columns, arrays have their own names here.
    let shown = if base.is_array() { base.base().name() } else { standard_name(base).to_owned() };
    [text(PG_CATALOG.1), text(base.row().name), text(shown)]
}

fn domain_rows(env: &SystemEnv<'_>) -> Rows {
    let database = text(env.session.database());
    let own = facts::domains().iter().map(|domain| {
        // The only default that PostgreSQL gives to one of them.
        let default = (domain.name == "time_stamp").then_some("CURRENT_TIMESTAMP(2)");
        let mut row = vec![database.clone(), text(INFORMATION_SCHEMA.1), text(domain.name), database.clone()];
        row.extend(of_system(domain.base));
        row.push(maybe(default));
        row.extend(sizes(domain.base));
        row
    });
    let mut rows: Vec<Vec<Datum>> = own.collect();
    rows.extend(domains(env.catalog()).iter().map(|domain| {
        let [database, schema, name] = named(domain, env);
        let mut row = vec![database.clone(), schema, name, database];
        row.extend(made_of(domain, env.catalog()));
        row.push(maybe(shown_default(&domain.as_column(), env.catalog())));
        row.extend(if domain.parent.is_some() { [const { Datum::Null }; 7] } else { sizes(domain.base) });
        row
    }));
    rows_of(rows)
}
