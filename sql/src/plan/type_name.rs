//! Resolution of type names.

use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo, Spanned, TimezoneInfo};
use sqlparser::tokenizer::Location;

use crate::error::{SqlError, SqlState};
use pgtypes::{MAX_VARCHAR, SqlType};

/// The location of a type name, if the parser has it.
pub(super) fn location(name: &DataType) -> Option<Location> {
    match name {
        DataType::Custom(name, _) => Some(name.span().start),
        _ => None,
    }
}

/// The type of a name. 42704 if PostgreSQL has no such type, 0A000 if it is not supported here.
pub(super) fn resolve(name: &DataType) -> Result<SqlType, SqlError> {
    Ok(match name {
        DataType::Bool | DataType::Boolean => SqlType::BOOL,
        DataType::SmallInt(None) | DataType::Int2(None) => SqlType::INT2,
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => SqlType::INT4,
        DataType::BigInt(None) | DataType::Int8(None) => SqlType::INT8,
        DataType::Float8 | DataType::DoublePrecision | DataType::Double(ExactNumberInfo::None) => SqlType::FLOAT8,
        DataType::Float(ExactNumberInfo::None) => SqlType::FLOAT8,
        DataType::Float(ExactNumberInfo::Precision(bits)) => float(*bits)?,
        DataType::Text => SqlType::TEXT,
        DataType::Varchar(length) | DataType::CharacterVarying(length) | DataType::CharVarying(length) => {
            varchar(length.as_ref())?
        }
        DataType::Bytea => SqlType::BYTEA,
        DataType::Timestamp(None, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => SqlType::TIMESTAMPTZ,
        DataType::Timestamp(Some(digits), TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) if *digits >= 6 => {
            SqlType::TIMESTAMPTZ
        }
        DataType::Custom(name, modifiers) => return custom(name, modifiers),
        other => return Err(unsupported_type(&other.to_string().to_ascii_lowercase())),
    })
}

fn unsupported_type(name: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("type {name} is not supported yet"))
}

fn float(bits: u64) -> Result<SqlType, SqlError> {
    match bits {
        0 => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "precision for type float must be at least 1 bit")),
        1..=24 => Err(unsupported_type("real")),
        25..=53 => Ok(SqlType::FLOAT8),
        _ => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "precision for type float must be less than 54 bits"))
        }
    }
}

fn varchar(length: Option<&CharacterLength>) -> Result<SqlType, SqlError> {
    match length {
        None => Ok(SqlType::VARCHAR),
        Some(CharacterLength::IntegerLength { length: 0, .. }) => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "length for type varchar must be at least 1"))
        }
        Some(CharacterLength::IntegerLength { length, .. }) if *length <= MAX_VARCHAR => {
            Ok(SqlType::varchar(u32::try_from(*length).unwrap_or(u32::MAX)))
        }
        Some(_) => {
            let message = format!("length for type varchar cannot exceed {MAX_VARCHAR}");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
    }
}

/// Type names without a variant in the parser.
fn custom(name: &sqlparser::ast::ObjectName, modifiers: &[String]) -> Result<SqlType, SqlError> {
    let shown = name.to_string();
    let mut word = shown.to_ascii_lowercase();
    for prefix in ["pg_catalog.", "\"pg_catalog\"."] {
        if let Some(rest) = word.strip_prefix(prefix) {
            word = rest.to_owned();
        }
    }
    let known = match word.trim_matches('"') {
        "timestamptz" => Some(SqlType::TIMESTAMPTZ),
        "bool" => Some(SqlType::BOOL),
        "int2" => Some(SqlType::INT2),
        "int4" => Some(SqlType::INT4),
        "int8" => Some(SqlType::INT8),
        "float8" => Some(SqlType::FLOAT8),
        "text" => Some(SqlType::TEXT),
        "varchar" => Some(SqlType::VARCHAR),
        "bytea" => Some(SqlType::BYTEA),
        _ => None,
    };
    if let Some(ty) = known.filter(|_| modifiers.is_empty()) {
        return Ok(ty);
    }
    let unsupported = [
        "serial",
        "bigserial",
        "smallserial",
        "serial4",
        "serial8",
        "serial2",
        "money",
        "inet",
        "cidr",
        "macaddr",
        "xml",
        "name",
        "oid",
        "regclass",
        "regtype",
        "regproc",
        "jsonb",
        "json",
        "uuid",
        "bpchar",
        "int4range",
        "int8range",
        "tsvector",
        "tsquery",
        "point",
        "hstore",
        "citext",
        "date",
        "time",
        "timetz",
        "timestamp",
        "interval",
        "numeric",
    ];
    if unsupported.contains(&word.as_str()) {
        return Err(unsupported_type(&word));
    }
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{word}\" does not exist")))
}
