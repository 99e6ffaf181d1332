//! ALTER COLUMN TYPE: the new types of columns, and the values that the stored rows get.
//!
//! As in PostgreSQL, the new values of all columns are bound first, over the rows as they are. Then the columns get
//! their types one by one, and at the end the constraints must still hold together.

use std::sync::Arc;

use sqlparser::ast::{AlterColumnOperation, AlterTableOperation, DataType, Expr as Ast, Ident};

use super::assign::{bind_default, type_of_default};
use super::binder::{Binder, Scope, Typed};
use super::constraints::check_types;
use super::ddl::check_identity_type;
use super::dependents::of_column;
use super::index::{bind_indexes, check_immutable, normal_condition, stored_condition, stored_expression};
use super::names::fold_ident;
use super::node::Alteration;
use super::table_change::{Change, place_of};
use super::type_name::check_column_type;
use crate::catalog::NamedType;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::NO_LOCATION;
use crate::table::{ForeignKey, IndexedValue, Table, quote_identifier};
use pgtypes::cast::{CastContext, cast_context};

/// A new type of a column.
struct NewType {
    /// The place of the column.
    place: usize,
    named: NamedType,
    /// The type as errors show it.
    shown: String,
    /// The new value, over the old row.
    value: Expr,
}

impl Binder<'_> {
    /// Gives columns their new types. All of these operations are ALTER COLUMN TYPE.
    pub(super) fn set_types(
        &mut self,
        operations: &[&AlterTableOperation],
        change: &mut Change,
    ) -> Result<(), SqlError> {
        let mut types = Vec::with_capacity(operations.len());
        for operation in operations {
            if let AlterTableOperation::AlterColumn { column_name, op } = operation
                && let AlterColumnOperation::SetDataType { data_type, using, .. } = op
            {
                types.push(self.new_type(column_name, (data_type, using.as_ref()), change)?);
            }
        }
        if types.is_empty() {
            return Ok(());
        }
        types.into_iter().try_for_each(|new_type| self.set_type(new_type, change))?;
        self.retype_indexes(&mut change.alteration)?;
        self.check_constraints(&change.alteration.new)
    }

    /// Binds a new type. USING comes first, as in PostgreSQL.
    fn new_type(
        &mut self,
        ident: &Ident,
        (data_type, using): (&DataType, Option<&Ast>),
        change: &Change,
    ) -> Result<NewType, SqlError> {
        let (name, alteration) = (fold_ident(ident), &change.alteration);
        let given = using.map(|ast| self.transformed(ast, &alteration.old)).transpose()?;
        let place = place_of(&name, &alteration.new)?;
        let named = self.type_named(data_type, NO_LOCATION).map_err(|error| {
            // PostgreSQL knows where the type stands only if a sequence is to have it too.
            let is_identity = alteration.new.columns[place].identity.is_some();
            SqlError { position: error.position.filter(|_| is_identity), ..error }
        })?;
        let (ty, shown) = (named.ty, self.named_type_text(named));
        check_column_type(&name, ty)?;
        if alteration.new.columns[place].identity.is_some() {
            check_identity_type(named)?;
        }
        let value = match given {
            Some(value) => value,
            None => self.transformed(&Ast::Identifier(Ident::with_quote('"', name.clone())), &alteration.old)?,
        };
        let Some(value) = self.coerce(value, ty, CastContext::Assignment)? else {
            return Err(match using {
                None => {
                    let message = format!("column \"{name}\" cannot be cast automatically to type {shown}");
                    let hint = format!("You might need to specify \"USING {}::{shown}\".", quote_identifier(&name));
                    SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint)
                }
                Some(_) => {
                    let message = format!(
                        "result of USING clause for column \"{name}\" cannot be cast automatically to type {shown}"
                    );
                    let hint = "You might need to add an explicit cast.";
                    SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint)
                }
            });
        };
        let value = self.of_domain(value, named.domain)?.expr;
        Ok(NewType { place, named, shown, value })
    }

    /// Binds an expression over the stored rows of a table.
    fn transformed(&mut self, ast: &Ast, table: &Arc<Table>) -> Result<Typed, SqlError> {
        let (clause, refused) = (self.clause, self.refuses_queries.replace("transform expression"));
        self.clause = "transform expressions";
        let value = self.expr(ast, &Scope::of(table, None));
        (self.clause, self.refuses_queries) = (clause, refused);
        value
    }

    fn set_type(&mut self, new_type: NewType, change: &mut Change) -> Result<(), SqlError> {
        let NewType { place, named, shown, value } = new_type;
        let (ty, alteration) = (named.ty, &mut change.alteration);
        let column = alteration.new.columns[place].clone();
        let before = alteration.old.columns.iter().find(|known| known.id == column.id);
        if before.is_some_and(|before| (before.ty, before.domain) != (column.ty, column.domain)) {
            let message = format!("cannot alter type of column \"{}\" twice", column.name);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.refuse_read_column(&alteration.new, &column)?;
        if column.identity.is_some() && ty != column.ty {
            return Err(self.unsupported("another type of an identity column is", NO_LOCATION));
        }
        let found = of_column(&alteration.new, place, self.catalog)?;
        if let Some(user) = found.columns.first().and_then(|id| alteration.new.position_of(*id)) {
            let message = "cannot alter type of a column used by a generated column";
            let user = &alteration.new.columns[user].name;
            let detail = format!("Column \"{}\" is used by generated column \"{user}\".", column.name);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        let new = &mut alteration.new.columns[place];
        (new.ty, new.domain) = (ty, named.domain);
        // An implicit cast to the old type goes.
        let is_assignable = |text: &str| {
            let from = type_of_default(text, &column, self.catalog)?;
            let is_castable = cast_context(from, ty).is_some_and(|needed| needed <= CastContext::Assignment);
            Ok::<_, SqlError>(is_castable && bind_default(text, new, self.catalog).is_ok())
        };
        if let Some(text) = &new.default
            && !is_assignable(text)?
        {
            let message = format!("default for column \"{}\" cannot be cast automatically to type {shown}", new.name);
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        // What the new type only calls by another name stays as it is stored.
        if change.row.get(place) != Some(&value) || column.generated.is_some() {
            alteration.rewrites = true;
            self.validate_again(place, alteration);
        }
        if column.generated.is_none()
            && let Some(slot) = change.row.get_mut(place)
        {
            *slot = value;
        }
        // Casts in checks may be needed no more.
        let table = change.alteration.new.clone();
        for check in &mut change.alteration.new.checks {
            if let Some(text) = normal_condition(&check.text, &table, self.catalog) {
                let scope = Scope::of_columns(&table);
                let fixed = self.with_ids(text, |binder, ast| binder.condition(ast, &scope, "CHECK"))?;
                check.text = fixed.unwrap_or_else(|| check.text.clone());
            }
        }
        Ok(())
    }

    /// Has the constraints checked that other values of a column may violate.
    fn validate_again(&self, place: usize, alteration: &mut Alteration) {
        let (table, validates) = (&alteration.new, &mut alteration.validates);
        let id = table.columns[place].id;
        if table.columns[place].not_null {
            validates.not_null.push(id);
        }
        validates.checks.extend(table.checks.iter().map(|check| check.name.clone()));
        let own = table
            .foreign_keys
            .iter()
            .filter(|key| key.columns.contains(&place) || key.parent == table.id && key.parent_columns.contains(&id));
        for key in own {
            if !validates.foreign_keys.contains(&key.name) {
                validates.foreign_keys.push(key.name.clone());
            }
        }
        for child in table.referenced_by.iter().filter_map(|id| self.catalog.by_id(*id)) {
            let keys = child.foreign_keys.iter().filter(|key| key.parent == table.id && child.id != table.id);
            for key in keys.filter(|key| key.parent_columns.contains(&id)) {
                let referring = (child.id, key.name.clone());
                if !validates.referring.contains(&referring) {
                    validates.referring.push(referring);
                }
            }
        }
    }

    /// Gives the expressions of indexes their new types. Fails if an index cannot be made of them: they must still
    /// follow from the row alone, and have an order.
    fn retype_indexes(&self, alteration: &mut Alteration) -> Result<(), SqlError> {
        let table = alteration.new.clone();
        for index in &mut alteration.new.indexes {
            for column in &mut index.columns {
                let ty = match &mut column.value {
                    IndexedValue::Column(at) => table.columns[*at].ty,
                    IndexedValue::Expression { text, ty } => {
                        let (expr, new) = stored_expression(text, &table, self.catalog)?;
                        check_immutable(&expr, "expression")?;
                        check_column_type("expr", new)?;
                        // The stored entries have values of the old type.
                        alteration.rewrites |= new.oid != ty.oid;
                        *ty = new;
                        new
                    }
                };
                self.check_operator_class(None, ty)?;
            }
            if let Some(text) = &index.predicate {
                check_immutable(&stored_condition(text, &table, self.catalog)?, "predicate")?;
            }
        }
        table.primary_key.iter().try_for_each(|at| self.check_operator_class(None, table.columns[*at].ty))
    }

    /// Fails if columns have types that an index or a constraint cannot be made of any more. PostgreSQL makes the
    /// indexes again, then the table's own constraints in the order in which they came, then those of other tables.
    fn check_constraints(&self, table: &Table) -> Result<(), SqlError> {
        bind_indexes(table, self.catalog)?;
        let checks = table.checks.iter().map(|check| check.id);
        let mut own: Vec<_> = checks.chain(table.foreign_keys.iter().map(|key| key.id)).collect();
        own.sort_unstable();
        for id in own {
            for check in table.checks.iter().filter(|check| check.id == id) {
                stored_condition(&check.text, table, self.catalog)?;
            }
            for key in table.foreign_keys.iter().filter(|key| key.id == id) {
                let other = self.catalog.by_id(key.parent).map(|parent| &**parent);
                let parent = if key.parent == table.id { Some(table) } else { other };
                parent.map_or(Ok(()), |parent| check_key_types(key, table, parent))?;
            }
        }
        for child in table.referenced_by.iter().filter_map(|id| self.catalog.by_id(*id)) {
            for key in child.foreign_keys.iter().filter(|key| key.parent == table.id && child.id != table.id) {
                check_key_types(key, child, table)?;
            }
        }
        Ok(())
    }
}

/// 42804 for a foreign key whose columns cannot be compared any more.
fn check_key_types(key: &ForeignKey, child: &Table, parent: &Table) -> Result<(), SqlError> {
    for (own, there) in key.columns.iter().zip(&key.parent_columns) {
        if let Some(there) = parent.position_of(*there) {
            check_types(&key.name, &child.columns[*own], &parent.columns[there])?;
        }
    }
    Ok(())
}
