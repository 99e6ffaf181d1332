//! The types, functions, operators and casts that both servers have, from their own catalogs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::wire::{Client, Row};

/// A type's OID.
pub type TypeOid = u32;

/// A data type.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its OID.
    pub oid: TypeOid,
    /// Its name, as a cast writes it.
    pub name: String,
    /// The type of its elements, if it is an array.
    pub element: Option<TypeOid>,
}

/// A function or an aggregate.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The types of its arguments.
    pub arguments: Vec<TypeOid>,
    /// The type of its result.
    pub result: TypeOid,
    /// Whether it returns a set.
    pub returns_set: bool,
    /// Whether it is an aggregate that takes no ORDER BY of its own.
    pub is_aggregate: bool,
    /// Whether its last argument stands for any number of them.
    pub is_variadic: bool,
}

/// An operator.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// The type on its left side, `None` for a prefix operator.
    pub left: Option<TypeOid>,
    /// The type on its right side.
    pub right: TypeOid,
    /// The type of its result.
    pub result: TypeOid,
}

/// What both servers have.
#[derive(Debug)]
pub struct Catalog {
    /// The types, by OID.
    pub types: BTreeMap<TypeOid, Type>,
    /// The functions.
    pub functions: Vec<Function>,
    /// The operators.
    pub operators: Vec<Operator>,
    /// The casts: from, to.
    pub casts: Vec<(TypeOid, TypeOid)>,
}

const TYPES: &str = "SELECT oid, format_type(oid, NULL), typelem, typcategory FROM pg_type ORDER BY oid";
const FUNCTIONS: &str = "SELECT oid, proname, proargtypes, prorettype, proretset, prokind, provariadic <> 0, \
     provolatile FROM pg_proc WHERE pronamespace = 11 AND prokind IN ('f', 'a') ORDER BY oid";
const ORDERED_SET: &str = "SELECT aggfnoid::oid FROM pg_aggregate WHERE aggkind <> 'n'";
const OPERATORS: &str =
    "SELECT oid, oprname, oprleft, oprright, oprresult FROM pg_operator WHERE oprcode <> 0 ORDER BY oid";
const CASTS: &str = "SELECT castsource, casttarget FROM pg_cast ORDER BY 1, 2";

/// Functions whose results depend on the clock, the session or the server.
const EXCLUDED: [&str; 30] = [
    "now",
    "transaction_timestamp",
    "statement_timestamp",
    "clock_timestamp",
    "timeofday",
    "version",
    "current_user",
    "session_user",
    "current_database",
    "current_schema",
    "current_schemas",
    "getdatabaseencoding",
    "set_config",
    "current_setting",
    "current_query",
    "row_security_active",
    "gen_random_uuid",
    "random",
    "setseed",
    "nextval",
    "currval",
    "lastval",
    "setval",
    "has_any_column_privilege",
    "user",
    "format_type",
    "col_description",
    "obj_description",
    "shobj_description",
    "lo_import",
];
const EXCLUDED_PREFIXES: [&str; 6] = ["pg_", "has_", "inet_", "txid_", "lo_", "to_reg"];

fn rows(client: &mut Client, sql: &str) -> io::Result<Vec<Vec<String>>> {
    let answer = client.simple(sql)?;
    if let Some(error) = answer.error {
        return Err(io::Error::other(format!("{sql}: {}", error.message)));
    }
    let text = |value: Option<Vec<u8>>| value.map(|v| String::from_utf8_lossy(&v).into_owned()).unwrap_or_default();
    Ok(answer.rows.into_iter().map(|row: Row| row.into_iter().map(text).collect()).collect())
}

/// The rows of PostgreSQL whose key Cortado has too.
fn common(postgres: &mut Client, cortado: &mut Client, sql: &str, key: usize) -> io::Result<Vec<Vec<String>>> {
    let ours: BTreeSet<Vec<String>> = rows(cortado, sql)?.into_iter().map(|row| row[..key].to_vec()).collect();
    Ok(rows(postgres, sql)?.into_iter().filter(|row| ours.contains(&row[..key])).collect())
}

/// Whether a function applies a modifier to a value of its type. PostgreSQL does not check what it is given.
fn is_modifier(row: &[String]) -> bool {
    let mut arguments = row[2].split_whitespace();
    arguments.next() == Some(&row[3])
        && arguments.next() == Some("23")
        && row[1] != "timezone"
        && TYPES_WITH_MODIFIERS.contains(&&*row[1])
}

/// The types whose modifiers are applied by a function of their name.
const TYPES_WITH_MODIFIERS: [&str; 8] =
    ["bpchar", "varchar", "numeric", "interval", "time", "timetz", "timestamp", "timestamptz"];

fn oid(text: &str) -> TypeOid {
    text.parse().unwrap_or_default()
}

impl Catalog {
    /// Reads the catalogs of both.
    pub fn read(postgres: &mut Client, cortado: &mut Client) -> io::Result<Catalog> {
        let types = common(postgres, cortado, TYPES, 1)?.into_iter().map(|row| {
            let element = Some(oid(&row[2])).filter(|element| *element != 0 && row[3] == "A");
            (oid(&row[0]), Type { oid: oid(&row[0]), name: row[1].clone(), element })
        });
        let ordered_set: BTreeSet<String> =
            rows(postgres, ORDERED_SET)?.into_iter().map(|row| row[0].clone()).collect();
        let functions = common(postgres, cortado, FUNCTIONS, 2)?.into_iter().filter(|row| {
            let name = &*row[1];
            let excluded = EXCLUDED.contains(&name)
                || EXCLUDED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || name.ends_with("send");
            // age() of one argument reads the clock.
            let reads_clock = name == "age" && !row[2].contains(' ');
            // Only the sign of such a comparison is defined.
            let is_order = [
                "bttextcmp",
                "bttext_pattern_cmp",
                "btnametextcmp",
                "bttextnamecmp",
                "btnamecmp",
                "bpcharcmp",
                "btbpchar_pattern_cmp",
                "byteacmp",
                "btcharcmp",
            ]
            .contains(&name);
            let is_excluded = excluded || reads_clock || is_order || is_modifier(row) || row[7] == "v";
            !is_excluded && !ordered_set.contains(&row[0])
        });
        let functions = functions.map(|row| Function {
            name: row[1].clone(),
            arguments: row[2].split_whitespace().map(oid).collect(),
            result: oid(&row[3]),
            returns_set: row[4] == "t",
            is_aggregate: row[5] == "a",
            is_variadic: row[6] == "t",
        });
        let operators = common(postgres, cortado, OPERATORS, 2)?.into_iter().map(|row| Operator {
            name: row[1].clone(),
            left: Some(oid(&row[2])).filter(|left| *left != 0),
            right: oid(&row[3]),
            result: oid(&row[4]),
        });
        let (types, functions, operators) = (types.collect(), functions.collect(), operators.collect());
        let casts = common(postgres, cortado, CASTS, 2)?.into_iter().map(|row| (oid(&row[0]), oid(&row[1]))).collect();
        Ok(Catalog { types, functions, operators, casts })
    }

    /// A type's name, as a cast writes it.
    pub fn name(&self, of: TypeOid) -> &str {
        self.types.get(&of).map_or("text", |found| &found.name)
    }

    /// The array of a type.
    pub fn array_of(&self, element: TypeOid) -> Option<TypeOid> {
        let mut arrays = self.types.values().filter(|found| found.element == Some(element));
        // Vectors of the catalog are arrays of another form.
        arrays.find(|found| found.name.ends_with("[]")).map(|found| found.oid)
    }
}
