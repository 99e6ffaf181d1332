//! The options of EXPLAIN, with PostgreSQL's errors.

use sqlparser::ast::{Expr as Ast, Spanned, Statement, UnaryOperator, UtilityOption, Value};

use crate::error::{SqlError, SqlState};
use crate::lexer::{Lexer, Token};
use crate::parse;
use crate::plan::binder::Binder;
use crate::plan::explained::{ExplainFormat, ExplainOptions};

/// Those of an EXPLAIN. 42601 for an unknown one, 22023 for a wrong value, 0A000 for a format that is missing.
pub(crate) fn options_of(binder: &Binder<'_>, tree: &Statement) -> Result<ExplainOptions, SqlError> {
    let Statement::Explain { analyze, verbose, options, format, .. } = tree else {
        return Ok(ExplainOptions::default());
    };
    if format.is_some() {
        // A spelling of other databases that the parser knows.
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"format\""));
    }
    let start = ExplainOptions { analyze: *analyze, verbose: *verbose, costs: true, ..ExplainOptions::default() };
    let mut found = start;
    let (mut timing, mut summary, mut wal) = (None, None, false);
    for option in options.iter().flatten() {
        match option.name.value.to_ascii_lowercase().as_str() {
            "analyze" | "analyse" => found.analyze = boolean(option)?,
            "verbose" => found.verbose = boolean(option)?,
            "costs" => found.costs = boolean(option)?,
            "timing" => timing = Some(boolean(option)?),
            "summary" => summary = Some(boolean(option)?),
            "wal" => wal = boolean(option)?,
            "buffers" | "settings" => _ = boolean(option)?,
            "format" => found.format = checked_format(binder, option)?,
            name => {
                let message = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(binder.error(SqlState::SYNTAX_ERROR, message, option.name.span.start));
            }
        }
    }
    for (name, is_on) in [("WAL", wal), ("TIMING", timing == Some(true))] {
        if is_on && !found.analyze {
            let message = format!("EXPLAIN option {name} requires ANALYZE");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    }
    found.timing = timing.unwrap_or(found.analyze);
    found.summary = summary.unwrap_or(found.analyze);
    Ok(found)
}

/// The word or the number that is the value of an option.
fn value(option: &UtilityOption) -> Option<String> {
    match option.arg.as_ref()? {
        Ast::Identifier(word) => Some(word.value.to_ascii_lowercase()),
        Ast::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            Value::Number(number, _) => Some(number.clone()),
            Value::Boolean(is_on) => Some(is_on.to_string()),
            _ => None,
        },
        Ast::UnaryOp { op: UnaryOperator::Plus, expr } => match &**expr {
            Ast::Value(value) => Some(value.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// The value of an option that is on or off; on without one.
fn boolean(option: &UtilityOption) -> Result<bool, SqlError> {
    let text = match &option.arg {
        None => return Ok(true),
        Some(_) => value(option).unwrap_or_default(),
    };
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["true", "on", "1"]) {
        Ok(true)
    } else if is(&["false", "off", "0"]) {
        Ok(false)
    } else {
        let message = format!("{} requires a Boolean value", option.name.value.to_ascii_lowercase());
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
    }
}

/// The format that the head of an EXPLAIN asks for: all before the statement that it explains.
pub(crate) fn format_of(head: &str) -> ExplainFormat {
    let parsed = parse::parse(&format!("{head} SELECT 1")).ok().and_then(|mut statements| statements.pop());
    let options = match parsed.as_ref().map(|parsed| &parsed.tree) {
        Some(Statement::Explain { options: Some(options), .. }) => options.as_slice(),
        _ => &[],
    };
    let last = options.iter().rfind(|option| option.name.value.eq_ignore_ascii_case("format"));
    let is_json = last.and_then(value).is_some_and(|format| format == "json");
    if is_json { ExplainFormat::Json } else { ExplainFormat::Text }
}

/// 42601 for an EXPLAIN of a statement that has no plan, at its first word.
pub(crate) fn no_plan(text: &str) -> SqlError {
    let mut lexer = Lexer::new(text);
    let mut depth = 0;
    let is_head =
        |word: &str| ["explain", "analyze", "analyse", "verbose"].iter().any(|w| word.eq_ignore_ascii_case(w));
    while let Some(found) = lexer.next() {
        match found.token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth -= 1,
            Token::Word(word) if depth == 0 && !is_head(word) => {
                let before = text.get(..found.start).map_or(0, |before| before.chars().count());
                let message = format!("syntax error at or near \"{word}\"");
                let position = u32::try_from(before + 1).unwrap_or(u32::MAX);
                return SqlError::new(SqlState::SYNTAX_ERROR, message).at(position);
            }
            _ => {}
        }
    }
    SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input")
}

fn checked_format(binder: &Binder<'_>, option: &UtilityOption) -> Result<ExplainFormat, SqlError> {
    let Some(arg) = &option.arg else {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "format requires a parameter"));
    };
    let Some(value) = value(option) else {
        return Err(binder.unsupported("this format of EXPLAIN is", arg.span().start));
    };
    match value.as_str() {
        "text" => Ok(ExplainFormat::Text),
        "json" => Ok(ExplainFormat::Json),
        "xml" | "yaml" => Err(binder.unsupported("this format of EXPLAIN is", arg.span().start)),
        other => {
            let message = format!("unrecognized value for EXPLAIN option \"format\": \"{other}\"");
            Err(binder.error(SqlState::INVALID_PARAMETER_VALUE, message, option.name.span.start))
        }
    }
}
