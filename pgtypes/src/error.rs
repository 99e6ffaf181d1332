//! The error of a value: PostgreSQL's SQLSTATE and wording. The front end adds the position in the statement.

use std::borrow::Cow;
use std::fmt;

use crate::sqlstate::SqlState;

/// Why a value cannot be read, converted or computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    code: SqlState,
    message: Cow<'static, str>,
    detail: Option<Cow<'static, str>>,
    hint: Option<Cow<'static, str>>,
}

impl ValueError {
    /// An error with a code and a message.
    pub fn new(code: SqlState, message: impl Into<Cow<'static, str>>) -> ValueError {
        ValueError(Box::new(Parts { code, message: message.into(), detail: None, hint: None }))
    }

    /// XX000 for a state that only a defect of this program can reach.
    pub fn internal(why: &str) -> ValueError {
        ValueError::new(SqlState::INTERNAL_ERROR, format!("internal error: {why}"))
    }

    /// With a detail line.
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> ValueError {
        self.0.detail = Some(detail.into());
        self
    }

    /// With a hint line.
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> ValueError {
        self.0.hint = Some(hint.into());
        self
    }

    /// The SQLSTATE.
    pub fn code(&self) -> SqlState {
        self.0.code
    }

    /// The primary message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The detail line.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The hint line.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {}: {}", self.0.code.0, self.0.message)
    }
}

impl std::error::Error for ValueError {}
