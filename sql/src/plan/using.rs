//! Columns that USING and NATURAL merge.
//!
//! A merged column takes the place of one column of either side. Either may be merged itself: `a JOIN b USING (k) JOIN
//! c USING (k)` leaves one `k`, which hides those of all three tables.

use sqlparser::ast::{Expr as Ast, Ident};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, MergedColumn, Scope, Typed};
use super::coerce::Unified;
use super::kinds::JoinKind;
use super::view_text::Edit;
use crate::error::{SqlError, SqlState};
use crate::expr::{CompareOp, Expr};

impl Binder<'_> {
    /// Binds USING: the names with their locations. `scope` has the columns of both sides, and gets the merged ones.
    /// Returns the conditions of the join.
    pub(super) fn using(
        &mut self,
        kind: JoinKind,
        names: &[(String, Location)],
        (left, right): (&Scope, &Scope),
        scope: &mut Scope,
    ) -> Result<Vec<Expr>, SqlError> {
        let (mut conditions, mut merged) = (Vec::new(), Vec::<MergedColumn>::new());
        for (name, at) in names {
            if merged.iter().any(|column| column.name == *name) {
                let message = format!("column name \"{name}\" appears more than once in USING clause");
                return Err(self.error(SqlState::DUPLICATE_COLUMN, message, *at));
            }
            let l = self.side_of_using(left, "left", name, *at)?;
            let mut r = self.side_of_using(right, "right", name, *at)?;
            r.expr.shift_columns(left.width());
            let mut members = scope.take_merged(name);
            for side in [&l.expr, &r.expr] {
                side.collect_columns(&mut members);
            }
            let Unified { exprs, ty } = self.unify(vec![l.clone(), r.clone()], "JOIN/USING")?;
            let [a, b] = <[Expr; 2]>::try_from(exprs).map_err(|_| SqlError::internal("USING is of two columns"))?;
            let expr = match kind {
                // As in PostgreSQL the one that is not converted.
                JoinKind::Inner if a != l.expr && b == r.expr => b,
                JoinKind::Inner | JoinKind::Left => a,
                JoinKind::Right => b,
                JoinKind::Full => Expr::Coalesce(vec![a, b]),
            };
            merged.push(MergedColumn { name: name.clone(), ty, expr, members, before: 0 });
            let nowhere = Ast::Identifier(Ident::new(name));
            let equal = self.compare(CompareOp::Eq, l, r, (&nowhere, &nowhere)).map_err(|error| {
                let position = self.position(*at);
                SqlError { position: Some(position), ..error }
            })?;
            conditions.push(equal.expr);
        }
        scope.merged.splice(0..0, merged);
        Ok(conditions)
    }

    /// The columns that NATURAL merges, all at the location of the right side.
    pub(super) fn common_columns(&mut self, (left, right): (&Scope, &Scope), at: Location) -> Vec<(String, Location)> {
        let common = left.visible_names().filter(|name| right.has_column(name));
        let names: Vec<String> = common.map(str::to_owned).collect();
        self.note_edit(at, || Edit::Natural(names.clone()));
        names.into_iter().map(|name| (name, at)).collect()
    }

    /// The column of one side that USING names.
    fn side_of_using(&self, scope: &Scope, side: &str, name: &str, at: Location) -> Result<Typed, SqlError> {
        let mut found = scope.visible().into_iter().filter(|column| column.name() == name);
        match (found.next(), found.next()) {
            (Some(only), None) => {
                let only = only.typed(at);
                self.note_columns(&only.expr, scope);
                Ok(only)
            }
            (None, _) => {
                let message = format!("column \"{name}\" specified in USING clause does not exist in {side} table");
                Err(self.error(SqlState::UNDEFINED_COLUMN, message, at))
            }
            _ => {
                let message = format!("common column name \"{name}\" appears more than once in {side} table");
                Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, at))
            }
        }
    }
}
