//! The rows of `pg_type`, `pg_proc`, `pg_aggregate`, `pg_operator` and `pg_cast`: the tables of [`pgtypes`]. The users'
//! enums are in `pg_type` and `pg_enum`, their domains in `pg_type`.
//!
//! Functions that support others (transition functions, estimators) have no rows of their own, so they are shown as
//! none. A function's source is its name.

use std::sync::Arc;

use super::env::{Rows, SystemEnv, array, int, maybe, oid, rows_of, text, vector};
use super::facts;
use super::names::shown_default;
use super::objects::{domains, row_type, with_rows};
use super::producer::Producer;
use super::relations::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::catalog::Catalog;
use crate::object::{Domain, EnumType, Object, SchemaId};
use pgtypes::functions::{self, ProcRow, Run, operators};
use pgtypes::{Category, Datum, Label, Oid, SqlType, TypeRow, cast};

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "pg_type",
        constants: &[("typowner", "10"), ("typisdefined", "t")],
        columns: &[
            "oid",
            "typname",
            "typnamespace",
            "typlen",
            "typbyval",
            "typtype",
            "typcategory",
            "typispreferred",
            "typdelim",
            "typsubscript",
            "typelem",
            "typarray",
            "typinput",
            "typoutput",
            "typreceive",
            "typsend",
            "typmodin",
            "typmodout",
            "typanalyze",
            "typalign",
            "typstorage",
            "typbasetype",
            "typtypmod",
            "typndims",
            "typcollation",
            "typnotnull",
            "typdefault",
            "typrelid",
        ],
        rows: types,
    },
    Producer {
        relation: "pg_enum",
        constants: &[],
        columns: &["oid", "enumtypid", "enumsortorder", "enumlabel"],
        rows: labels,
    },
    Producer {
        relation: "pg_proc",
        constants: &[
            ("pronamespace", "11"),
            ("proowner", "10"),
            ("prolang", "12"),
            ("procost", "1"),
            ("prosupport", "-"),
            ("prosecdef", "f"),
            ("proleakproof", "f"),
            ("proparallel", "s"),
        ],
        columns: &[
            "oid",
            "proname",
            "prorows",
            "provariadic",
            "prokind",
            "proisstrict",
            "proretset",
            "provolatile",
            "pronargs",
            "pronargdefaults",
            "prorettype",
            "proargtypes",
            "proallargtypes",
            "proargmodes",
            "proargnames",
            "prosrc",
        ],
        rows: |_| Box::new(functions::all().map(function)),
    },
    Producer {
        relation: "pg_aggregate",
        constants: &[
            ("aggtransfn", "-"),
            ("aggfinalfn", "-"),
            ("aggcombinefn", "-"),
            ("aggserialfn", "-"),
            ("aggdeserialfn", "-"),
            ("aggmtransfn", "-"),
            ("aggminvtransfn", "-"),
            ("aggmfinalfn", "-"),
            ("aggfinalextra", "f"),
            ("aggmfinalextra", "f"),
            ("aggfinalmodify", "r"),
            ("aggmfinalmodify", "r"),
            ("aggsortop", "0"),
            ("aggtranstype", "0"),
            ("aggtransspace", "0"),
            ("aggmtranstype", "0"),
            ("aggmtransspace", "0"),
        ],
        columns: &["aggfnoid", "aggkind", "aggnumdirectargs"],
        rows: |_| Box::new(functions::all().filter(|row| row.is_aggregate()).map(aggregate)),
    },
    Producer {
        relation: "pg_operator",
        constants: &[("oprnamespace", "11"), ("oprowner", "10"), ("oprrest", "-"), ("oprjoin", "-")],
        columns: &[
            "oid",
            "oprname",
            "oprkind",
            "oprcanmerge",
            "oprcanhash",
            "oprleft",
            "oprright",
            "oprresult",
            "oprcom",
            "oprnegate",
            "oprcode",
        ],
        rows: |_| Box::new(operators::all().map(operator)),
    },
    Producer {
        relation: "pg_cast",
        constants: &[],
        columns: &["oid", "castsource", "casttarget", "castfunc", "castcontext", "castmethod"],
        rows: |_| Box::new(cast::rows().iter().filter_map(cast_row)),
    },
];

/// The OID of a function by its only name; none if it does not exist here.
fn named(name: &str) -> Datum {
    oid(functions::named(name).first().map_or(Oid::NONE, |row| row.oid))
}

fn types(env: &SystemEnv<'_>) -> Rows {
    let element = pgtypes::all();
    let arrays = pgtypes::all().filter_map(|row| pgtypes::find(row.array));
    let mut rows: Vec<&TypeRow> = element.chain(arrays).collect();
    rows.sort_by_key(|row| row.oid);
    let mut rows: Vec<Vec<Datum>> = rows.into_iter().map(type_row).collect();
    rows.extend(facts::domains().iter().flat_map(domain));
    rows.extend(enums(env.catalog()).iter().flat_map(users));
    rows.extend(domains(env.catalog()).iter().flat_map(|domain| users_domain(domain, env.catalog())));
    rows.iter_mut().for_each(|row| row.push(int(0)));
    rows.extend(with_rows(env.catalog()).iter().map(of_rows));
    rows_of(rows)
}

fn type_row(row: &TypeRow) -> Vec<Datum> {
    let facts = facts::of_type(row.ty());
    let functions = facts.map_or(["-"; 6], |facts| facts.functions).map(named);
    let [input, output, receive, send, mod_in, mod_out] = functions;
    // An array of rows is as little a type of columns as a row.
    let is_record_array = row.element == SqlType::RECORD.oid;
    let is_pseudo = matches!(row.category, Category::Pseudo | Category::Unknown) || is_record_array;
    let category = if is_record_array { Category::Pseudo } else { row.category };
    // A name has subscripts, though it is no array.
    let element = if row.oid == SqlType::NAME.oid { SqlType::CHAR.oid } else { row.element };
    let is_array = row.ty().is_array();
    vec![
        oid(row.oid),
        text(row.name),
        oid(PG_CATALOG.0),
        int(row.len),
        Datum::Bool(facts.is_some_and(|facts| facts.by_value)),
        text(if is_pseudo { "p" } else { "b" }),
        text(category.letter().to_string()),
        Datum::Bool(row.is_preferred),
        text(","),
        named(facts.map_or("-", |facts| facts.subscript)),
        oid(element),
        oid(row.array),
        input,
        output,
        receive,
        send,
        mod_in,
        mod_out,
        named(if is_array { "array_typanalyze" } else { "-" }),
        text(facts.map_or("i", |facts| facts.align)),
        text(facts.map_or("p", |facts| facts.storage)),
        int(0),
        int(-1),
        int(0),
        oid(facts.map_or(Oid::NONE, |facts| facts.collation)),
        Datum::Bool(false),
        Datum::Null,
    ]
}

/// The labels of all enums. Their order among those of the type is shown, from 1.
fn labels(env: &SystemEnv<'_>) -> Rows {
    let of_type = |ty: &EnumType| -> Vec<Vec<Datum>> {
        let labels = ty.labels.iter().zip(&ty.label_oids).zip(1_u32..);
        let row = |((label, label_oid), place): ((&Label, &u32), u32)| {
            vec![oid(Oid(*label_oid)), oid(ty.ty().oid), Datum::Float(f64::from(place)), text(&label.name)]
        };
        labels.map(row).collect()
    };
    rows_of(enums(env.catalog()).iter().flat_map(of_type).collect())
}

/// The enums of the session's database, by their OIDs.
fn enums(catalog: &Catalog) -> Vec<EnumType> {
    let one = |object: &Arc<Object>| match &**object {
        Object::Enum(ty) => Some(ty.clone()),
        _ => None,
    };
    catalog.relations().iter().filter_map(one).collect()
}

/// The row type of a table or view.
fn of_rows((relation, name, schema): &(Oid, String, SchemaId)) -> Vec<Datum> {
    let mut row = type_row(SqlType::RECORD.row());
    let (own, no) = (oid(row_type(*relation)), Datum::Bool(false));
    let kind = vec![(5, text("c")), (6, text("C")), (7, no.clone()), (11, int(0)), (19, text("d")), (20, text("x"))];
    set(&mut row, vec![(0, own), (1, text(name)), (2, oid(Oid(schema.0))), (3, int(-1)), (4, no)]);
    set(&mut row, kind);
    row.push(oid(*relation));
    row
}

/// An enum, and its array type.
fn users(ty: &EnumType) -> [Vec<Datum>; 2] {
    let (own, array) = (ty.ty(), ty.ty().array().unwrap_or(SqlType::UNKNOWN));
    let mut rows = [(own, ty.name.clone()), (array, format!("_{}", ty.name))].map(|(shown, name)| {
        let mut row = type_row(shown.row());
        set(&mut row, vec![(0, oid(shown.oid)), (1, text(name)), (2, oid(Oid(ty.schema.0)))]);
        row
    });
    let [of_type, of_array] = &mut rows;
    set(of_type, vec![(4, Datum::Bool(true)), (5, text("e")), (11, oid(array.oid)), (20, text("p"))]);
    set_functions(of_type, ["enum_in", "enum_out", "enum_recv", "enum_send"]);
    set_array(of_array, own.oid);
    rows
}

/// A domain of a user, and its array type.
fn users_domain(domain: &Domain, catalog: &Catalog) -> [Vec<Datum>; 2] {
    let own = Oid(domain.id.0);
    let array = SqlType::new(own).array().unwrap_or(SqlType::UNKNOWN);
    let mut row = type_row(domain.base.row());
    let base = domain.parent.map_or(domain.base.oid, |parent| Oid(parent.0));
    let typmod = if domain.parent.is_some() { -1 } else { domain.base.typmod };
    let default = maybe(shown_default(&domain.as_column(), catalog));
    set(
        &mut row,
        vec![
            (0, oid(own)),
            (1, text(&domain.name)),
            (2, oid(Oid(domain.schema.0))),
            (5, text("d")),
            (7, Datum::Bool(false)),
            (9, named("-")),
            (10, int(0)),
            (11, oid(array.oid)),
            (12, named("domain_in")),
            (14, named("domain_recv")),
            (16, named("-")),
            (17, named("-")),
            (21, oid(base)),
            (22, int(typmod)),
            (25, Datum::Bool(domain.not_null)),
            (26, default),
        ],
    );
    if domain.base.is_enum() {
        set(&mut row, vec![(4, Datum::Bool(true)), (13, named("enum_out")), (15, named("enum_send")), (20, text("p"))]);
    }
    let mut of_array = type_row(array.row());
    let name = text(format!("_{}", domain.name));
    set(&mut of_array, vec![(0, oid(array.oid)), (1, name), (2, oid(Oid(domain.schema.0)))]);
    set_array(&mut of_array, own);
    [row, of_array]
}

/// What the row of an array type of a user's type says otherwise.
fn set_array(row: &mut [Datum], element: Oid) {
    let (handler, analyze) = (named("array_subscript_handler"), named("array_typanalyze"));
    set(row, vec![(9, handler), (10, oid(element)), (18, analyze), (20, text("x"))]);
    set_functions(row, ["array_in", "array_out", "array_recv", "array_send"]);
}

fn set_functions(row: &mut [Datum], names: [&str; 4]) {
    set(row, names.into_iter().zip(12..).map(|(name, at)| (at, named(name))).collect());
}

fn set(row: &mut [Datum], changes: Vec<(usize, Datum)>) {
    for (at, value) in changes {
        if let Some(slot) = row.get_mut(at) {
            *slot = value;
        }
    }
}

/// A domain of `information_schema`, and its array type.
fn domain(domain: &facts::Domain) -> [Vec<Datum>; 2] {
    let mut row = type_row(domain.base.row());
    // The places are those of the columns that `pg_type` is given above.
    set(
        &mut row,
        vec![
            (0, oid(domain.oid)),
            (1, text(domain.name)),
            (2, oid(INFORMATION_SCHEMA.0)),
            (5, text("d")),
            (7, Datum::Bool(false)),
            (9, named("-")),
            (10, int(0)),
            (11, oid(domain.array)),
            (12, named("domain_in")),
            (14, named("domain_recv")),
            (16, named("-")),
            (17, named("-")),
            (21, oid(domain.base.oid)),
            (22, int(domain.base.typmod)),
            (24, oid(domain.collation)),
        ],
    );
    let mut array = domain.base.array().map_or_else(Vec::new, |array| type_row(array.row()));
    set(
        &mut array,
        vec![
            (0, oid(domain.array)),
            (1, text(format!("_{}", domain.name))),
            (2, oid(INFORMATION_SCHEMA.0)),
            (10, oid(domain.oid)),
            (16, named("-")),
            (17, named("-")),
            (24, oid(domain.collation)),
        ],
    );
    [row, array]
}

/// The element type of the argument that collects all further ones; [`Oid::NONE`] without one.
fn variadic(row: &ProcRow) -> Oid {
    let last = row.args.last().filter(|_| row.is_variadic);
    last.map_or(Oid::NONE, |ty| match *ty {
        SqlType::ANY => SqlType::ANY.oid,
        SqlType::ANYARRAY => SqlType::ANYELEMENT.oid,
        SqlType::ANYCOMPATIBLEARRAY => SqlType::ANYCOMPATIBLE.oid,
        ty => ty.element().map_or(Oid::NONE, |element| element.oid),
    })
}

fn function(row: &'static ProcRow) -> Vec<Datum> {
    let types = || row.args.iter().map(|ty| oid(ty.oid));
    let has_columns = !row.columns.is_empty();
    let (mut all_types, mut modes, mut names) = (Datum::Null, Datum::Null, Datum::Null);
    if has_columns || row.is_variadic {
        all_types = array(SqlType::OID, types().chain(row.columns.iter().map(|(_, ty)| oid(ty.oid))).collect());
        let last = row.args.len();
        let mode = |at: usize| if row.is_variadic && at + 1 == last { "v" } else { "i" };
        let inputs = (0..last).map(|at| text(mode(at)));
        modes = array(SqlType::CHAR, inputs.chain(row.columns.iter().map(|_| text("o"))).collect());
    }
    if has_columns || !row.names.is_empty() {
        let name = |at: usize| text(row.names.get(at).copied().unwrap_or(""));
        let inputs = (0..row.args.len()).map(name);
        names = array(SqlType::TEXT, inputs.chain(row.columns.iter().map(|(name, _)| text(name))).collect());
    }
    vec![
        oid(row.oid),
        text(row.name),
        Datum::Float(if row.is_listed_as_set() { 1000.0 } else { 0.0 }),
        oid(variadic(row)),
        text(if row.is_aggregate() {
            "a"
        } else if row.is_window() {
            "w"
        } else {
            "f"
        }),
        Datum::Bool(row.is_strict && !row.is_aggregate()),
        Datum::Bool(row.is_listed_as_set()),
        text(row.volatility.letter().to_string()),
        int(row.args.len()),
        int(row.defaults.len()),
        oid(row.result.oid),
        vector(SqlType::OID, types().collect()),
        all_types,
        modes,
        names,
        text(if row.is_aggregate() { "aggregate_dummy" } else { row.name }),
    ]
}

fn aggregate(row: &'static ProcRow) -> Vec<Datum> {
    let (kind, direct) = match row.run {
        Run::OrderedSet(direct, _) => ("o", direct),
        _ => ("n", 0),
    };
    vec![oid(row.oid), text(kind), int(direct)]
}

fn operator(row: &'static functions::OperatorRow) -> Vec<Datum> {
    let (merges, hashes) = facts::joins(row.oid);
    let exists = |other: Oid| oid(if operators::all().any(|row| row.oid == other) { other } else { Oid::NONE });
    vec![
        oid(row.oid),
        text(row.name),
        text(if row.left.is_some() { "b" } else { "l" }),
        Datum::Bool(merges),
        Datum::Bool(hashes),
        oid(row.left.map_or(Oid::NONE, |ty| ty.oid)),
        oid(row.right.oid),
        oid(row.result.oid),
        exists(row.commutator),
        exists(row.negator),
        oid(row.function),
    ]
}

/// Casts that PostgreSQL does not list, such as those of arrays, have no row.
fn cast_row(row: &cast::CastRow) -> Option<Vec<Datum>> {
    let number = facts::cast_oid(row.from, row.to);
    let is_function = row.function != Oid::NONE;
    let context = text(row.context.letter().to_string());
    let is_document = |oid: Oid| [SqlType::JSON.oid, SqlType::JSONB.oid].contains(&oid);
    let by_text = is_document(row.from) && is_document(row.to);
    let method = text(if is_function {
        "f"
    } else if by_text {
        "i"
    } else {
        "b"
    });
    (number != Oid::NONE).then(|| vec![oid(number), oid(row.from), oid(row.to), oid(row.function), context, method])
}
