//! The functions of the system catalog, as pure functions of the catalog and their arguments.
//!
//! A function is known by its name; its variants differ in the types of the arguments. Where PostgreSQL answers NULL
//! for an OID of no object, so do these. Sizes are not measured: they are 0.

use super::comments;
use super::constraints;
use super::describe::{arguments, index_definition, result, type_name};
use super::env::{Rows, SystemEnv, array, int, maybe, no_rows, number, oid, rows_of, text, words};
use super::names::{find_relation, is_visible};
use super::objects::{all_roles, described, index_by_oid, indexes, schema_name, schema_of, sequences, table_of, views};
use super::pretty::pretty;
use super::privileges;
use super::relations::{self, PG_CATALOG};
use super::rows;
use crate::catalog::Catalog;
use crate::clock;
use crate::error::{SqlError, SqlState};
use crate::object::{SchemaId, Sequence};
use crate::table::quote_identifier;
use pgtypes::datetime::TimestampTz;
use pgtypes::functions::{self, ProcRow};
use pgtypes::uuid::Uuid;
use pgtypes::{Datum, Names, Oid, SqlType};

/// The value of a call. The binder has converted the arguments to the types of the function.
///
/// # Errors
/// Those of the function, and 0A000 for what is not known here.
pub(crate) fn call(function: &'static ProcRow, args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    if function.is_strict && args.iter().any(|arg| arg.is_null()) {
        return Ok(Datum::Null);
    }
    let name = function.name;
    if let Some(class) = name.strip_prefix("to_reg") {
        return to_reg(class, args, env);
    }
    if let Some(value) = visibility(name, args, env) {
        return Ok(value);
    }
    if name == "pg_has_role" || (name.starts_with("has_") && name.ends_with("_privilege")) {
        return privileges::check(function, args, env);
    }
    match name {
        "format_type" => Ok(format_type(args, env.catalog())),
        "oidvectortypes" => Ok(types_of_vector(args, env.catalog())),
        "acldefault" => default_privileges(args, env),
        "current_schemas" => Ok(current_schemas(args, env)),
        "pg_get_userbyid" => Ok(user_by_id(number(args, 0), env)),
        "pg_encoding_to_char" => Ok(encoding_name(args)),
        "pg_char_to_encoding" => Ok(encoding_number(words(args, 0))),
        "pg_client_encoding" | "getdatabaseencoding" => Ok(text("UTF8")),
        "pg_is_in_recovery" | "row_security_active" | "pg_is_other_temp_schema" => flag(function, args, env),
        "pg_my_temp_schema" => Ok(int(env.catalog().sight().temporary.map_or(0, |schema| i64::from(schema.0)))),
        "pg_postmaster_start_time" | "pg_conf_load_time" => Ok(Datum::Int(env.session.node_started())),
        "inet_client_port" => Ok(client_port(env)),
        "txid_current" | "pg_current_xact_id" => env.session.transaction().map(Datum::Int).ok_or_else(no_transaction),
        "txid_current_if_assigned" | "pg_current_xact_id_if_assigned" => {
            Ok(env.session.transaction().map_or(Datum::Null, Datum::Int))
        }
        "statement_timestamp" => Ok(Datum::Int(env.session.statement_started())),
        "clock_timestamp" => Ok(Datum::Int(env.session.clock())),
        "timeofday" => time_of_day(env),
        "random" => Ok(Datum::Float(env.session.random())),
        "setseed" => set_seed(args, env),
        "gen_random_uuid" => Ok(Datum::Uuid(Uuid::from_random(clock::random_bytes()))),
        "pg_safe_snapshot_blocking_pids" => Ok(array(SqlType::INT4, Vec::new())),
        _ => object(function, args, env),
    }
}

/// The time as a text.
fn time_of_day(env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    Ok(maybe(TimestampTz(env.session.clock()).to_char("Dy Mon DD HH24:MI:SS.US YYYY TZ", env.io.zone)?))
}

/// 22023 for a seed that PostgreSQL would not take.
fn set_seed(args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    let seed = match args.first() {
        Some(Datum::Float(seed)) => *seed,
        _ => f64::NAN,
    };
    if !(-1.0..=1.0).contains(&seed) {
        let message = format!("setseed parameter {seed} is out of allowed range [-1,1]");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    env.session.set_seed(seed);
    Ok(text(""))
}

/// The rest: what is about one object.
fn object(function: &'static ProcRow, args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    match function.name {
        "pg_get_indexdef" => Ok(index_text(args, env)),
        "pg_get_constraintdef" => {
            let is_pretty = args.get(1) == Some(&&Datum::Bool(true));
            Ok(maybe(constraints::definition(env.catalog(), number(args, 0), is_pretty)))
        }
        "pg_get_viewdef" => view_text(args, env),
        // What is stored is text already.
        "pg_get_expr" => Ok(match args {
            [Datum::Text(expr), _, Datum::Bool(true)] => text(pretty(expr)),
            [expr, ..] => (*expr).clone(),
            [] => Datum::Null,
        }),
        "pg_get_serial_sequence" => serial_sequence(args, env),
        "pg_get_function_arguments" => Ok(maybe(proc(args).map(|row| arguments(row, true)))),
        "pg_get_function_identity_arguments" => Ok(maybe(proc(args).map(|row| arguments(row, false)))),
        "pg_get_function_result" => Ok(maybe(proc(args).map(result))),
        "pg_get_functiondef" => match proc(args) {
            Some(row) if row.is_aggregate() => {
                let message = format!("\"{}\" is an aggregate function", row.name);
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            Some(row) => Err(unsupported(&format!("the definition of function {} is", row.name))),
            None => Ok(Datum::Null),
        },
        "pg_get_replica_identity_index" => Ok(table_of(number(args, 0), env)
            .and_then(|table| indexes(table, env.catalog()).into_iter().find(|index| index.is_primary))
            .map_or(Datum::Null, |index| oid(index.oid))),
        "pg_relation_is_publishable" => {
            let relation = number(args, 0);
            let exists = env.catalog().show(SqlType::REGCLASS, relation).is_some();
            let is_table = table_of(relation, env).is_some();
            Ok(if exists { Datum::Bool(is_table) } else { Datum::Null })
        }
        "pg_relation_size" => relation_size(args, env),
        "pg_table_size" | "pg_total_relation_size" | "pg_indexes_size" => {
            let exists = env.catalog().show(SqlType::REGCLASS, number(args, 0)).is_some();
            Ok(if exists { int(0) } else { Datum::Null })
        }
        "pg_database_size" => database_size(args, env),
        "pg_tablespace_size" => Ok(int(0)),
        // There are those of the system alone.
        "pg_tablespace_location" => Ok(text("")),
        "obj_description" | "shobj_description" => Ok(comments::object_comment(args, env)),
        "col_description" => Ok(comments::column_comment(args, env)),
        // None of these objects exists.
        "pg_get_ruledef"
        | "pg_get_triggerdef"
        | "pg_get_function_sqlbody"
        | "pg_get_partkeydef"
        | "pg_get_partition_constraintdef"
        | "pg_partition_root"
        | "pg_get_statisticsobjdef"
        | "pg_get_statisticsobjdef_columns" => Ok(Datum::Null),
        name => Err(unsupported(&format!("function {name} is"))),
    }
}

/// The query of a view, by its OID or its name.
fn view_text(args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    let oid = match args.first() {
        Some(Datum::Text(_)) => find_relation(env.catalog(), words(args, 0))?,
        _ => number(args, 0),
    };
    let found = views(env.catalog()).into_iter().find(|view| view.table.id.0 == oid.0);
    Ok(maybe(found.map(|view| view.definition)))
}

/// The rows of a call of a function that returns a set.
///
/// # Errors
/// 0A000 for what is not known here.
pub(crate) fn set(function: &'static ProcRow, args: &[&Datum], env: &SystemEnv<'_>) -> Result<Rows, SqlError> {
    if function.is_strict && args.iter().any(|arg| arg.is_null()) {
        return Ok(no_rows());
    }
    let relation = match function.name {
        // There are no partitions.
        "pg_partition_ancestors" => return Ok(no_rows()),
        "pg_options_to_table" => return Ok(options(args)),
        "pg_sequence_parameters" => return sequence_parameters(args, env),
        "pg_show_all_settings" => "pg_settings",
        "pg_prepared_statement" => "pg_prepared_statements",
        "pg_cursor" => "pg_cursors",
        "pg_timezone_names" => "pg_timezone_names",
        "pg_timezone_abbrevs" => "pg_timezone_abbrevs",
        name => return Err(unsupported(&format!("function {name} is"))),
    };
    match relations::find(None, relation) {
        Some(relation) => rows::rows(relation, env),
        None => Ok(no_rows()),
    }
}

fn unsupported(what: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} not supported yet"))
}

fn no_transaction() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "the transaction has no id yet")
}

fn proc(args: &[&Datum]) -> Option<&'static ProcRow> {
    functions::find(number(args, 0))
}

fn to_reg(class: &str, args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    let ty = match class {
        "class" => SqlType::REGCLASS,
        "type" => SqlType::REGTYPE,
        "proc" => SqlType::REGPROC,
        "procedure" => SqlType::REGPROCEDURE,
        "oper" => SqlType::REGOPER,
        "operator" => SqlType::REGOPERATOR,
        "namespace" => SqlType::REGNAMESPACE,
        "role" => SqlType::REGROLE,
        _ => SqlType::REGCOLLATION,
    };
    match env.catalog().find(ty, words(args, 0)) {
        Ok(found) => Ok(oid(found)),
        Err(error) => match error.code() {
            SqlState::UNDEFINED_TABLE
            | SqlState::UNDEFINED_OBJECT
            | SqlState::UNDEFINED_FUNCTION
            | SqlState::AMBIGUOUS_FUNCTION
            | SqlState::INVALID_SCHEMA_NAME => Ok(Datum::Null),
            _ => Err(error.into()),
        },
    }
}

/// `pg_table_is_visible` and its kin.
fn visibility(name: &str, args: &[&Datum], env: &SystemEnv<'_>) -> Option<Datum> {
    let class = match name.strip_prefix("pg_")?.strip_suffix("_is_visible")? {
        "table" => SqlType::REGCLASS,
        "type" => SqlType::REGTYPE,
        "function" => SqlType::REGPROC,
        "operator" => SqlType::REGOPER,
        "collation" => SqlType::REGCOLLATION,
        "opclass" => return Some(exists("pg_opclass", number(args, 0))),
        "opfamily" => return Some(exists("pg_opfamily", number(args, 0))),
        // There are none.
        _ => return Some(Datum::Null),
    };
    Some(is_visible(env.catalog(), class, number(args, 0)).map_or(Datum::Null, Datum::Bool))
}

/// True if there is such a row among the facts, else NULL.
fn exists(relation: &str, wanted: Oid) -> Datum {
    let section = super::facts::sections().iter().find(|section| section.relation == relation);
    let mut rows = section.into_iter().flat_map(|section| &section.rows);
    let found = rows.any(|row| row.first().is_some_and(|first| super::facts::number(first) == wanted));
    if found { Datum::Bool(true) } else { Datum::Null }
}

fn format_type(args: &[&Datum], catalog: &Catalog) -> Datum {
    let typmod = match args.get(1) {
        Some(Datum::Int(typmod)) => Some(*typmod),
        _ => None,
    };
    match args.first() {
        Some(Datum::Int(_)) => text(type_name(catalog, number(args, 0), typmod)),
        _ => Datum::Null,
    }
}

/// The names of the types of a vector of OIDs.
fn types_of_vector(args: &[&Datum], catalog: &Catalog) -> Datum {
    let Some(Datum::Array(oids)) = args.first() else { return Datum::Null };
    let name = |oid: &Datum| match oid {
        Datum::Int(oid) => type_name(catalog, Oid(u32::try_from(*oid).unwrap_or(0)), None),
        _ => String::new(),
    };
    text(oids.elements().iter().map(name).collect::<Vec<_>>().join(", "))
}

/// `acldefault`: what PostgreSQL grants on a new object of a kind, to all and to its owner.
fn default_privileges(args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    let (to_all, to_owner) = match words(args, 0) {
        "c" => ("", ""),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "p" => ("", "sA"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        other => {
            let message = format!("unrecognized objtype abbreviation: {other}");
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
        }
    };
    let owner = number(args, 1);
    let known = all_roles(env.session.user()).into_iter().find(|(oid, _)| *oid == owner);
    let owner = known.map_or_else(|| owner.0.to_string(), |(_, name)| quote_identifier(name));
    let granted = [("", to_all), (owner.as_str(), to_owner)].into_iter().filter(|(_, rights)| !rights.is_empty());
    Ok(array(SqlType::ACLITEM, granted.map(|(role, rights)| text(format!("{role}={rights}/{owner}"))).collect()))
}

fn current_schemas(args: &[&Datum], env: &SystemEnv<'_>) -> Datum {
    let with_implicit = args.first() == Some(&&Datum::Bool(true));
    let implicit = with_implicit.then_some(PG_CATALOG.1);
    let catalog = env.catalog();
    let sight = catalog.sight();
    let named = |id: SchemaId| catalog.schema_by_id(id).map(|schema| &*schema.name);
    let temporary = sight.temporary.filter(|_| with_implicit).and_then(named);
    let path = sight.path.iter().copied().filter_map(named);
    array(SqlType::NAME, temporary.into_iter().chain(implicit).chain(path).map(text).collect())
}

fn user_by_id(wanted: Oid, env: &SystemEnv<'_>) -> Datum {
    let name =
        all_roles(env.session.user()).into_iter().find(|(oid, _)| *oid == wanted).map(|(_, name)| name.to_owned());
    text(name.unwrap_or_else(|| format!("unknown (OID={wanted})")))
}

/// The encodings in the order of their numbers.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

fn encoding_name(args: &[&Datum]) -> Datum {
    let at = match args.first() {
        Some(Datum::Int(at)) => usize::try_from(*at).ok(),
        _ => None,
    };
    text(at.and_then(|at| ENCODINGS.get(at)).copied().unwrap_or(""))
}

/// Case and punctuation of the name do not count.
fn encoding_number(name: &str) -> Datum {
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let wanted = match plain(name).as_str() {
        "unicode" => "utf8".to_owned(),
        name => name.to_owned(),
    };
    let at = ENCODINGS.iter().position(|known| plain(known) == wanted);
    at.map_or(int(-1), int)
}

/// What is false for all that exists.
fn flag(function: &ProcRow, args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    if function.args == [SqlType::TEXT] {
        find_relation(env.catalog(), words(args, 0))?;
    }
    Ok(Datum::Bool(false))
}

fn client_port(env: &SystemEnv<'_>) -> Datum {
    let sessions = env.session.sessions();
    let own = sessions.iter().find(|session| session.pid == env.session.pid());
    own.and_then(|session| session.client).map_or(Datum::Null, |client| int(client.port()))
}

/// The definition of an index, or of one of its columns.
fn index_text(args: &[&Datum], env: &SystemEnv<'_>) -> Datum {
    let Some((table, index)) = index_by_oid(env.catalog(), number(args, 0)) else { return Datum::Null };
    let is_pretty = args.get(2) == Some(&&Datum::Bool(true));
    match args.get(1) {
        Some(Datum::Int(column)) if *column != 0 => {
            let at = usize::try_from(*column - 1).ok();
            let key = at.and_then(|at| index.keys.get(at));
            let included = || index.included.get(at?.checked_sub(index.keys.len())?);
            match (key, included()) {
                (Some(key), _) => text(&key.text),
                (None, Some(column)) => {
                    text(table.columns.get(*column).map_or_else(String::new, |column| quote_identifier(&column.name)))
                }
                (None, None) => text(""),
            }
        }
        _ => {
            let schema = schema_of(env.catalog(), &table);
            text(index_definition(&table, &index, (!is_pretty).then_some(schema)))
        }
    }
}

/// The sequence that a column owns.
fn serial_sequence(args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    let relation = find_relation(env.catalog(), words(args, 0))?;
    let column = words(args, 1);
    let table = described(relation, env);
    if table.is_some_and(|table| table.column(column).is_none()) {
        let name = table.map_or("", |table| &table.name);
        let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    }
    let column = table.and_then(|table| table.columns.get(table.column(column)?)).map(|column| column.id.0);
    let owns = |sequence: &Sequence| {
        sequence.owner.is_some_and(|(owner, number)| owner.0 == relation.0 && Some(number) == column)
    };
    let sequence = sequences(env.catalog()).into_iter().find(owns);
    Ok(sequence.map_or(Datum::Null, |sequence| {
        let schema = schema_name(env.catalog(), Oid(sequence.schema.0)).unwrap_or_default();
        text(format!("{}.{}", quote_identifier(schema), quote_identifier(&sequence.name)))
    }))
}

/// The row of `pg_sequence_parameters`. 42809 for another relation.
fn sequence_parameters(args: &[&Datum], env: &SystemEnv<'_>) -> Result<Rows, SqlError> {
    let id = number(args, 0);
    match sequences(env.catalog()).iter().find(|sequence| sequence.id.0 == id.0) {
        Some(sequence) => Ok(rows_of(vec![super::sequences::parameters(sequence)])),
        None => match env.catalog().name_of_relation(id.0) {
            Some((_, name)) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence"))),
            None => Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("could not open relation with OID {}", id.0))),
        },
    }
}

fn relation_size(args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    let fork = if args.len() > 1 { words(args, 1) } else { "main" };
    if env.catalog().show(SqlType::REGCLASS, number(args, 0)).is_none() {
        return Ok(Datum::Null);
    }
    if !["main", "fsm", "vm", "init"].contains(&fork) {
        let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name");
        return Err(error.hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."));
    }
    Ok(int(0))
}

fn database_size(args: &[&Datum], env: &SystemEnv<'_>) -> Result<Datum, SqlError> {
    match args.first() {
        Some(Datum::Text(name)) if env.catalog().database(name).is_none() => {
            let message = format!("database \"{name}\" does not exist");
            Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message))
        }
        Some(Datum::Int(_)) if env.catalog().databases().all(|database| database.id.0 != number(args, 0).0) => {
            Ok(Datum::Null)
        }
        _ => Ok(int(0)),
    }
}

/// `name=value` in two columns.
fn options(args: &[&Datum]) -> Rows {
    let Some(Datum::Array(options)) = args.first() else { return no_rows() };
    let row = |option: &Datum| match option {
        Datum::Text(option) => match option.split_once('=') {
            Some((name, value)) => vec![text(name), text(value)],
            None => vec![text(option), Datum::Null],
        },
        _ => vec![Datum::Null, Datum::Null],
    };
    rows_of(options.elements().iter().map(row).collect())
}
