//! The descriptors and the rows of built-in objects are those of PostgreSQL 15.
//!
//! The files in `golden/` are what PostgreSQL's COPY gave. `relations.txt` has a line for each relation: OID, name,
//! kind, columns with type, `!` for NOT NULL and collation. The others begin with the names of the columns, the key
//! first.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use super::describe::type_name;
use super::env::{CursorInfo, SettingInfo, StatementInfo, SystemEnv, SystemSession, int, rows_of, text};
use super::{functions, relations, rows};
use crate::catalog::Catalog;
use crate::sessions::{LockList, SessionInfo};
use crate::table::{Column, ColumnId, StorageId, Table, TableId};
use pgtypes::timestamp::Now;
use pgtypes::{Array, Datum, IoEnv, Oid, SqlType, TimeZone, wire};

struct TestSession(Arc<Catalog>);

impl SystemSession for TestSession {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.0
    }

    fn user(&self) -> &str {
        "ann"
    }

    fn database(&self) -> &str {
        "shop"
    }

    fn node_started(&self) -> i64 {
        0
    }

    fn pid(&self) -> i32 {
        1
    }

    fn transaction(&self) -> Option<i64> {
        None
    }

    fn clock(&self) -> i64 {
        2
    }

    fn statement_started(&self) -> i64 {
        1
    }

    fn random(&self) -> f64 {
        0.5
    }

    fn set_seed(&self, _: f64) {}

    fn settings(&self) -> Vec<SettingInfo> {
        Vec::new()
    }

    fn sessions(&self) -> Arc<Vec<SessionInfo>> {
        Arc::default()
    }

    fn locks(&self) -> Arc<LockList> {
        Arc::default()
    }

    fn statements(&self) -> Vec<StatementInfo> {
        Vec::new()
    }

    fn cursors(&self) -> Vec<CursorInfo> {
        Vec::new()
    }
}

fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/system/golden").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn table(id: u32, name: &str) -> Table {
    let column = |id: u16, name: &str, ty, not_null| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        ty,
        not_null,
        default: (!not_null).then(|| "'x'".to_owned()),
        generated: None,
        identity: None,
    };
    Table {
        id: TableId(id),
        schema: crate::object::FIRST_SCHEMA,
        storage: StorageId(id + 1),
        name: name.to_owned(),
        columns: vec![column(1, "id", SqlType::INT8, true), column(2, "v", SqlType::varchar(5), false)],
        primary_key: vec![0],
        key_name: format!("{name}_pkey"),
        key_id: crate::table::IndexId(id + 1),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(2),
    }
}

/// Runs `test` in the environment of a catalog.
fn with_catalog<T>(tables: Vec<Table>, test: impl FnOnce(&SystemEnv<'_>) -> T) -> T {
    let session = TestSession(Arc::new(Catalog::new(1, tables)));
    let zone = TimeZone::utc();
    let io = IoEnv { names: &*session.0, ..IoEnv::new(&zone, Now(0)) };
    test(&SystemEnv { session: &session, io })
}

#[test]
fn descriptors_are_those_of_postgresql() {
    let text = golden("relations.txt");
    let mut ours = Vec::new();
    for relation in relations::all() {
        let columns = relation.table.columns.iter().zip(&relation.declared).map(|(column, (ty, collation))| {
            let mark = if column.not_null { "!" } else { "" };
            format!("{} {}{mark} {collation}", column.name, type_name(&Catalog::new(1, []), *ty, None))
        });
        let kind = if relation.is_view { "view" } else { "table" };
        let columns = columns.collect::<Vec<_>>().join(", ");
        ours.push(format!("{}\t{}\t{kind}\t{columns}", relation.oid(), relation.full_name()));
    }
    let mut wrong = String::new();
    assert_eq!(ours.len(), text.lines().count());
    for (ours, known) in ours.iter().zip(text.lines()) {
        // Types that do not exist here: those columns are never filled.
        let known = known.replace("inet 0", "text 100").replace("pg_statistic[] 0", "record[] 0");
        if *ours != known {
            writeln!(wrong, "have {ours}\n  PG {known}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The rows of a relation with the columns of a golden file, by their first column.
fn compare(name: &str) -> (usize, usize) {
    let text = golden(&format!("{name}.txt"));
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let known: HashMap<&str, &str> = lines.map(|line| (line.split('\t').next().unwrap(), line)).collect();
    let relation = relations::find(None, name).unwrap();
    let places: Vec<usize> = columns.iter().map(|column| relation.table.column(column).unwrap()).collect();
    with_catalog(Vec::new(), |env| {
        let mut wrong = String::new();
        let mut count = 0;
        for row in rows::rows(relation, env).unwrap() {
            let show = |at: &usize| match (&row[*at], relation.table.columns[*at].ty) {
                (Datum::Null, _) => "\\N".to_owned(),
                (Datum::Int(value), SqlType::REGPROC) if name != "pg_type" => value.to_string(),
                (value, ty) => wire::show(value, ty, &env.io),
            };
            let line = places.iter().map(show).collect::<Vec<_>>().join("\t");
            count += 1;
            match known.get(line.split('\t').next().unwrap()) {
                Some(known) if *known == line => {}
                other => writeln!(wrong, "have {line}\n  PG {}", other.unwrap_or(&"nothing")).unwrap(),
            }
        }
        assert!(wrong.is_empty(), "{name}({}):\n{wrong}", columns.join("\t"));
        (count, known.len())
    })
}

#[test]
fn built_in_objects_are_those_of_postgresql() {
    for name in ["pg_type", "pg_namespace"] {
        let (ours, known) = compare(name);
        assert_eq!(ours, known, "{name} has all rows");
    }
    for name in ["pg_cast", "pg_operator", "pg_proc", "pg_aggregate"] {
        let (ours, _) = compare(name);
        assert!(ours > 50, "{name} has rows");
    }
}

#[test]
fn every_relation_gives_rows_of_its_width_or_is_refused() {
    with_catalog(vec![table(16384, "a"), table(16390, "b")], |env| {
        let mut refused = Vec::new();
        for relation in relations::all() {
            match rows::rows(relation, env) {
                Ok(rows) => {
                    for row in rows {
                        assert_eq!(row.len(), relation.table.columns.len(), "{}", relation.full_name());
                        let required = relation.table.columns.iter().zip(&row);
                        let missing = required.filter(|(column, value)| column.not_null && value.is_null());
                        let missing: Vec<&str> = missing.map(|(column, _)| column.name.as_str()).collect();
                        assert!(missing.is_empty(), "{}: {missing:?}", relation.full_name());
                    }
                }
                Err(error) => {
                    assert_eq!(error.code.0, "0A000");
                    refused.push(relation.full_name());
                }
            }
        }
        assert!(refused.contains(&"pg_catalog.pg_stat_bgwriter".to_owned()));
        assert!(refused.len() < relations::all().len() / 2, "{} are refused", refused.len());
    });
}

#[test]
fn oids_are_unique_in_their_catalogs() {
    let tables: Vec<Table> = (0..40).map(|at| table(16384 + 2 * at, &format!("t{at}"))).collect();
    with_catalog(tables, |env| {
        for name in ["pg_class", "pg_constraint", "pg_attrdef", "pg_type", "pg_operator"] {
            let relation = relations::find(None, name).unwrap();
            let at = relation.table.column("oid").unwrap();
            let mut seen = std::collections::HashSet::new();
            for row in rows::rows(relation, env).unwrap() {
                let Datum::Int(number) = row[at] else { panic!("{name} has a row without an OID") };
                assert!(seen.insert(number), "{name}: {number} twice");
            }
            assert!(!seen.is_empty());
        }
    });
}

fn set(number: u32, args: &[&Datum], env: &SystemEnv<'_>) -> Vec<Vec<Datum>> {
    let function = pgtypes::functions::find(Oid(number)).unwrap();
    functions::set(function, args, env).unwrap().collect()
}

#[test]
fn functions_that_return_sets() {
    with_catalog(vec![table(16384, "a")], |env| {
        assert!(set(3425, &[&int(16384)], env).is_empty(), "pg_partition_ancestors");
        let options = Array::of(SqlType::TEXT.oid, vec![text("fillfactor=70"), text("x")]);
        let options = Datum::Array(Box::new(options));
        let expected = vec![vec![text("fillfactor"), text("70")], vec![text("x"), Datum::Null]];
        assert_eq!(set(2289, &[&options], env), expected, "pg_options_to_table");
        assert!(set(2289, &[&Datum::Null], env).is_empty());
        let zones = set(2856, &[], env);
        assert!(zones.iter().any(|row| row[0] == text("Europe/Berlin") && row[1] == text("CET")), "pg_timezone_names");
        let abbreviations = set(2599, &[], env);
        assert!(abbreviations.iter().any(|row| row[0] == text("UTC")), "pg_timezone_abbrevs");
        assert!(set(2084, &[], env).is_empty() && set(2510, &[], env).is_empty());
        assert!(set(2511, &[], env).is_empty(), "pg_cursor");
        assert_eq!(rows_of(vec![Vec::new()]).count(), 1);
    });
}

#[test]
fn functions_refuse_what_is_not_known() {
    with_catalog(vec![table(16384, "a")], |env| {
        let call =
            |number: u32, args: &[&Datum]| functions::call(pgtypes::functions::find(Oid(number)).unwrap(), args, env);
        assert_eq!(call(2943, &[]).unwrap_err().code.0, "0A000", "txid_current");
        assert_eq!(call(3348, &[]), Ok(Datum::Null), "txid_current_if_assigned");
        assert_eq!(call(2098, &[&int(1299)]).unwrap_err().code.0, "0A000", "pg_get_functiondef");
    });
}
