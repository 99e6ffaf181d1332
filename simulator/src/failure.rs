//! The report of a run that found a violation: the last steps, the options, and how to replay it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::checkers::{Violation, violated};

/// A violation, with what a reader needs to find its cause.
#[derive(Debug)]
pub struct Failure {
    /// The text of the violation.
    pub violation: String,
    /// The options of the run, as text.
    pub options: String,
    /// The last steps before it.
    pub tail: Vec<String>,
    /// The command that replays the run.
    pub replay: String,
}

impl Failure {
    /// The failure of a seed. `replay` is the command that replays it, with `{seed}` in place of its number.
    pub fn of_seed(seed: u64, violation: &str, options: &dyn fmt::Debug, tail: Vec<String>, replay: &str) -> Failure {
        let (violation, options) = (format!("seed {seed}: {violation}"), format!("{options:#?}"));
        Failure { violation, options, tail, replay: replay.replace("{seed}", &seed.to_string()) }
    }

    /// Drops the last steps and the options, for a reader who has the whole trace.
    pub fn without_tail(mut self: Box<Failure>) -> Box<Failure> {
        self.tail.clear();
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.tail.is_empty() {
            writeln!(f, "last steps:")?;
            for line in &self.tail {
                writeln!(f, "{line}")?;
            }
            writeln!(f, "{}", self.options)?;
        }
        writeln!(f, "{}", self.violation)?;
        write!(f, "replay: {}", self.replay)
    }
}

/// Runs the code under test. A panic is a violation too.
///
/// # Errors
/// The violation.
pub fn caught<T>(run: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| violated(panic_text(&*panic)))
}

/// The message of a panic of the code under test.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without a message"))
}
