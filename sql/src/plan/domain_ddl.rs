//! CREATE DOMAIN and ALTER DOMAIN. DROP DOMAIN is a DROP TYPE.
//!
//! As in PostgreSQL, no error of a definition has a position.

use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnDef, ColumnOption, Expr as Ast, Ident, ObjectName,
    RenameTableNameKind, Spanned, TableConstraint,
};

use super::binder::Binder;
use super::domains::{no_check, stored_value_condition, value_scope};
use super::names::{fold_ident, object_name};
use super::node::{Body, NewObject};
use super::sequence_ddl::serial;
use crate::catalog::NamedType;
use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Token};
use crate::object::{Domain, Object, ObjectId};
use crate::parse::text_of;
use crate::table::{Check, ConstraintId, drawn_sequence, quote_identifier};
use pgtypes::Oid;

const CREATE: &str = "CREATE DOMAIN";
const ALTER: &str = "ALTER DOMAIN";

impl Binder<'_> {
    /// Binds a statement about one domain: the parser makes a change of a table of it.
    pub(super) fn domain_statement(
        &mut self,
        name: &ObjectName,
        operations: &[AlterTableOperation],
    ) -> Result<Body, SqlError> {
        let bound = match operations {
            [AlterTableOperation::AddColumn { column_def, column_keyword: true, .. }]
                if self.statement.command() == CREATE =>
            {
                self.create_domain(name, column_def)
            }
            [operation] => self.alter_domain(name, operation),
            _ => Err(self.unsupported("this form of ALTER DOMAIN is", name.span().start)),
        };
        bound.map_err(|error| match error.code {
            SqlState::FEATURE_NOT_SUPPORTED | SqlState::INVALID_SCHEMA_NAME => error,
            _ => SqlError { position: None, ..error },
        })
    }

    fn create_domain(&mut self, name: &ObjectName, def: &ColumnDef) -> Result<Body, SqlError> {
        let at = name.span().start;
        self.type_parts(name)?;
        let (schema, name) = self.new_name(name)?;
        self.check_free_type(schema, &name)?;
        let base = self.base_of_domain(def)?;
        let parent = base.domain.and_then(|parent| self.catalog.domain(parent));
        let mut domain = Domain {
            id: ObjectId(0),
            schema,
            name,
            base: base.ty,
            parent: base.domain,
            not_null: false,
            default: parent.and_then(|parent| parent.default.clone()),
            checks: Vec::new(),
        };
        let (mut has_default, mut nullable) = (false, None);
        for option in &def.options {
            match &option.option {
                ColumnOption::Collation(collation) => self.column_collation(collation, base.ty)?,
                ColumnOption::Default(_) if has_default => {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, "multiple default expressions"));
                }
                ColumnOption::Default(ast) => {
                    has_default = true;
                    let text = self.default_text(ast, &domain.as_column())?;
                    domain.default = self.domain_default(text)?;
                }
                ColumnOption::Null | ColumnOption::NotNull => {
                    let is_null = matches!(option.option, ColumnOption::Null);
                    if nullable.is_some_and(|known| known != is_null) {
                        let message = "conflicting NULL/NOT NULL constraints";
                        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                    }
                    (nullable, domain.not_null) = (Some(is_null), !is_null);
                }
                ColumnOption::Check(check) if check.enforced.is_none() => {
                    self.add_value_check(&mut domain, option.name.as_ref(), &check.expr)?;
                }
                other => return Err(impossible(other).unwrap_or_else(|| self.unsupported("this constraint is", at))),
            }
        }
        Ok(Body::CreateObject(CREATE, Some(NewObject::Relation(Object::Domain(domain)))))
    }

    /// The type that a domain is made of. 42804 for one that columns cannot have.
    fn base_of_domain(&self, def: &ColumnDef) -> Result<NamedType, SqlError> {
        if serial(&def.data_type).is_some() {
            let message = format!("type \"{}\" does not exist", def.data_type.to_string().to_ascii_lowercase());
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        let base = self.type_named(&def.data_type, def.name.span.start)?;
        if !base.ty.is_storable() {
            let message = format!("\"{}\" is not a valid base type for a domain", base.ty.name());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        Ok(base)
    }

    fn alter_domain(&mut self, name: &ObjectName, operation: &AlterTableOperation) -> Result<Body, SqlError> {
        let at = name.span().start;
        let old = self.domain_named(name, false)?;
        let mut new = old.clone();
        match operation {
            AlterTableOperation::AlterColumn { op, .. } => match op {
                AlterColumnOperation::SetNotNull => new.not_null = true,
                AlterColumnOperation::DropNotNull => new.not_null = false,
                AlterColumnOperation::DropDefault => new.default = None,
                AlterColumnOperation::SetDefault { value } => {
                    let text = self.default_of_tree(value, &old.as_column())?;
                    new.default = self.domain_default(text)?;
                }
                _ => return Err(self.unsupported("this form of ALTER DOMAIN is", at)),
            },
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => match constraint {
                TableConstraint::Check(check) if check.enforced.is_none() => {
                    self.add_value_check(&mut new, check.name.as_ref(), &check.expr)?;
                }
                TableConstraint::PrimaryKey(_) => return Err(not_for_domains("primary key")),
                TableConstraint::Unique(_) => return Err(not_for_domains("unique")),
                TableConstraint::ForeignKey(_) => return Err(not_for_domains("foreign key")),
                _ => return Err(self.unsupported("this constraint is", at)),
            },
            AlterTableOperation::AddConstraint { .. } => return Err(self.unsupported("NOT VALID is", at)),
            AlterTableOperation::DropConstraint { if_exists, name, .. } => {
                self.drop_value_check(&mut new, &fold_ident(name), *if_exists)?;
            }
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                rename_check(&mut new, &fold_ident(old_name), &fold_ident(new_name), &self.catalog.domain_text(&old))?;
            }
            AlterTableOperation::ValidateConstraint { name } => {
                // None is NOT VALID.
                let name = fold_ident(name);
                if !old.checks.iter().any(|check| check.name == name) {
                    return Err(missing_check(&name, &old));
                }
            }
            AlterTableOperation::RenameTable {
                table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
            } => {
                let [part] = name.0.as_slice() else { return Err(self.unsupported("this name is", at)) };
                let ident = part.as_ident().ok_or_else(|| self.unsupported("this name is", at))?;
                return self.rename_domain(ALTER, old, ident);
            }
            AlterTableOperation::OwnerTo { .. } => return Ok(Body::Nothing(ALTER)),
            _ => return Err(self.unsupported("this form of ALTER DOMAIN is", at)),
        }
        Ok(Body::AlterObject(ALTER, Object::Domain(old), Object::Domain(new)))
    }

    /// Binds RENAME TO. 0A000 if something stored as text names the domain.
    pub(super) fn rename_domain(&mut self, tag: &'static str, old: Domain, to: &Ident) -> Result<Body, SqlError> {
        self.check_new_name(to)?;
        let new = Domain { name: fold_ident(to), ..old.clone() };
        self.check_free_type(old.schema, &new.name)?;
        let (old, new) = (Object::Domain(old), Object::Domain(new));
        let catalog = self.catalog.with_renamed(new.clone());
        if !self.views_stay(old.id(), &catalog) || self.unbound(&catalog, &[]).is_some() {
            let what = "a new name for a type that a view, a default or a constraint names is";
            return Err(self.unsupported(what, to.span.start));
        }
        Ok(Body::AlterObject(tag, old, new))
    }

    /// The domain of a name. 42704 if there is none, 42809 if it is another type, which errors name as it is written,
    /// or as SQL.
    pub(super) fn domain_named(&self, name: &ObjectName, as_written: bool) -> Result<Domain, SqlError> {
        let parts = self.type_parts(name)?;
        let found = self.find_user_type(&parts);
        if let Some(Object::Domain(found)) = found.as_deref() {
            return Ok(found.clone());
        }
        let written = parts.join(".");
        let of_user = found.and_then(|found| self.catalog.user_type_text(Oid(found.id().0)));
        // The rows of a table have a type of its name.
        let of_rows = || self.find_relation(name).ok()?.filter(|(found, _)| found.table().is_some());
        let other = of_user.or_else(|| self.system_type(&parts)).or_else(|| Some(quote_identifier(&of_rows()?.1)));
        Err(match other {
            Some(shown) => {
                let shown = if as_written { format!("\"{written}\"") } else { shown };
                SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("{shown} is not a domain"))
            }
            None => SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{written}\" does not exist")),
        })
    }

    /// A default as it is stored: NULL is none. 0A000 for one that draws from a sequence.
    fn domain_default(&self, text: Option<String>) -> Result<Option<String>, SqlError> {
        if text.as_deref().and_then(drawn_sequence).is_some() {
            let message = "a domain whose default draws from a sequence is not supported yet";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(text)
    }

    /// Adds a CHECK.
    fn add_value_check(&mut self, domain: &mut Domain, name: Option<&Ident>, ast: &Ast) -> Result<(), SqlError> {
        let name = match name.map(fold_ident) {
            Some(name) if domain.checks.iter().any(|check| check.name == name) => {
                return Err(double_check(&name, &format!("\"{}\"", domain.name)));
            }
            Some(name) => name,
            None => free_name(domain),
        };
        let text = self.value_check(domain, ast)?;
        domain.checks.push(Check { id: ConstraintId(0), name, text, columns: Vec::new() });
        domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    /// Binds a CHECK of a domain. Returns its text.
    fn value_check(&self, domain: &Domain, ast: &Ast) -> Result<String, SqlError> {
        let mut binder = Binder::new(self.statement, None, self.catalog);
        binder.clause = "check constraints";
        binder.refuses_queries = Some("check constraint");
        let condition = binder.condition(ast, &value_scope(domain), "CHECK");
        let condition = condition.map_err(|error| SqlError { position: None, ..error })?;
        let refuse = |what: &str| {
            let message = format!("a check of a domain with {what} is not supported yet");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        };
        // It could lead back to this one.
        if binder.uses.borrow().iter().any(|used| self.catalog.domain(*used).is_some()) {
            return refuse("a cast to a domain");
        }
        if condition.takes_locks() || condition.uses_sequences() || condition.needs_transaction() {
            return refuse("this function");
        }
        let text = with_value(&text_of(ast));
        match stored_value_condition(&text, domain, self.catalog) {
            Ok(again) if again == condition => {}
            _ => return refuse("this expression"),
        }
        let scope = value_scope(domain);
        let fixed = self.with_ids(text, |binder, ast| binder.condition(ast, &scope, "CHECK"))?;
        fixed.map_or_else(|| refuse("this expression"), Ok)
    }

    fn drop_value_check(&mut self, domain: &mut Domain, name: &str, if_exists: bool) -> Result<(), SqlError> {
        let before = domain.checks.len();
        domain.checks.retain(|check| check.name != name);
        if domain.checks.len() < before {
            return Ok(());
        }
        let error = missing_check(name, domain);
        if !if_exists {
            return Err(error);
        }
        self.skip(SqlState::SUCCESSFUL_COMPLETION, &error.message);
        Ok(())
    }
}

/// The text of a check with VALUE as PostgreSQL writes it.
fn with_value(text: &str) -> String {
    let mut lexer = Lexer::new(text);
    let mut out = text.to_owned();
    while let Some(found) = lexer.next() {
        if matches!(found.token, Token::Word(word) if word.eq_ignore_ascii_case("value")) {
            out.replace_range(found.start..found.end, "VALUE");
        }
    }
    out
}

/// The first free name of a check: `{domain}_check`, with a number if that is taken.
fn free_name(domain: &Domain) -> String {
    let labels = std::iter::once("check".to_owned()).chain((1_u32..).map(|pass| format!("check{pass}")));
    let mut names = labels.map(|label| object_name(&domain.name, None, &label));
    let is_free = |name: &String| !domain.checks.iter().any(|check| check.name == *name);
    names.find(is_free).unwrap_or_default()
}

fn rename_check(domain: &mut Domain, old: &str, new: &str, shown: &str) -> Result<(), SqlError> {
    if !domain.checks.iter().any(|check| check.name == old) {
        return Err(no_check(old, shown));
    }
    if domain.checks.iter().any(|check| check.name == new) {
        return Err(double_check(new, shown));
    }
    for check in domain.checks.iter_mut().filter(|check| check.name == old) {
        new.clone_into(&mut check.name);
    }
    domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}

fn double_check(name: &str, domain: &str) -> SqlError {
    SqlError::new(SqlState::DUPLICATE_OBJECT, format!("constraint \"{name}\" for domain {domain} already exists"))
}

fn missing_check(name: &str, domain: &Domain) -> SqlError {
    let message = format!("constraint \"{name}\" of domain \"{}\" does not exist", domain.name);
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// 42601 for a constraint that only tables have.
fn impossible(option: &ColumnOption) -> Option<SqlError> {
    Some(not_for_domains(match option {
        ColumnOption::Unique(_) => "unique",
        ColumnOption::PrimaryKey(_) => "primary key",
        ColumnOption::ForeignKey(_) => "foreign key",
        _ => return None,
    }))
}

fn not_for_domains(kind: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("{kind} constraints not possible for domains"))
}
