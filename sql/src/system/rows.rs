//! From a relation of the system to its rows: each has a producer, or is known to be empty, or is refused.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::env::{ClusterSource, Rows, SystemEnv, no_rows};
use super::producer::Producer;
use super::relations::{self, Relation};
use super::{activity, builtin, comments, constraints, domains, facts, information, sequences, statistics, tables};
use crate::error::{SqlError, SqlState};
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, Oid, TimeZone, wire};

/// The producers of each topic.
static TOPICS: &[&[Producer]] = &[
    activity::PRODUCERS,
    builtin::PRODUCERS,
    comments::PRODUCERS,
    constraints::PRODUCERS,
    domains::PRODUCERS,
    information::PRODUCERS,
    sequences::PRODUCERS,
    statistics::PRODUCERS,
    tables::PRODUCERS,
];

/// What belongs to features that do not exist here. So there is none.
static EMPTY: &[&str] = &[
    "pg_auth_members",
    "pg_available_extension_versions",
    "pg_available_extensions",
    "pg_conversion",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_event_trigger",
    "pg_extension",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_group",
    "pg_inherits",
    "pg_init_privs",
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_matviews",
    "pg_parameter_acl",
    "pg_partitioned_table",
    "pg_policies",
    "pg_policy",
    "pg_prepared_xacts",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_publication_tables",
    "pg_range",
    "pg_replication_origin",
    "pg_replication_slots",
    "pg_rewrite",
    "pg_rules",
    "pg_seclabel",
    "pg_seclabels",
    "pg_shdepend",
    "pg_shseclabel",
    "pg_stat_replication",
    "pg_stat_subscription",
    "pg_stat_wal_receiver",
    "pg_statio_all_sequences",
    "pg_statio_sys_sequences",
    "pg_statio_user_sequences",
    "pg_statistic",
    "pg_statistic_ext",
    "pg_statistic_ext_data",
    "pg_stats_ext",
    "pg_stats_ext_exprs",
    "pg_subscription",
    "pg_subscription_rel",
    "pg_transform",
    "pg_trigger",
    "pg_ts_config",
    "pg_ts_config_map",
    "pg_ts_dict",
    "pg_ts_parser",
    "pg_ts_template",
    "pg_user_mapping",
    "pg_user_mappings",
    "information_schema.administrable_role_authorizations",
    "information_schema.applicable_roles",
    "information_schema.attributes",
    "information_schema.check_constraint_routine_usage",
    "information_schema.collation_character_set_applicability",
    "information_schema.column_options",
    "information_schema.foreign_data_wrapper_options",
    "information_schema.foreign_data_wrappers",
    "information_schema.foreign_server_options",
    "information_schema.foreign_servers",
    "information_schema.foreign_table_options",
    "information_schema.foreign_tables",
    "information_schema.role_udt_grants",
    "information_schema.routine_column_usage",
    "information_schema.routine_routine_usage",
    "information_schema.routine_sequence_usage",
    "information_schema.routine_table_usage",
    "information_schema.transforms",
    "information_schema.triggered_update_columns",
    "information_schema.triggers",
    "information_schema.user_defined_types",
    "information_schema.user_mapping_options",
    "information_schema.user_mappings",
    "information_schema.view_routine_usage",
];

/// A producer bound to the columns of its relation.
struct Template {
    /// A row with the constant columns.
    row: Vec<Datum>,
    /// The place of each value in the row.
    places: Vec<usize>,
    rows: fn(&SystemEnv<'_>) -> Rows,
}

/// A relation by its name as producers write it.
fn relation_of(name: &str) -> Option<&'static Relation> {
    match name.split_once('.') {
        Some((schema, name)) => relations::find(Some(schema), name),
        None => relations::find(None, name),
    }
}

static TEMPLATES: LazyLock<HashMap<Oid, Template>> = LazyLock::new(|| {
    let bind = |producer: &Producer| {
        let relation = relation_of(producer.relation)?;
        let mut row = vec![Datum::Null; relation.table.columns.len()];
        for (name, value) in producer.constants {
            let at = relation.table.column(name)?;
            *row.get_mut(at)? = constant(relation, at, value)?;
        }
        let places = producer.columns.iter().map(|name| relation.table.column(name)).collect::<Option<_>>()?;
        Some((relation.oid(), Template { row, places, rows: producer.rows }))
    };
    TOPICS.iter().copied().flatten().filter_map(bind).collect()
});

/// The rows of the relations that are facts alone.
static FACTS: LazyLock<HashMap<Oid, Vec<Vec<Datum>>>> = LazyLock::new(|| {
    let bind = |section: &facts::Section| {
        let relation = relation_of(section.relation)?;
        let places = section.columns.iter().map(|name| relation.table.column(name)).collect::<Option<Vec<usize>>>()?;
        let row = |fields: &Vec<&'static str>| {
            let mut row = vec![Datum::Null; relation.table.columns.len()];
            for (at, field) in places.iter().zip(fields).filter(|(_, field)| **field != "\\N") {
                *row.get_mut(*at)? = constant(relation, *at, field)?;
            }
            Some(row)
        };
        let rows = section.rows.iter().map(row).collect::<Option<_>>()?;
        Some((relation.oid(), rows))
    };
    facts::sections().iter().filter_map(bind).collect()
});

/// The value of a column that is written as text. A function that does not exist here is none.
fn constant(relation: &Relation, at: usize, value: &str) -> Option<Datum> {
    let ty = relation.table.columns.get(at)?.ty;
    if ty == pgtypes::SqlType::REGPROC {
        let function = pgtypes::functions::named(value).first().map_or(Oid::NONE, |row| row.oid);
        return Some(super::env::oid(function));
    }
    let zone = TimeZone::utc();
    wire::parse(ty, value, &IoEnv::new(&zone, Now(0))).ok()
}

/// The rows of a relation.
///
/// # Errors
/// 0A000 if they exist in principle, but nothing here knows them.
pub(crate) fn rows(relation: &'static Relation, env: &SystemEnv<'_>) -> Result<Rows, SqlError> {
    if let Some(template) = TEMPLATES.get(&relation.oid()) {
        let fill = |values: Vec<Datum>| {
            let mut row = template.row.clone();
            for (place, value) in template.places.iter().zip(values) {
                if let Some(slot) = row.get_mut(*place) {
                    *slot = value;
                }
            }
            row
        };
        return Ok(Box::new((template.rows)(env).map(fill)));
    }
    if let Some(rows) = FACTS.get(&relation.oid()) {
        return Ok(Box::new(rows.iter().cloned()));
    }
    if EMPTY.iter().any(|name| relation_of(name).is_some_and(|known| known.oid() == relation.oid())) {
        return Ok(no_rows());
    }
    let message = format!("relation \"{}\" is not supported yet", relation.full_name());
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// What the node has to ask others for before it computes the rows of a relation.
pub(crate) fn cluster_source(relation: &Relation) -> Option<ClusterSource> {
    match relation.table.name.as_str() {
        "pg_stat_activity" => Some(ClusterSource::Sessions),
        "pg_locks" => Some(ClusterSource::Locks),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn producers_name_columns_that_exist_and_leave_no_required_one_out() {
        for producer in TOPICS.iter().copied().flatten() {
            let relation = relation_of(producer.relation).unwrap_or_else(|| panic!("{}", producer.relation));
            let given = |name: &str| {
                producer.columns.contains(&name) || producer.constants.iter().any(|(constant, _)| *constant == name)
            };
            for name in producer.columns.iter().chain(producer.constants.iter().map(|(name, _)| name)) {
                assert!(relation.table.column(name).is_some(), "{}.{name}", producer.relation);
            }
            for column in relation.table.columns.iter().filter(|column| column.not_null) {
                assert!(given(&column.name), "{}.{} is required", producer.relation, column.name);
            }
            assert!(TEMPLATES.contains_key(&relation.oid()), "{} is not bound", producer.relation);
        }
        assert_eq!(FACTS.len(), facts::sections().len(), "all facts can be read");
    }

    #[test]
    fn each_relation_has_one_source_of_rows_at_most() {
        let mut seen = std::collections::HashSet::new();
        let producers = TOPICS.iter().copied().flatten().map(|producer| producer.relation);
        let sections = facts::sections().iter().map(|section| section.relation);
        for name in producers.chain(sections).chain(EMPTY.iter().copied()) {
            assert!(relation_of(name).is_some(), "{name} exists");
            assert!(seen.insert(name), "{name} twice");
        }
    }
}
