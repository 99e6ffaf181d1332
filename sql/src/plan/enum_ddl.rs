//! CREATE TYPE ... AS ENUM, ALTER TYPE and DROP TYPE.

use sqlparser::ast::{
    AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, Ident, ObjectName, Spanned,
    UserDefinedTypeRepresentation,
};

use super::binder::Binder;
use super::drops::Dropped;
use super::names::fold_ident;
use super::node::{Body, NewObject, Notice};
use crate::catalog::Relation;
use crate::error::{SqlError, SqlState};
use crate::object::{EnumType, Object, ObjectId, SchemaId};
use crate::parse::domain_name;
use pgtypes::{Label, SqlType};

/// The longest label, in bytes.
const MAX_LABEL_BYTES: usize = 63;

impl Binder<'_> {
    /// Binds CREATE TYPE.
    pub(super) fn create_type(
        &mut self,
        name: &ObjectName,
        representation: Option<&UserDefinedTypeRepresentation>,
    ) -> Result<Body, SqlError> {
        const TAG: &str = "CREATE TYPE";
        let Some(UserDefinedTypeRepresentation::Enum { labels }) = representation else {
            return Err(self.unsupported("CREATE TYPE of a type that is no enum is", name.span().start));
        };
        self.type_parts(name)?;
        let (schema, name) = self.new_name(name)?;
        self.check_free_type(schema, &name)?;
        let mut texts: Vec<Box<str>> = Vec::with_capacity(labels.len());
        for label in labels {
            let text = label_text(label)?;
            if texts.contains(&text) {
                let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                return Err(SqlError::new(SqlState::UNIQUE_VIOLATION, message));
            }
            texts.push(text);
        }
        let orders = EnumType::orders(texts.len());
        let labels = texts.into_iter().zip(orders).map(|(name, order)| Label { order, name }).collect();
        let created = EnumType { id: ObjectId(0), schema, name, labels, label_oids: Vec::new() };
        Ok(Body::CreateObject(TAG, Some(NewObject::Relation(Object::Enum(created)))))
    }

    /// Binds ALTER TYPE of an enum.
    pub(super) fn alter_type(&mut self, alter: &AlterType) -> Result<Body, SqlError> {
        const TAG: &str = "ALTER TYPE";
        if let AlterTypeOperation::Rename(rename) = &alter.operation
            && let Some(Object::Domain(domain)) = self.find_user_type(&self.type_parts(&alter.name)?).as_deref()
        {
            return self.rename_domain(TAG, domain.clone(), &rename.new_name);
        }
        let old = self.enum_named(&alter.name)?;
        let mut new = old.clone();
        match &alter.operation {
            AlterTypeOperation::Rename(rename) => {
                self.check_new_name(&rename.new_name)?;
                new.name = fold_ident(&rename.new_name);
                self.check_free_type(old.schema, &new.name)?;
                self.check_renamed(&old, &new, alter)?;
            }
            AlterTypeOperation::AddValue(add) => {
                if !self.add_label(add, &mut new)? {
                    return Ok(Body::CreateObject(TAG, None));
                }
            }
            AlterTypeOperation::RenameValue(rename) => {
                let (from, to) = (place_of(&rename.from, &old)?, label_text(&rename.to)?);
                if old.labels.iter().any(|label| label.name == to) {
                    let message = format!("enum label \"{to}\" already exists");
                    return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
                }
                new.labels[from].name = to;
                return self.relabel(TAG, (old, new), alter.name.span().start);
            }
        }
        Ok(Body::AlterObject(TAG, Object::Enum(old), Object::Enum(new)))
    }

    /// Adds a label; false if IF NOT EXISTS finds it.
    fn add_label(&mut self, add: &AlterTypeAddValue, new: &mut EnumType) -> Result<bool, SqlError> {
        let text = label_text(&add.value)?;
        if new.labels.iter().any(|label| label.name == text) {
            let message = format!("enum label \"{text}\" already exists");
            if !add.if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
            }
            let message = format!("{message}, skipping");
            self.notices.push(Notice { code: SqlState::DUPLICATE_OBJECT, message, is_warning: false });
            return Ok(false);
        }
        let place = match &add.position {
            None => new.labels.len(),
            Some(AlterTypeAddValuePosition::Before(neighbour)) => place_of(neighbour, new)?,
            Some(AlterTypeAddValuePosition::After(neighbour)) => place_of(neighbour, new)? + 1,
        };
        let Some(order) = new.order_at(place) else {
            let message = format!("no more labels fit between the neighbours of \"{text}\"");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Up to 32 labels can be put between the same two, one after the other."));
        };
        new.labels.insert(place, Label { order, name: text });
        new.label_oids.insert(place, 0);
        Ok(true)
    }

    /// 0A000 if something stored as text names the type.
    fn check_renamed(&self, old: &EnumType, new: &EnumType, alter: &AlterType) -> Result<(), SqlError> {
        let catalog = self.catalog.with_renamed(Object::Enum(new.clone()));
        if !self.views_stay(old.id, &catalog) || self.unbound(&catalog, &[]).is_some() {
            return Err(self.unsupported(
                "a new name for a type that a view, a default or a constraint names is",
                alter.name.span().start,
            ));
        }
        Ok(())
    }

    /// Binds DROP TYPE and DROP DOMAIN.
    pub(super) fn drop_types(
        &mut self,
        names: &[ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Body, SqlError> {
        let (mut roots, mut tag) = (Vec::new(), "DROP TYPE");
        for name in names {
            let domain = domain_name(name);
            let parts = self.type_parts(domain.as_ref().unwrap_or(name))?;
            let (found, of_system) = (self.find_user_type(&parts), self.system_type(&parts));
            if domain.is_some() {
                tag = "DROP DOMAIN";
                let is_other =
                    found.as_ref().map_or(of_system.is_some(), |found| !matches!(**found, Object::Domain(_)));
                if is_other {
                    let message = format!("\"{}\" is not a domain", parts.join("."));
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
            }
            if let Some(found) = found {
                roots.push(Dropped::Object(found));
                continue;
            }
            if let Some(name) = of_system {
                let message = format!("cannot drop type {name} because it is required by the database system");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            self.missing(SqlState::UNDEFINED_OBJECT, &format!("type \"{}\"", parts.join(".")), if_exists)?;
        }
        Ok(Body::Drop(tag, self.drops(roots, cascade)?))
    }

    /// 42710 if a type has this name, that of a table's rows among them.
    pub(super) fn check_free_type(&self, schema: SchemaId, name: &str) -> Result<(), SqlError> {
        let is_row_type = match self.look_up(Some(schema), name) {
            Some(Relation::Table(_)) => true,
            Some(Relation::Object(object)) => matches!(*object, Object::View(_)),
            Some(Relation::Index(_)) | None => false,
        };
        if is_row_type || self.look_up_type(Some(schema), name).is_some() {
            let message = format!("type \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
        }
        Ok(())
    }

    /// The folded parts of the name of a type. 0A000 if it is in another database.
    pub(super) fn type_parts(&self, name: &ObjectName) -> Result<Vec<String>, SqlError> {
        let parts = self.name_parts(name)?;
        if parts.len() > 2 { Err(SqlError::far_name(&parts, 3)) } else { Ok(parts) }
    }

    pub(super) fn find_user_type(&self, parts: &[String]) -> Option<std::sync::Arc<Object>> {
        match parts {
            [name] => self.look_up_type(None, name),
            [schema, name] => self.look_up_type(Some(self.catalog.schema(schema)?.id), name),
            _ => None,
        }
    }

    /// The name of a type that is not a user's.
    pub(super) fn system_type(&self, parts: &[String]) -> Option<String> {
        let found = self.names().find(SqlType::REGTYPE, &parts.join(".")).ok()?;
        found.is_builtin().then(|| SqlType::new(found).name())
    }

    /// The enum of a name. 42704 if there is none, 42809 if it is another type.
    fn enum_named(&self, name: &ObjectName) -> Result<EnumType, SqlError> {
        let parts = self.type_parts(name)?;
        let of_system = match self.find_user_type(&parts).as_deref() {
            Some(Object::Enum(found)) => return Ok(found.clone()),
            Some(Object::Domain(found)) => Some(self.catalog.domain_text(found)),
            _ => self.system_type(&parts),
        };
        Err(match of_system {
            Some(name) => SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("{name} is not an enum")),
            None => {
                let message = format!("type \"{}\" does not exist", parts.join("."));
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            }
        })
    }
}

/// 42602 for a label that is too long.
fn label_text(label: &Ident) -> Result<Box<str>, SqlError> {
    let text = label.value.as_str();
    if text.len() > MAX_LABEL_BYTES {
        let error = SqlError::new(SqlState::INVALID_NAME, format!("invalid enum label \"{text}\""));
        return Err(error.detail(format!("Labels must be {MAX_LABEL_BYTES} bytes or less.")));
    }
    Ok(text.into())
}

/// The place of a label. 22023 if there is none.
fn place_of(label: &Ident, ty: &EnumType) -> Result<usize, SqlError> {
    ty.labels.iter().position(|known| *known.name == *label.value).ok_or_else(|| {
        let message = format!("\"{}\" is not an existing enum label", label.value);
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}
