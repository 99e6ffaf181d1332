//! Binding of the frames of windows: bounds by rows, by groups, by values.

use sqlparser::ast::{Expr as Ast, WindowFrame, WindowFrameBound, WindowFrameUnits};
use sqlparser::tokenizer::Location;

use super::aggregation::AggregateOrder;
use super::binder::{Binder, Scope, Typed};
use super::window::{Frame, FrameBound, FrameUnits, RangeBound};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::lexer::{Lexer, Token};
use crate::parse::start_of;
use pgtypes::SqlType;
use pgtypes::cast::CastContext;

/// Where a window is in the text, as positions; 0 for what is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    /// Its opening parenthesis.
    pub(super) open: u32,
    /// The start of its frame.
    pub(super) start: u32,
    /// The end of its frame.
    pub(super) end: u32,
}

impl Binder<'_> {
    /// The frame of a window with an order.
    pub(super) fn frame(
        &mut self,
        ast: &WindowFrame,
        keys: (&[AggregateOrder], &[SqlType]),
        scope: &Scope,
        places: Places,
    ) -> Result<Frame, SqlError> {
        let units = match ast.units {
            WindowFrameUnits::Rows => FrameUnits::Rows,
            WindowFrameUnits::Range => FrameUnits::Range,
            WindowFrameUnits::Groups => FrameUnits::Groups,
        };
        let end = ast.end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
        let refuse = |message: &str, at: u32| Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(at));
        match (&ast.start_bound, end) {
            (WindowFrameBound::Following(None), _) => {
                return refuse("frame start cannot be UNBOUNDED FOLLOWING", places.start);
            }
            (_, WindowFrameBound::Preceding(None)) => {
                return refuse("frame end cannot be UNBOUNDED PRECEDING", places.end);
            }
            (WindowFrameBound::CurrentRow, WindowFrameBound::Preceding(_)) => {
                return refuse("frame starting from current row cannot have preceding rows", places.end);
            }
            (WindowFrameBound::Following(_), WindowFrameBound::Preceding(_) | WindowFrameBound::CurrentRow) => {
                return refuse("frame starting from following row cannot have preceding rows", places.end);
            }
            _ => {}
        }
        if units == FrameUnits::Groups && keys.0.is_empty() {
            return refuse("GROUPS mode requires an ORDER BY clause", places.open);
        }
        let allowed = std::mem::replace(&mut self.aggregates.sets.allowed, false);
        let start = self.frame_bound(&ast.start_bound, (units, false), keys, scope, places)?;
        let end = self.frame_bound(end, (units, true), keys, scope, places)?;
        self.aggregates.sets.allowed = allowed;
        Ok(Frame { units, start, end })
    }

    fn frame_bound(
        &mut self,
        ast: &WindowFrameBound,
        (units, is_end): (FrameUnits, bool),
        (order, types): (&[AggregateOrder], &[SqlType]),
        scope: &Scope,
        places: Places,
    ) -> Result<FrameBound, SqlError> {
        let (offset, follows) = match ast {
            WindowFrameBound::CurrentRow => return Ok(FrameBound::Current),
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => return Ok(FrameBound::Unbounded),
            WindowFrameBound::Preceding(Some(offset)) => (plain_offset(offset), false),
            WindowFrameBound::Following(Some(offset)) => (plain_offset(offset), true),
        };
        if units != FrameUnits::Range {
            let clause = if units == FrameUnits::Rows { "ROWS" } else { "GROUPS" };
            let offset = self.row_count(offset, scope, clause)?;
            return Ok(FrameBound::Offset { offset, follows, range: None });
        }
        let ([key], [ty]) = (order, types) else {
            let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(places.open));
        };
        self.range_bound(offset, (follows, is_end, key.descending), *ty, scope)
    }

    /// A bound by values: so much before the value of the row, or behind it.
    fn range_bound(
        &mut self,
        ast: &Ast,
        (follows, is_end, descending): (bool, bool, bool),
        key: SqlType,
        scope: &Scope,
    ) -> Result<FrameBound, SqlError> {
        let at = start_of(ast);
        self.clause = "RANGE";
        let offset = self.expr(ast, scope)?;
        if !offset.expr.is_row_independent() {
            let message = "argument of RANGE must not contain variables";
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at));
        }
        let known: &[SqlType] = match key.base() {
            SqlType::INT2 | SqlType::INT4 => &[SqlType::INT2, SqlType::INT4, SqlType::INT8],
            SqlType::INT8 => &[SqlType::INT8],
            SqlType::FLOAT4 | SqlType::FLOAT8 => &[SqlType::FLOAT8],
            SqlType::NUMERIC => &[SqlType::NUMERIC],
            SqlType::DATE | SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ | SqlType::INTERVAL => &[SqlType::INTERVAL],
            SqlType::TIME | SqlType::TIMETZ => {
                return Err(self.unsupported("RANGE with an offset over times of day is", at));
            }
            _ => {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                    self.type_text(key)
                );
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
            }
        };
        let wanted = match known {
            [only] => *only,
            _ if offset.ty == SqlType::UNKNOWN => key.base(),
            several => several.iter().copied().find(|ty| *ty == offset.ty.base()).unwrap_or(SqlType::INT8),
        };
        let given = self.type_text(offset.ty);
        let Some(offset) = self.coerce(offset, wanted, CastContext::Implicit)? else {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {given}",
                self.type_text(key)
            );
            let error = self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at);
            return Err(error.hint("Cast the offset value to an appropriate type."));
        };
        // Before the row is where values are smaller, unless the order descends.
        let subtracts = follows == descending;
        let is_less = is_end != descending;
        let symbol = if subtracts { "-" } else { "+" };
        let (value, by) = (Typed::new(Expr::Column(0), key, at), Typed::new(Expr::Column(1), wanted, at));
        let edge = self.operator(symbol, symbol, value, by, (ast, ast))?;
        let symbol = if is_less { "<=" } else { ">=" };
        let (value, bound) = (Typed::new(Expr::Column(0), key, at), Typed::new(Expr::Column(1), edge.ty, at));
        let test = self.operator(symbol, symbol, value, bound, (ast, ast))?;
        let range = RangeBound { edge: edge.expr, test: test.expr, beyond: subtracts != is_less };
        Ok(FrameBound::Offset { offset: offset.expr, follows, range: Some(Box::new(range)) })
    }

    /// Where the parentheses of a window and the bounds of its frame begin, behind a word that follows a location.
    pub(super) fn places(&self, from: Location, word: &str) -> Places {
        let text = &self.statement.text;
        let Some(begin) = text.offset(from).filter(|_| !self.is_stored) else { return Places::default() };
        let mut lexer = Lexer::new(text.as_str());
        lexer.skip_to(begin);
        let (mut places, mut depth, mut last, mut is_found) = (Places::default(), 0_usize, String::new(), false);
        while let Some(found) = lexer.next() {
            let position = text.position_of_byte(found.start);
            let is_bound = depth == 1 && places.open > 0;
            if is_bound && places.start == 0 && matches!(&*last, "rows" | "range" | "groups") {
                (places.start, places.end) = (position, position);
            } else if is_bound && last == "between" {
                places.start = position;
            } else if is_bound && places.start > 0 && last == "and" {
                places.end = position;
            }
            match &found.token {
                Token::Symbol('(') => {
                    depth += 1;
                    if is_found && places.open == 0 {
                        (places.open, depth) = (position, 1);
                    }
                }
                Token::Symbol(')') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && places.open > 0 {
                        break;
                    }
                }
                Token::Word(other) if depth == 0 && other.eq_ignore_ascii_case(word) => is_found = true,
                _ => {}
            }
            last = match found.token {
                Token::Word(word) => word.to_ascii_lowercase(),
                _ => String::new(),
            };
        }
        places
    }
}

/// An offset as it is written: the parser takes a string for an interval.
fn plain_offset(ast: &Ast) -> &Ast {
    match ast {
        Ast::Interval(interval) if interval.leading_field.is_none() => &interval.value,
        ast => ast,
    }
}
