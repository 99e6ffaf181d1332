//! Facts of PostgreSQL 15's catalogs that no other module of the server needs, read from the texts of `data/`.
//!
//! The texts are part of the program, and tests compare what is made of them with PostgreSQL. A line that cannot be
//! read is skipped: there is none.

use std::collections::HashMap;
use std::sync::LazyLock;

use pgtypes::{Oid, SqlType};

/// What `pg_type` says of a type beside what [`pgtypes::TypeRow`] has.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeFacts {
    /// Whether values are passed by value.
    pub(super) by_value: bool,
    /// Their alignment, as a letter.
    pub(super) align: &'static str,
    /// How long values are stored, as a letter.
    pub(super) storage: &'static str,
    /// The names of input, output, receive, send, modifier in and out; `-` for none.
    pub(super) functions: [&'static str; 6],
    /// The collation; none is [`Oid::NONE`].
    pub(super) collation: Oid,
    /// The name of the function of subscripts; `-` for none.
    pub(super) subscript: &'static str,
}

/// A domain of `information_schema`. Its columns have values of the base type, and results that type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Domain {
    pub(super) oid: Oid,
    pub(super) name: &'static str,
    /// The base type, with the modifier.
    pub(super) base: SqlType,
    pub(super) collation: Oid,
    /// The type of its arrays.
    pub(super) array: Oid,
}

/// Rows of a catalog that are facts, as text.
#[derive(Debug)]
pub(super) struct Section {
    /// The relation.
    pub(super) relation: &'static str,
    /// The names of the columns.
    pub(super) columns: Vec<&'static str>,
    /// The fields of each row; `\N` is NULL.
    pub(super) rows: Vec<Vec<&'static str>>,
}

#[derive(Debug, Default)]
struct Types {
    facts: HashMap<Oid, TypeFacts>,
    domains: Vec<Domain>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let mut types = Types::default();
    for fields in lines(include_str!("data/types.txt")) {
        match fields.as_slice() {
            [oid, "d", name, base, typmod, collation, array] => types.domains.push(Domain {
                oid: number(oid),
                name,
                base: SqlType { oid: number(base), typmod: typmod.parse().unwrap_or(-1) },
                collation: number(collation),
                array: number(array),
            }),
            [oid, by_value, align, storage, input, output, receive, send, mod_in, mod_out, collation, subscript] => {
                let functions = [*input, *output, *receive, *send, *mod_in, *mod_out];
                let (by_value, collation) = (*by_value == "t", number(collation));
                let facts = TypeFacts { by_value, align, storage, functions, collation, subscript };
                types.facts.insert(number(oid), facts);
            }
            _ => {}
        }
    }
    types
});

static CASTS: LazyLock<HashMap<(Oid, Oid), Oid>> = LazyLock::new(|| {
    let casts = lines(include_str!("data/casts.txt"));
    casts
        .filter_map(|fields| Some(((number(fields.get(1)?), number(fields.get(2)?)), number(fields.first()?))))
        .collect()
});

static OPERATORS: LazyLock<HashMap<Oid, (bool, bool)>> = LazyLock::new(|| {
    let operators = lines(include_str!("data/operators.txt"));
    let read = |fields: Vec<&str>| {
        let marks = fields.get(1)?;
        Some((number(fields.first()?), (marks.contains('m'), marks.contains('h'))))
    };
    operators.filter_map(read).collect()
});

static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let mut sections: Vec<Section> = Vec::new();
    for line in include_str!("data/rows.txt").lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix('[').and_then(|line| line.split_once("] ")), sections.last_mut()) {
            (Some((relation, columns)), _) => {
                let columns = columns.split(' ').collect();
                sections.push(Section { relation, columns, rows: Vec::new() });
            }
            (None, Some(section)) => section.rows.push(line.split('|').collect()),
            (None, None) => {}
        }
    }
    sections
});

/// The fields of the lines of a text that are no comments.
pub(super) fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

/// The OID of a field.
pub(super) fn number(field: &str) -> Oid {
    Oid(field.parse().unwrap_or(0))
}

/// The facts of a type. An array has those of all arrays, with the alignment, modifiers and collation of its elements.
pub(super) fn of_type(ty: SqlType) -> Option<TypeFacts> {
    if let Some(facts) = TYPES.facts.get(&ty.oid) {
        return Some(*facts);
    }
    let element = TYPES.facts.get(&ty.element()?.oid)?;
    let [.., mod_in, mod_out] = element.functions;
    Some(TypeFacts {
        by_value: false,
        align: if element.align == "d" { "d" } else { "i" },
        storage: "x",
        functions: ["array_in", "array_out", "array_recv", "array_send", mod_in, mod_out],
        collation: element.collation,
        subscript: "array_subscript_handler",
    })
}

/// The domains of `information_schema`.
pub(super) fn domains() -> &'static [Domain] {
    &TYPES.domains
}

/// The OID of a row of `pg_cast`; [`Oid::NONE`] for a cast that PostgreSQL does not list.
pub(super) fn cast_oid(from: Oid, to: Oid) -> Oid {
    CASTS.get(&(from, to)).copied().unwrap_or(Oid::NONE)
}

/// Whether an operator can be that of a merge join, and of a hash join.
pub(super) fn joins(operator: Oid) -> (bool, bool) {
    OPERATORS.get(&operator).copied().unwrap_or_default()
}

/// The rows of the relations that are facts alone.
pub(super) fn sections() -> &'static [Section] {
    &SECTIONS
}

/// The operator class of a B-tree over a type; [`Oid::NONE`] without one.
pub(super) fn operator_class(ty: SqlType) -> Oid {
    let base = match ty.base() {
        SqlType::VARCHAR => SqlType::TEXT,
        ty if ty.is_array() => SqlType::ANYARRAY,
        ty => ty,
    };
    static CLASSES: LazyLock<HashMap<Oid, Oid>> = LazyLock::new(|| {
        let section = sections().iter().find(|section| section.relation == "pg_opclass");
        let rows = section.into_iter().flat_map(|section| &section.rows);
        // oid, opcmethod, opcname, opcnamespace, opcowner, opcfamily, opcintype, opcdefault, opckeytype
        let default = |row: &&Vec<&str>| row.get(7) == Some(&"t");
        rows.filter(default).filter_map(|row| Some((number(row.get(6)?), number(row.first()?)))).collect()
    });
    CLASSES.get(&base.oid).copied().unwrap_or(Oid::NONE)
}
