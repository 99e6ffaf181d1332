//! Resolution of type names: what the grammar spells in several ways, and names in the table of types.

use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, IntervalFields, ObjectName, Spanned, TimezoneInfo,
};
use sqlparser::tokenizer::Location;

use super::names::fold_ident;
use crate::catalog::{Catalog, NamedType};
use crate::error::{SqlError, SqlState};
use crate::parse::float_precision_error;
use pgtypes::datetime::{self, IntervalTypmod};
use pgtypes::{SqlType, find_name};

/// 42P16 for a type that no column of a relation can have.
pub(super) fn check_column_type(column: &str, ty: SqlType) -> Result<(), SqlError> {
    if ty.is_storable() {
        return Ok(());
    }
    let message = format!("column \"{column}\" has pseudo-type {}", ty.name());
    Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
}

/// The location of a type name, if the parser has it.
pub(super) fn location(name: &DataType) -> Option<Location> {
    match name {
        DataType::Custom(name, _) => Some(name.span().start),
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => location(element),
        _ => None,
    }
}

/// Finds a user's type by its folded schema, if it is named, and name.
pub(super) type FindType<'f> = &'f dyn Fn(Option<&str>, &str) -> Option<NamedType>;

/// What the name of a type means in a catalog. Errors as of [`resolve`].
pub(crate) fn resolve_in(catalog: &Catalog, name: &DataType) -> Result<NamedType, SqlError> {
    let short = without_database(name, catalog);
    resolve(short.as_ref().unwrap_or(name), &|schema, name| catalog.find_type(schema, name))
}

/// The name of a type without the name of the session's database; `None` if it has none.
pub(super) fn without_database(name: &DataType, catalog: &Catalog) -> Option<DataType> {
    match name {
        DataType::Custom(name, modifiers) => {
            let (database, rest) = name.0.split_first()?;
            let is_own = rest.len() == 2 && catalog.is_own_database(&fold_ident(database.as_ident()?));
            is_own.then(|| DataType::Custom(ObjectName(rest.to_vec()), modifiers.clone()))
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, size)) => {
            let element = Box::new(without_database(element, catalog)?);
            Some(DataType::Array(ArrayElemTypeDef::SquareBracket(element, *size)))
        }
        _ => None,
    }
}

/// Whether the name of a type begins with more than a schema.
pub(super) fn is_far(name: &DataType) -> bool {
    match name {
        DataType::Custom(name, _) => name.0.len() > 2,
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => is_far(element),
        _ => false,
    }
}

/// What the name of a type means. 42704 if there is no such type, 0A000 if it is one of PostgreSQL that is not
/// supported here, or of another database.
pub(super) fn resolve(name: &DataType, find: FindType<'_>) -> Result<NamedType, SqlError> {
    let (ty, modifiers) = match name {
        DataType::Bool | DataType::Boolean => (SqlType::BOOL, Vec::new()),
        DataType::SmallInt(None) | DataType::Int2(None) => (SqlType::INT2, Vec::new()),
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => (SqlType::INT4, Vec::new()),
        DataType::BigInt(None) | DataType::Int8(None) => (SqlType::INT8, Vec::new()),
        DataType::Real | DataType::Float4 => (SqlType::FLOAT4, Vec::new()),
        DataType::Float8 | DataType::DoublePrecision | DataType::Double(ExactNumberInfo::None) => {
            (SqlType::FLOAT8, Vec::new())
        }
        DataType::Float(ExactNumberInfo::None) => (SqlType::FLOAT8, Vec::new()),
        DataType::Float(ExactNumberInfo::Precision(bits)) => (float(*bits)?, Vec::new()),
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => {
            (SqlType::NUMERIC, exact_number(info)?)
        }
        DataType::Text => (SqlType::TEXT, Vec::new()),
        DataType::Varchar(length) | DataType::CharacterVarying(length) | DataType::CharVarying(length) => {
            (SqlType::VARCHAR, char_length(length.as_ref())?)
        }
        // Without a length it has one character.
        DataType::Char(None) | DataType::Character(None) => (SqlType::BPCHAR, vec![1]),
        DataType::Char(length) | DataType::Character(length) => (SqlType::BPCHAR, char_length(length.as_ref())?),
        DataType::Bytea => (SqlType::BYTEA, Vec::new()),
        DataType::Uuid => (SqlType::UUID, Vec::new()),
        DataType::JSON => (SqlType::JSON, Vec::new()),
        DataType::JSONB => (SqlType::JSONB, Vec::new()),
        DataType::Regclass => (SqlType::REGCLASS, Vec::new()),
        DataType::Date => (SqlType::DATE, Vec::new()),
        DataType::Time(digits, zone) => (zoned(zone, SqlType::TIME, SqlType::TIMETZ), precision(*digits)),
        DataType::Timestamp(digits, zone) => {
            (zoned(zone, SqlType::TIMESTAMP, SqlType::TIMESTAMPTZ), precision(*digits))
        }
        DataType::Interval { fields, precision } => return Ok(interval(fields.as_ref(), *precision)?.into()),
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => return array(resolve(element, find)?),
        DataType::Custom(name, modifiers) => return custom(name, modifiers, find),
        other => return Err(unsupported_type(&other.to_string().to_ascii_lowercase())),
    };
    Ok(modified(ty, &modifiers)?.into())
}

/// The name that a type gives to the column of a cast.
pub(super) fn column_name(name: &DataType) -> Option<String> {
    match (resolve(name, &|_, _| None), name) {
        (_, DataType::Array(ArrayElemTypeDef::SquareBracket(element, _))) => column_name(element),
        (Ok(named), _) => Some(named.ty.row().name.to_owned()),
        // A user's type. If there is none, the statement is refused.
        (Err(_), DataType::Custom(name, _)) => name.0.last().and_then(|part| part.as_ident()).map(fold_ident),
        (Err(_), _) => None,
    }
}

fn unsupported_type(name: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("type {name} is not supported yet"))
}

/// The type with what was written in parentheses.
fn modified(ty: SqlType, written: &[i32]) -> Result<SqlType, SqlError> {
    match (written, ty.row().modifier) {
        ([], _) => Ok(ty),
        (_, Some(modifier)) => Ok(SqlType { typmod: (modifier.read)(ty.row(), written)?, ..ty }),
        (_, None) => {
            let message = format!("type modifier is not allowed for type \"{}\"", ty.row().name);
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

/// The array type of an element type. Arrays of arrays are the same type.
fn array(element: NamedType) -> Result<NamedType, SqlError> {
    if element.domain.is_some() {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "arrays of domains are not supported yet"));
    }
    if element.ty.is_array() {
        return Ok(element);
    }
    element.array().ok_or_else(|| {
        let message = format!("could not find array type for data type {}", element.ty.name());
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

fn zoned(zone: &TimezoneInfo, without: SqlType, with: SqlType) -> SqlType {
    match zone {
        TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => without,
        TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => with,
    }
}

fn precision(digits: Option<u64>) -> Vec<i32> {
    digits.map(clamped).into_iter().collect()
}

/// A number that is too large is refused as the largest one.
fn clamped(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn float(bits: u64) -> Result<SqlType, SqlError> {
    match float_precision_error(bits) {
        Some(error) => Err(error),
        None if bits <= 24 => Ok(SqlType::FLOAT4),
        None => Ok(SqlType::FLOAT8),
    }
}

fn exact_number(info: &ExactNumberInfo) -> Result<Vec<i32>, SqlError> {
    let number = |scale: i64| i32::try_from(scale).unwrap_or(if scale < 0 { i32::MIN } else { i32::MAX });
    Ok(match info {
        ExactNumberInfo::None => Vec::new(),
        ExactNumberInfo::Precision(digits) => vec![clamped(*digits)],
        ExactNumberInfo::PrecisionAndScale(digits, scale) => vec![clamped(*digits), number(*scale)],
    })
}

fn char_length(length: Option<&CharacterLength>) -> Result<Vec<i32>, SqlError> {
    match length {
        None => Ok(Vec::new()),
        Some(CharacterLength::IntegerLength { length, unit: None }) => Ok(vec![clamped(*length)]),
        Some(other) => Err(unsupported_type(&format!("varchar({other})").to_ascii_lowercase())),
    }
}

/// `interval`, with fields, precision or both. The fields are known by the name that they print as.
fn interval(fields: Option<&IntervalFields>, precision: Option<u64>) -> Result<SqlType, SqlError> {
    let mut typmod = IntervalTypmod::NONE;
    if let Some(named) = fields.and_then(|fields| datetime::IntervalFields::named(&fields.to_string())) {
        typmod.fields = named;
    }
    if let Some(digits) = precision {
        let (digits, _) = datetime::check_precision(datetime::PrecisionOf::Interval, clamped(digits))?;
        typmod.precision = Some(digits);
    }
    if fields.is_none() && precision.is_none() {
        return Ok(SqlType::INTERVAL);
    }
    Ok(SqlType { typmod: typmod.encode(), ..SqlType::INTERVAL })
}

/// Types of PostgreSQL that do not exist here.
const UNSUPPORTED: &[&str] = &[
    "money",
    "inet",
    "cidr",
    "macaddr",
    "macaddr8",
    "xml",
    "int4range",
    "int8range",
    "numrange",
    "tsrange",
    "tstzrange",
    "daterange",
    "tsvector",
    "tsquery",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "bit",
    "varbit",
    "jsonpath",
    "txid_snapshot",
    "pg_snapshot",
];

/// Type names without a variant in the parser.
fn custom(name: &ObjectName, modifiers: &[String], find: FindType<'_>) -> Result<NamedType, SqlError> {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(fold_ident).collect();
    let word = match parts.as_slice() {
        [word] => word.as_str(),
        [schema, word] if schema == "pg_catalog" => word.as_str(),
        [schema, word] => {
            let found = find(Some(schema), word).ok_or_else(|| missing(&parts.join(".")))?;
            return users(found, word, modifiers);
        }
        _ => return Err(SqlError::far_name(&parts, 3)),
    };
    // A quoted "char" is another type than the word.
    if let Some(row) = find_name(word) {
        let written: Vec<i32> = modifiers.iter().filter_map(|number| number.trim().parse().ok()).collect();
        if written.len() < modifiers.len() {
            let message = "type modifiers must be simple constants or identifiers";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        return Ok(modified(row.ty(), &written)?.into());
    }
    if let Some(found) = find(None, word) {
        return users(found, word, modifiers);
    }
    if UNSUPPORTED.contains(&word) || ["serial", "bigserial", "smallserial"].contains(&word) {
        return Err(unsupported_type(word));
    }
    Err(missing(word))
}

/// A user's type. It has no modifier.
fn users(found: NamedType, name: &str, modifiers: &[String]) -> Result<NamedType, SqlError> {
    if modifiers.is_empty() {
        return Ok(found);
    }
    let message = format!("type modifier is not allowed for type \"{name}\"");
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
}

fn missing(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"))
}
