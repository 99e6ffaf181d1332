//! Binding of expressions: from the parser's tree to a typed [`Expr`].

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, Expr as Ast, Ident, Spanned, Subscript as SubscriptAst,
    UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope, Typed};
use super::coerce::Unified;
use super::comparison::{Level, SharedOperands, is_comparison, row_operands};
use super::names::{fold_ident, idents};
use super::operators::symbol_of;
use super::type_name;
use crate::catalog::NamedType;
use crate::error::{SqlError, SqlState};
use crate::expr::fold::fold;
use crate::expr::{CompareOp, ContextValue, Expr, Subscript};
use crate::parse::{NO_LOCATION, is_distinct, start_of};
use pgtypes::cast::CastContext;
use pgtypes::numeric::Numeric;
use pgtypes::{Datum, SqlType};

impl Binder<'_> {
    /// Binds an expression over the columns of a scope.
    pub(super) fn expr(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        self.descend()?;
        let bound = self.expr_inner(ast, scope);
        self.depth -= 1;
        bound
    }

    /// Binds a condition. `construct` names it in errors.
    pub(super) fn condition(&mut self, ast: &Ast, scope: &Scope, construct: &str) -> Result<Expr, SqlError> {
        let value = self.expr(ast, scope)?;
        self.boolean(value, construct)
    }

    fn expr_inner(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        match ast {
            Ast::Identifier(ident) if is_current_role(ident) => {
                Ok(Typed::new(Expr::Context(ContextValue::User), SqlType::NAME, ident.span.start))
            }
            Ast::Identifier(ident) => self.column(std::slice::from_ref(ident), scope),
            Ast::CompoundIdentifier(parts) => self.column(parts, scope),
            Ast::QualifiedWildcard(name, _) => self.starred_row(&idents(name), scope),
            Ast::Nested(inner) => self.expr(inner, scope),
            Ast::Value(value @ ValueWithSpan { value: Value::NationalStringLiteral(_), .. }) => {
                self.typed_string(&DataType::Char(None), value)
            }
            Ast::Value(value) => self.value(value, false),
            Ast::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => self.logical(ast, scope),
            Ast::BinaryOp { .. } => self.chain(ast, scope),
            Ast::UnaryOp { op, expr } => self.unary(op, expr, scope),
            Ast::Cast { kind, expr, data_type, array: false, format: None } => self.cast(kind, expr, data_type, scope),
            Ast::TypedString(typed) => self.typed_string(&typed.data_type, &typed.value),
            Ast::Between { expr, negated, low, high } => self.between_values(expr, *negated, (low, high), scope),
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated, scope),
            Ast::Like { .. } | Ast::ILike { .. } | Ast::SimilarTo { .. } => self.like_node(ast, scope),
            Ast::Subquery(query) => self.scalar_subquery(query, scope),
            Ast::Exists { subquery, negated } => self.exists(subquery, *negated, scope),
            Ast::InSubquery { expr, subquery, negated } => self.in_subquery(expr, subquery, *negated, scope),
            Ast::AnyOp { left, compare_op, right, .. } => self.elements((left, compare_op, right), false, scope),
            Ast::AllOp { left, compare_op, right } => self.elements((left, compare_op, right), true, scope),
            Ast::Array(array) => self.array(&array.elem, start_of(ast), scope),
            Ast::CompoundFieldAccess { root, access_chain } => self.subscripted(root, access_chain, scope),
            Ast::Interval(interval) => self.interval(interval, scope),
            Ast::Tuple(items) => {
                let values = self.row_items(items, scope)?;
                self.row_value(values, start_of(ast))
            }
            Ast::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), scope)
            }
            Ast::Function(function) => self.function(function, scope),
            Ast::Ceil { .. }
            | Ast::Floor { .. }
            | Ast::Position { .. }
            | Ast::Substring { .. }
            | Ast::Overlay { .. }
            | Ast::Trim { .. }
            | Ast::AtTimeZone { .. }
            | Ast::Extract { .. } => self.special_function(ast, scope),
            Ast::Collate { expr, collation } => self.collate(expr, collation, scope),
            _ => self.is_test(ast, scope),
        }
    }

    /// Binds `IS ...` tests. Other expressions are unsupported.
    fn is_test(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let (expr, value, negated, name) = match ast {
            Ast::IsNull(expr) => return self.is_null(expr, false, scope),
            Ast::IsNotNull(expr) => return self.is_null(expr, true, scope),
            Ast::IsTrue(expr) => (expr, Some(true), false, "IS TRUE"),
            Ast::IsNotTrue(expr) => (expr, Some(true), true, "IS NOT TRUE"),
            Ast::IsFalse(expr) => (expr, Some(false), false, "IS FALSE"),
            Ast::IsNotFalse(expr) => (expr, Some(false), true, "IS NOT FALSE"),
            Ast::IsUnknown(expr) => (expr, None, false, "IS UNKNOWN"),
            Ast::IsNotUnknown(expr) => (expr, None, true, "IS NOT UNKNOWN"),
            other => return Err(self.unsupported_expr(other)),
        };
        self.refuse_nonassociative(Level::Is, expr, None, "is")?;
        let at = start_of(expr);
        let expr = Box::new(self.condition(expr, scope, name)?);
        let expr = match value {
            Some(value) => Expr::IsBool { expr, value, negated },
            None => Expr::IsNull { expr, negated },
        };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    pub(super) fn unsupported_expr(&self, ast: &Ast) -> SqlError {
        self.unsupported("this expression is", start_of(ast))
    }

    /// Binds a literal. `negative`: after a minus sign, which belongs to the number as in PostgreSQL.
    pub(super) fn value(&mut self, value: &ValueWithSpan, negative: bool) -> Result<Typed, SqlError> {
        let at = value.span.start;
        let text = match &value.value {
            Value::Number(digits, _) => return self.number(digits, negative, at),
            Value::Boolean(value) => return Ok(Typed::new(Expr::Const(Datum::Bool(*value)), SqlType::BOOL, at)),
            Value::Null => return Ok(Typed::new(Expr::Const(Datum::Null), SqlType::UNKNOWN, at)),
            Value::Placeholder(name) => return self.param(name, at),
            Value::SingleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text) => text,
            Value::DollarQuotedString(quoted) => &quoted.value,
            _ => return Err(self.unsupported("this kind of literal is", at)),
        };
        if text.contains('\0') {
            let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return Err(self.error(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message, at));
        }
        Ok(Typed::new(Expr::Const(Datum::Text(text.as_str().into())), SqlType::UNKNOWN, at))
    }

    /// A number as the smallest of integer, bigint and numeric that holds it.
    fn number(&self, digits: &str, negative: bool, at: Location) -> Result<Typed, SqlError> {
        let text = if negative { format!("-{digits}") } else { digits.to_owned() };
        if let Ok(value) = text.parse::<i64>() {
            let ty = if i32::try_from(value).is_ok() { SqlType::INT4 } else { SqlType::INT8 };
            return Ok(Typed::new(Expr::Const(Datum::Int(value)), ty, at));
        }
        let number = Numeric::parse(&text).map_err(|error| SqlError::from(error).at(self.position(at)))?;
        Ok(Typed::new(Expr::Const(Datum::Numeric(number)), SqlType::NUMERIC, at))
    }

    /// Binds a chain of ANDs or of ORs. Chains may be long: loops over the left spine.
    fn logical(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let Ast::BinaryOp { op: chain_op, .. } = ast else { return Err(self.unsupported_expr(ast)) };
        let name = if *chain_op == BinaryOperator::And { "AND" } else { "OR" };
        let mut operands = Vec::new();
        let mut rest = ast;
        while let Ast::BinaryOp { left, op, right } = rest
            && op == chain_op
        {
            operands.push(&**right);
            rest = left;
        }
        operands.push(rest);
        let mut items = Vec::with_capacity(operands.len());
        for operand in operands.into_iter().rev() {
            items.push(self.condition(operand, scope, name)?);
        }
        let expr = if name == "AND" { Expr::And(items) } else { Expr::Or(items) };
        Ok(Typed::new(fold(expr), SqlType::BOOL, start_of(rest)))
    }

    /// Binds a chain of other binary operators, with a loop over the left spine too.
    fn chain(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let mut links = Vec::new();
        let mut rest = ast;
        while let Ast::BinaryOp { left, op, right } = rest
            && !matches!(op, BinaryOperator::And | BinaryOperator::Or)
        {
            links.push((op, &**left, &**right));
            rest = left;
        }
        for (op, left, right) in &links {
            match op {
                op if is_comparison(op) => {
                    let symbol = symbol_of(op).unwrap_or_default();
                    self.refuse_nonassociative(Level::Comparison, left, Some(right), symbol)?;
                }
                BinaryOperator::Custom(custom) if is_distinct(custom).is_some() => {
                    self.refuse_nonassociative(Level::Is, left, Some(right), "is")?;
                }
                // The parser accepts only one literal after ESCAPE, PostgreSQL an expression.
                _ if matches!(
                    left,
                    Ast::Like { escape_char: Some(_), .. } | Ast::ILike { escape_char: Some(_), .. }
                ) =>
                {
                    return Err(self.unsupported("ESCAPE with more than a literal is", start_of(right)));
                }
                _ => {}
            }
        }
        if let [(BinaryOperator::Overlaps, Ast::Tuple(left), Ast::Tuple(right))] = links.as_slice() {
            return self.overlaps(left, right, scope);
        }
        if let Some(compared) = links.last().and_then(|(op, left, right)| row_operands(op, left, right)) {
            if links.len() > 1 {
                return Err(self.unsupported_expr(ast));
            }
            return self.compare_rows(&compared, scope);
        }
        let mut value = self.expr(rest, scope)?;
        for (op, left, right) in links.into_iter().rev() {
            let operand = self.expr(right, scope)?;
            value = self.binary(op, value, operand, (left, right))?;
        }
        Ok(value)
    }

    fn unary(&mut self, op: &UnaryOperator, operand: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(operand);
        match op {
            UnaryOperator::Not => {
                let expr = Expr::Not(Box::new(self.condition(operand, scope, "NOT")?));
                Ok(Typed::new(fold(expr), SqlType::BOOL, at))
            }
            UnaryOperator::Minus => {
                if let Some((value, negative)) = literal(operand) {
                    return self.value(value, !negative);
                }
                self.prefix_operator("-", operand, scope)
            }
            UnaryOperator::Plus => self.prefix_operator("+", operand, scope),
            UnaryOperator::BitwiseNot => self.prefix_operator("~", operand, scope),
            UnaryOperator::PGAbs => self.prefix_operator("@", operand, scope),
            UnaryOperator::PGSquareRoot => self.prefix_operator("|/", operand, scope),
            UnaryOperator::PGCubeRoot => self.prefix_operator("||/", operand, scope),
            UnaryOperator::PGPrefixFactorial => self.prefix_operator("!!", operand, scope),
            other => Err(self.unsupported(&format!("operator {other} is"), at)),
        }
    }

    fn prefix_operator(&mut self, name: &str, operand: &Ast, scope: &Scope) -> Result<Typed, SqlError> {
        let operand = self.expr(operand, scope)?;
        self.prefix(name, operand)
    }

    /// `ARRAY[...]`. Arrays in it have the type of the whole.
    fn array(&mut self, items: &[Ast], at: Location, scope: &Scope) -> Result<Typed, SqlError> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.expr(item, scope)?);
        }
        self.array_of(values, at)
    }

    fn array_of(&mut self, values: Vec<Typed>, at: Location) -> Result<Typed, SqlError> {
        if values.is_empty() {
            let error = self.error(SqlState::INDETERMINATE_DATATYPE, "cannot determine type of empty array", at);
            return Err(error.hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        let Unified { exprs: items, ty } = self.unify(values, "ARRAY")?;
        let is_nested = ty.is_array();
        let array = if is_nested { Some(ty) } else { ty.array() };
        let Some(array) = array else {
            let message = format!("could not find array type for data type {}", self.type_text(ty));
            return Err(self.error(SqlState::UNDEFINED_OBJECT, message, at));
        };
        let element = array.element().unwrap_or(SqlType::UNKNOWN).base();
        // A modifier that all elements share is that of the array.
        let array = SqlType { typmod: ty.typmod, ..array };
        Ok(Typed::new(fold(Expr::Array { element, items, is_nested }), array, at))
    }

    /// `array[1]`, `array[1:2][3]`, `t.array[1]`, `json['key']`
    pub(super) fn subscripted(&mut self, root: &Ast, chain: &[AccessExpr], scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(root);
        self.refuse_row_star(chain, root)?;
        // The parser takes the dots of a column's name for accesses to fields.
        let mut names: Vec<Ident> = match root {
            Ast::Identifier(name) => vec![name.clone()],
            _ => Vec::new(),
        };
        let mut chain = chain;
        while let (false, Some((AccessExpr::Dot(Ast::Identifier(name)), rest))) =
            (names.is_empty(), chain.split_first())
        {
            names.push(name.clone());
            chain = rest;
        }
        let mut array = if names.len() > 1 { self.column(&names, scope)? } else { self.expr(root, scope)? };
        while let Some((AccessExpr::Dot(Ast::Identifier(name)), rest)) = chain.split_first() {
            array = self.field(array, name)?;
            chain = rest;
        }
        if chain.is_empty() {
            return Ok(array);
        }
        if array.ty.base() == SqlType::JSONB {
            return self.json_subscripted(array, (root, chain), scope);
        }
        let Some(element) = array.ty.element() else {
            let message =
                format!("cannot subscript type {} because it does not support subscripting", self.type_text(array.ty));
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, at));
        };
        let mut subscripts = Vec::with_capacity(chain.len());
        for access in chain {
            subscripts.push(match access {
                AccessExpr::Subscript(SubscriptAst::Index { index }) => Subscript::Index(self.index(index, scope)?),
                AccessExpr::Subscript(SubscriptAst::Slice { lower_bound, upper_bound, stride: None }) => {
                    let lower = lower_bound.as_ref().map(|ast| self.index(ast, scope)).transpose()?;
                    let upper = upper_bound.as_ref().map(|ast| self.index(ast, scope)).transpose()?;
                    Subscript::Slice(lower, upper)
                }
                _ => return Err(self.unsupported("this kind of subscript is", at)),
            });
        }
        let is_slice = subscripts.iter().any(|subscript| matches!(subscript, Subscript::Slice(..)));
        let ty = if is_slice { array.ty } else { element };
        let expr = Expr::Subscript { array: Box::new(array.expr), subscripts };
        Ok(Typed::new(fold(expr), ty, at))
    }

    /// `(row).field`
    fn field(&mut self, record: Typed, name: &Ident) -> Result<Typed, SqlError> {
        let (wanted, at) = (fold_ident(name), record.at);
        let fields = fields_of(&record).ok_or_else(|| {
            let ty = self.type_text(record.ty);
            let message = format!("column notation .{wanted} applied to type {ty}, which is not a composite type");
            self.error(SqlState::WRONG_OBJECT_TYPE, message, at)
        })?;
        if fields.is_empty() {
            return Err(self.unsupported("a field of a row that comes from elsewhere is", at));
        }
        match fields.iter().position(|(name, _)| *name == wanted) {
            Some(place) => {
                let ty = fields.get(place).map_or(SqlType::UNKNOWN, |(_, ty)| *ty);
                Ok(Typed::new(fold(Expr::Field { record: Box::new(record.expr), at: place }), ty, at))
            }
            None => {
                let message = format!("could not identify column \"{wanted}\" in record data type");
                Err(self.error(SqlState::UNDEFINED_COLUMN, message, at))
            }
        }
    }

    /// `json['a'][1]`: as `json -> 'a' -> 1`.
    fn json_subscripted(
        &mut self,
        mut value: Typed,
        (root, chain): (&Ast, &[AccessExpr]),
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        for access in chain {
            let AccessExpr::Subscript(SubscriptAst::Index { index }) = access else {
                let message = "jsonb subscript does not support slices";
                return Err(self.error(SqlState::DATATYPE_MISMATCH, message, start_of(root)));
            };
            let key = self.expr(index, scope)?;
            let (from, at) = (self.type_text(key.ty), key.at);
            let wanted = if key.ty.is_integer() { SqlType::INT4 } else { SqlType::TEXT };
            let Some(key) = self.coerce(key, wanted, CastContext::Implicit)? else {
                let message = format!("subscript type {from} is not supported");
                let error = self.error(SqlState::DATATYPE_MISMATCH, message, at);
                return Err(error.hint("jsonb subscript must be coercible to either integer or text."));
            };
            value = self.operator("->", "[", value, key, (root, index))?;
        }
        Ok(value)
    }

    /// A subscript of an array.
    pub(super) fn index(&mut self, ast: &Ast, scope: &Scope) -> Result<Expr, SqlError> {
        let value = self.expr(ast, scope)?;
        let at = value.at;
        match self.coerce(value, SqlType::INT4, CastContext::Assignment)? {
            Some(value) => Ok(value.expr),
            None => Err(self.error(SqlState::DATATYPE_MISMATCH, "array subscript must have type integer", at)),
        }
    }

    fn cast(&mut self, kind: &CastKind, inner: &Ast, data_type: &DataType, scope: &Scope) -> Result<Typed, SqlError> {
        let at = start_of(inner);
        if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
            return Err(self.unsupported("this form of CAST is", at));
        }
        let named = self.type_named(data_type, at).map_err(|mut error| {
            // The parser has the location of few types. The name follows the operator.
            if type_name::location(data_type).is_none() && *kind == CastKind::DoubleColon {
                error.position = Some(self.cast_position(inner) + 2);
            }
            error
        })?;
        let ty = named.ty;
        let value = match inner {
            // The elements take the type of the cast.
            Ast::Array(array) if ty.is_array() => self.array_as(&array.elem, ty, at, scope)?,
            inner => self.expr(inner, scope)?,
        };
        let from = self.type_text(value.ty);
        match self.coerce(value, ty, CastContext::Explicit)? {
            Some(value) => self.of_domain(value, named.domain),
            None => {
                let message = format!("cannot cast type {from} to {}", self.named_type_text(named));
                let position = match kind {
                    CastKind::DoubleColon => self.cast_position(inner),
                    _ => self.position_before(at, "cast"),
                };
                Err(SqlError::new(SqlState::CANNOT_COERCE, message).at(position))
            }
        }
    }

    /// `ARRAY[...]::type[]`: each element is cast on its own, and there may be none.
    fn array_as(&mut self, items: &[Ast], ty: SqlType, at: Location, scope: &Scope) -> Result<Typed, SqlError> {
        let element = ty.element().unwrap_or(SqlType::UNKNOWN);
        if items.is_empty() {
            let empty = pgtypes::Array::empty(element.oid);
            return Ok(Typed::new(Expr::Const(Datum::Array(Box::new(empty))), ty.base(), at));
        }
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = match item {
                Ast::Array(inner) => self.array_as(&inner.elem, ty, at, scope)?,
                item => self.expr(item, scope)?,
            };
            let target = if value.ty.is_array() { ty } else { element };
            let (from, at) = (self.type_text(value.ty), value.at);
            let value = self.coerce(value, target, CastContext::Explicit)?;
            values.push(value.ok_or_else(|| {
                let message = format!("cannot cast type {from} to {}", self.type_text(target));
                self.error(SqlState::CANNOT_COERCE, message, at)
            })?);
        }
        self.array_of(values, at)
    }

    /// The position of the `::` after an operand.
    fn cast_position(&self, operand: &Ast) -> u32 {
        let mut casts = 0;
        let mut innermost = operand;
        while let Ast::Cast { expr, .. } | Ast::Nested(expr) = innermost {
            casts += usize::from(matches!(innermost, Ast::Cast { kind: CastKind::DoubleColon, .. }));
            innermost = expr;
        }
        let text = &self.statement.text;
        let start = text.offset(innermost.span().end).unwrap_or(text.as_str().len());
        match text.as_str()[start..].match_indices("::").nth(casts) {
            Some((at, _)) => text.position_of_byte(start + at),
            None => self.position(start_of(operand)),
        }
    }

    /// What the name of a type means. Errors have the name's position, or `near` if the parser lacks it.
    pub(super) fn type_named(&self, name: &DataType, near: Location) -> Result<NamedType, SqlError> {
        let at = type_name::location(name).unwrap_or(near);
        let short = type_name::without_database(name, self.catalog);
        let name = short.as_ref().unwrap_or(name);
        let found = type_name::resolve(name, &|schema, name| self.find_type(schema, name));
        // As in PostgreSQL, the error of a type in another database has no position.
        let at = if type_name::is_far(name) { NO_LOCATION } else { at };
        let found = found.map_err(|error| error.at(self.position(at)))?;
        self.note_type_name(name, found);
        Ok(found)
    }

    /// `type 'literal'`.
    fn typed_string(&mut self, data_type: &DataType, literal: &ValueWithSpan) -> Result<Typed, SqlError> {
        let named = match data_type {
            // A column of this type has one character. A literal keeps all of its own.
            DataType::Char(None) | DataType::Character(None) => SqlType::BPCHAR.into(),
            name => self.type_named(name, literal.span.start)?,
        };
        let value = self.value(literal, false)?;
        let at = value.at;
        let value = self.coerce(value, named.ty, CastContext::Explicit)?;
        self.of_domain(value.ok_or_else(|| self.unsupported("this kind of literal is", at))?, named.domain)
    }

    fn is_null(&mut self, operand: &Ast, negated: bool, scope: &Scope) -> Result<Typed, SqlError> {
        self.refuse_nonassociative(Level::Is, operand, None, "is")?;
        let value = self.expr(operand, scope)?;
        self.note_untyped(&value);
        let at = value.at;
        let expr = Expr::IsNull { expr: Box::new(value.expr), negated };
        Ok(Typed::new(fold(expr), SqlType::BOOL, at))
    }

    fn case(
        &mut self,
        operand: Option<&Ast>,
        conditions: &[sqlparser::ast::CaseWhen],
        otherwise: Option<&Ast>,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let at = conditions.first().map_or(NO_LOCATION, |when| start_of(&when.condition));
        let sets = self.aggregates.sets.bound;
        let mut shared = SharedOperands::default();
        let subject = match operand {
            Some(ast) => {
                let subject = self.expr(ast, scope)?;
                let subject = self.resolve_unknown(subject)?;
                Some(self.share(subject, &mut shared)?)
            }
            None => None,
        };
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            tests.push(match (&subject, operand) {
                (Some(subject), Some(ast)) => {
                    let value = self.expr(&when.condition, scope)?;
                    let (subject, at) = (subject.clone(), value.at);
                    // The operator is nowhere in the text.
                    let test = self.compare(CompareOp::Eq, subject, value, (ast, &when.condition));
                    test.map_err(|error| self.operator_at(error, self.position_before(at, "when")))?.expr
                }
                _ => self.condition(&when.condition, scope, "CASE/WHEN")?,
            });
            results.push(self.expr(&when.result, scope)?);
        }
        // PostgreSQL considers ELSE first when it chooses the type.
        let last = match otherwise {
            Some(ast) => self.expr(ast, scope)?,
            None => Typed::new(Expr::Const(Datum::Null), SqlType::UNKNOWN, at),
        };
        results.insert(0, last);
        let Unified { exprs: mut results, ty } = self.unify(results, "CASE")?;
        self.refuse_sets(sets, "set-returning functions are not allowed in CASE")?;
        let otherwise = Box::new(results.remove(0));
        let expr = Expr::Case { branches: tests.into_iter().zip(results).collect(), otherwise };
        Ok(Typed::new(shared.wrap(expr), ty, at))
    }

    /// Accepts only collations that equal the order of all text here.
    fn collate(
        &mut self,
        operand: &Ast,
        collation: &sqlparser::ast::ObjectName,
        scope: &Scope,
    ) -> Result<Typed, SqlError> {
        let value = self.expr(operand, scope)?;
        if value.ty != SqlType::UNKNOWN {
            self.check_has_collation(value.ty, collation)?;
        }
        self.check_collation(collation)?;
        self.resolve_unknown(value)
    }
}

/// The names and types of the fields of a row; `None` for another value. A record from elsewhere has none that are
/// known.
pub(super) fn fields_of(record: &Typed) -> Option<Vec<(String, SqlType)>> {
    if record.ty.base() != SqlType::RECORD {
        return None;
    }
    if let Some(fields) = pgtypes::functions::fields_of(record.ty) {
        return Some(fields.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect());
    }
    let expr = match &record.expr {
        // Of a table that an outer join may miss.
        Expr::Case { branches, .. } => match branches.as_slice() {
            [(_, row @ Expr::Row { names: Some(_), .. })] => row,
            _ => &record.expr,
        },
        expr => expr,
    };
    Some(match expr {
        Expr::Row { types, names, .. } => {
            let name = |at: usize| names.as_ref().and_then(|names| names.get(at)).map(ToString::to_string);
            let fields = types.iter().enumerate();
            fields.map(|(at, ty)| (name(at).unwrap_or_else(|| format!("f{}", at + 1)), *ty)).collect()
        }
        Expr::Const(Datum::Record(record)) => {
            record.fields().iter().enumerate().map(|(at, (ty, _))| (record.name(at).into_owned(), *ty)).collect()
        }
        _ => Vec::new(),
    })
}

/// Whether a name is CURRENT_ROLE, which is reserved: the parser reads it as a name.
fn is_current_role(ident: &Ident) -> bool {
    ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("current_role")
}

/// A number literal, possibly in parentheses and after minus signs. Returns whether it is negative.
pub(super) fn literal(ast: &Ast) -> Option<(&ValueWithSpan, bool)> {
    match ast {
        Ast::Value(value @ ValueWithSpan { value: Value::Number(..), .. }) => Some((value, false)),
        Ast::Nested(inner) => literal(inner),
        Ast::UnaryOp { op: UnaryOperator::Minus, expr } => literal(expr).map(|(value, negative)| (value, !negative)),
        _ => None,
    }
}
