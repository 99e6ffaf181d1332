//! CREATE SEQUENCE, ALTER SEQUENCE, and the sequences of serial and identity columns.

use sqlparser::ast::{
    DataType, Expr as Ast, Ident, ObjectName, SequenceOptions, Spanned, Statement, UnaryOperator, Value,
};

use super::binder::Binder;
use super::names::fold_ident;
use super::node::{Body, NewObject, Notice};
use crate::catalog::{NamedType, Relation};
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, SchemaId, Sequence};
use crate::parse::{ALTER_SEQUENCE, NO_LOCATION, RENAME_SEQUENCE, sequence_name, sequence_restart};
use crate::table::{Table, TableId, drawn_sequence};
use pgtypes::SqlType;

/// The options of a sequence, as far as they are given.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    increment: Option<i64>,
    min: Option<Option<i64>>,
    max: Option<Option<i64>>,
    start: Option<i64>,
    restart: Option<Option<i64>>,
    cache: Option<i64>,
    cycles: Option<bool>,
}

/// A new sequence of this type, before its options.
fn blank(schema: SchemaId, name: String, ty: SqlType) -> Sequence {
    Sequence {
        id: ObjectId(0),
        schema,
        name,
        ty,
        start: 1,
        increment: 1,
        min: 1,
        max: limits(ty).1,
        cache: 1,
        cycles: false,
        epoch: 0,
        restart: 1,
        owner: None,
    }
}

fn limits(ty: SqlType) -> (i64, i64) {
    match ty {
        SqlType::INT2 => (i16::MIN.into(), i16::MAX.into()),
        SqlType::INT4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The type of a `serial` column's name.
pub(super) fn serial(name: &DataType) -> Option<SqlType> {
    let DataType::Custom(name, modifiers) = name else { return None };
    let [part] = name.0.as_slice() else { return None };
    match fold_ident(part.as_ident()?).as_str() {
        "smallserial" | "serial2" if modifiers.is_empty() => Some(SqlType::INT2),
        "serial" | "serial4" if modifiers.is_empty() => Some(SqlType::INT4),
        "bigserial" | "serial8" if modifiers.is_empty() => Some(SqlType::INT8),
        _ => None,
    }
}

/// Applies options to a sequence. `old_type`: its type before ALTER; `None` if it is new.
fn apply(mut sequence: Sequence, options: &Options, old_type: Option<SqlType>) -> Result<Sequence, SqlError> {
    let (low, high) = limits(sequence.ty);
    let was = old_type.map(limits);
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".to_owned()));
        }
        sequence.increment = increment;
    }
    let ascends = sequence.increment > 0;
    // A limit that was that of the type follows it.
    let resets = |given: Option<Option<i64>>, now: i64, of_type: Option<i64>| match given {
        Some(Some(_)) => false,
        Some(None) => true,
        None => old_type.is_none() || (old_type != Some(sequence.ty) && Some(now) == of_type),
    };
    if let Some(Some(max)) = options.max {
        sequence.max = max;
    } else if resets(options.max, sequence.max, was.map(|was| was.1)) {
        sequence.max = if ascends { high } else { -1 };
    }
    if let Some(Some(min)) = options.min {
        sequence.min = min;
    } else if resets(options.min, sequence.min, was.map(|was| was.0)) {
        sequence.min = if ascends { 1 } else { low };
    }
    let ty = sequence.ty.base_name();
    for (what, value) in [("MAXVALUE", sequence.max), ("MINVALUE", sequence.min)] {
        if !(low..=high).contains(&value) {
            return Err(invalid(format!("{what} ({value}) is out of range for sequence data type {ty}")));
        }
    }
    if sequence.min >= sequence.max {
        let message = format!("MINVALUE ({}) must be less than MAXVALUE ({})", sequence.min, sequence.max);
        return Err(invalid(message));
    }
    match options.start {
        Some(start) => sequence.start = start,
        None if old_type.is_none() => sequence.start = if ascends { sequence.min } else { sequence.max },
        None => {}
    }
    sequence.check_value("START", sequence.start)?;
    if let Some(restart) = options.restart {
        sequence.restart_with(restart.unwrap_or(sequence.start));
    } else if old_type.is_none() {
        sequence.restart = sequence.start;
    }
    if old_type.is_none() || options.restart.is_some() {
        sequence.check_value("RESTART", sequence.restart)?;
    }
    if let Some(cache) = options.cache {
        if cache <= 0 {
            return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
        }
        sequence.cache = cache;
    }
    sequence.cycles = options.cycles.unwrap_or(sequence.cycles);
    Ok(sequence)
}

/// 42601 for an option that is given twice.
pub(super) fn redundant() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
}

/// The sequence restarted at its beginning.
pub(super) fn restarted(sequence: &Sequence) -> Sequence {
    let mut out = sequence.clone();
    out.restart_with(sequence.start);
    out
}

impl Binder<'_> {
    /// Binds CREATE SEQUENCE and ALTER SEQUENCE.
    pub(super) fn sequence_statement(&mut self, tree: &Statement) -> Result<Body, SqlError> {
        let Statement::CreateSequence { temporary, if_not_exists, name, data_type, sequence_options, owned_by } = tree
        else {
            return Err(SqlError::internal("the statement is about no sequence"));
        };
        let given = (data_type.as_ref(), sequence_options.as_slice(), owned_by.as_ref());
        let mark = name.0.first().and_then(|part| part.as_ident()).map_or("", |ident| ident.value.as_str());
        if mark != ALTER_SEQUENCE && mark != RENAME_SEQUENCE {
            return self.create_sequence((name, *temporary), *if_not_exists, given);
        }
        let name = ObjectName(name.0.get(1..).unwrap_or_default().to_vec());
        let Some(old) = self.sequence_named(&name, *if_not_exists)? else { return Ok(Body::Nothing("ALTER SEQUENCE")) };
        if mark == RENAME_SEQUENCE {
            return self.rename_sequence(&old, owned_by.as_ref());
        }
        let (data_type, options, owned_by) = given;
        let options = self.sequence_options(options)?;
        let mut new = old.clone();
        if let Some(ty) = data_type {
            new.ty = self.sequence_type(ty)?;
        }
        let mut new = apply(new, &options, Some(old.ty))?;
        if let Some(owner) = owned_by {
            new.owner = self.sequence_owner(owner, new.schema)?;
            self.refuse_identity(&old)?;
        }
        Ok(Body::AlterObject("ALTER SEQUENCE", Object::Sequence(old), Object::Sequence(new)))
    }

    /// 0A000 for another owner of a sequence that belongs to an identity column.
    fn refuse_identity(&self, sequence: &Sequence) -> Result<(), SqlError> {
        let owner = sequence.owner.and_then(|(table, column)| {
            let table = self.catalog.by_id(TableId(table.0))?;
            let column = table.columns.iter().find(|known| known.id.0 == column)?;
            let draws = column.default.as_deref().and_then(drawn_sequence) == Some(sequence.id);
            (column.identity.is_some() && draws).then_some(table)
        });
        let Some(table) = owner else { return Ok(()) };
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot change ownership of identity sequence");
        Err(error.detail(format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name)))
    }

    fn create_sequence(
        &mut self,
        (name, is_temporary): (&ObjectName, bool),
        if_not_exists: bool,
        (data_type, options, owned_by): (Option<&DataType>, &[SequenceOptions], Option<&ObjectName>),
    ) -> Result<Body, SqlError> {
        const TAG: &str = "CREATE SEQUENCE";
        let (schema, name) = self.new_relation(name, is_temporary)?;
        self.target = schema;
        let is_taken = self.is_taken(&name);
        let taken = format!("relation \"{name}\" already exists");
        if is_taken && if_not_exists {
            let message = format!("{taken}, skipping");
            self.notices.push(Notice { code: SqlState::DUPLICATE_TABLE, message, is_warning: false });
            return Ok(Body::CreateObject(TAG, None));
        }
        let ty = data_type.map(|ty| self.sequence_type(ty)).transpose()?.unwrap_or(SqlType::INT8);
        let options = self.sequence_options(options)?;
        let mut sequence = apply(blank(schema, name, ty), &options, None)?;
        if is_taken {
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, taken));
        }
        if let Some(owner) = owned_by {
            sequence.owner = self.sequence_owner(owner, schema)?;
        }
        Ok(Body::CreateObject(TAG, Some(NewObject::Relation(Object::Sequence(sequence)))))
    }

    fn rename_sequence(&mut self, old: &Sequence, name: Option<&ObjectName>) -> Result<Body, SqlError> {
        let parts = name.map(|name| self.name_parts(name)).transpose()?.unwrap_or_default();
        let [name] = parts.as_slice() else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "a sequence is renamed within its schema"));
        };
        self.target = old.schema;
        if self.is_taken(name) {
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
        }
        // The text of a view may name it.
        let new = Object::Sequence(Sequence { name: name.clone(), ..old.clone() });
        if !self.views_stay(old.id, &self.catalog.with_renamed(new.clone())) {
            return Err(self.unsupported("a new name for a sequence that a view reads is", NO_LOCATION));
        }
        if let Some((table, column)) = self.named_in_default(old.id) {
            let what =
                format!("a new name for a sequence that the default of column {column} of table {table} names is");
            return Err(self.unsupported(&what, NO_LOCATION));
        }
        Ok(Body::AlterObject("ALTER SEQUENCE", Object::Sequence(old.clone()), new))
    }

    /// The sequence of a name. `None` and a notice if there is none and that is allowed.
    fn sequence_named(&mut self, name: &ObjectName, if_exists: bool) -> Result<Option<Sequence>, SqlError> {
        match self.find_relation(name)? {
            Some((Relation::Object(object), last)) => match &*object {
                Object::Sequence(sequence) => Ok(Some(sequence.clone())),
                _ => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{last}\" is not a sequence"))),
            },
            Some((_, last)) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{last}\" is not a sequence"))),
            None => {
                let shown = self.name_parts(name)?.join(".");
                self.missing(SqlState::UNDEFINED_TABLE, &format!("relation \"{shown}\""), if_exists)?;
                Ok(None)
            }
        }
    }

    fn sequence_type(&self, name: &DataType) -> Result<SqlType, SqlError> {
        let at = super::type_name::location(name).unwrap_or(NO_LOCATION);
        match self.type_named(name, at)? {
            NamedType { ty: ty @ (SqlType::INT2 | SqlType::INT4 | SqlType::INT8), domain: None } => Ok(ty),
            _ => Err(invalid("sequence type must be smallint, integer, or bigint".to_owned())),
        }
    }

    /// The owner of OWNED BY; `None` for NONE.
    fn sequence_owner(&self, name: &ObjectName, schema: SchemaId) -> Result<Option<(ObjectId, u16)>, SqlError> {
        let mut parts = name.0.clone();
        let column = parts.pop().and_then(|part| part.as_ident().cloned()).unwrap_or_else(|| Ident::new(""));
        if parts.is_empty() {
            if column.quote_style.is_none() && column.value.eq_ignore_ascii_case("none") {
                return Ok(None);
            }
            let error = SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option");
            return Err(error.hint("Specify OWNED BY table.column or OWNED BY NONE."));
        }
        let table = self.table(&ObjectName(parts)).map_err(|error| SqlError { position: None, ..error })?;
        let column = fold_ident(&column);
        if table.schema != schema {
            let message = "sequence must be in same schema as table it is linked to";
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        let Some(column) = table.columns.iter().find(|known| known.name == column) else {
            let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        Ok(Some((ObjectId(table.id.0), column.id.0)))
    }

    fn sequence_options<'o>(&self, given: impl IntoIterator<Item = &'o SequenceOptions>) -> Result<Options, SqlError> {
        let mut out = Options::default();
        for option in given {
            if let Some((_, span)) = sequence_name(option) {
                let message = "invalid sequence option SEQUENCE NAME";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, span.start));
            }
            let repeated = if let Some(restart) = sequence_restart(option) {
                let value = restart.map(|value| self.sequence_number(value)).transpose()?;
                out.restart.replace(value).is_some()
            } else {
                match option {
                    SequenceOptions::IncrementBy(value, _) => {
                        out.increment.replace(self.sequence_number(value)?).is_some()
                    }
                    SequenceOptions::MinValue(value) => {
                        out.min.replace(value.as_ref().map(|value| self.sequence_number(value)).transpose()?).is_some()
                    }
                    SequenceOptions::MaxValue(value) => {
                        out.max.replace(value.as_ref().map(|value| self.sequence_number(value)).transpose()?).is_some()
                    }
                    SequenceOptions::StartWith(value, _) => out.start.replace(self.sequence_number(value)?).is_some(),
                    SequenceOptions::Cache(value) => out.cache.replace(self.sequence_number(value)?).is_some(),
                    SequenceOptions::Cycle(cycles) => out.cycles.replace(*cycles).is_some(),
                }
            };
            if repeated {
                return Err(redundant());
            }
        }
        Ok(out)
    }

    fn sequence_number(&self, ast: &Ast) -> Result<i64, SqlError> {
        let (sign, number) = match ast {
            Ast::UnaryOp { op: UnaryOperator::Minus, expr } => ("-", &**expr),
            Ast::UnaryOp { op: UnaryOperator::Plus, expr } => ("", &**expr),
            other => ("", other),
        };
        let Ast::Value(value) = number else { return Err(self.unsupported("this option is", ast.span().start)) };
        let Value::Number(digits, _) = &value.value else {
            return Err(self.unsupported("this option is", ast.span().start));
        };
        let text = format!("{sign}{digits}");
        text.parse().map_err(|_| {
            let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
            match is_integer {
                true => {
                    let message = format!("value \"{text}\" is out of range for type bigint");
                    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
                }
                false => {
                    let message = format!("invalid input syntax for type bigint: \"{text}\"");
                    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
                }
            }
        })
    }

    /// The sequence of a serial or identity column.
    pub(super) fn column_sequence(
        &self,
        (table, column, ty): (&str, &str, SqlType),
        options: &[SequenceOptions],
        taken: &[String],
    ) -> Result<Sequence, SqlError> {
        let (mut named, mut others) = (None, Vec::with_capacity(options.len()));
        for option in options {
            match sequence_name(option) {
                Some(_) if named.is_some() => return Err(redundant()),
                Some((name, _)) => named = Some(name),
                None => others.push(option),
            }
        }
        let name = match named {
            Some(name) => self.given_sequence_name(&name, taken)?,
            None => self.free_name(table, Some(column), "seq", taken),
        };
        let options = self.sequence_options(others)?;
        apply(blank(self.target, name, ty), &options, None)
    }

    /// The name of SEQUENCE NAME, in the schema of the table.
    fn given_sequence_name(&self, name: &ObjectName, taken: &[String]) -> Result<String, SqlError> {
        let (schema, name) = self.new_relation(name, self.is_temporary(self.target))?;
        if schema != self.target {
            let message = "sequence must be in same schema as table it is linked to";
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        if self.is_taken(&name) || taken.contains(&name) {
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
        }
        Ok(name)
    }

    /// The sequence of an identity column with other options.
    pub(super) fn with_options<'o>(
        &self,
        sequence: &Sequence,
        options: impl IntoIterator<Item = &'o SequenceOptions>,
    ) -> Result<Sequence, SqlError> {
        let options = self.sequence_options(options)?;
        apply(sequence.clone(), &options, Some(sequence.ty))
    }

    /// The sequences that columns of these tables own, restarted: what they were, what they are to be.
    pub(super) fn restarts(&self, tables: &[std::sync::Arc<Table>]) -> Vec<(Object, Object)> {
        let owned = |sequence: &Sequence| {
            sequence.owner.is_some_and(|(owner, _)| tables.iter().any(|table| table.id.0 == owner.0))
        };
        let relations = self.catalog.relations();
        let sequences = relations.iter().filter_map(|object| match &**object {
            Object::Sequence(sequence) if owned(sequence) => Some(sequence),
            _ => None,
        });
        sequences.map(|old| (Object::Sequence(old.clone()), Object::Sequence(restarted(old)))).collect()
    }
}
