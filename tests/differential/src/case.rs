//! A case: statements that run one after the other on both servers.

use std::io;

use crate::compare::{self, CANCELED, Difference};
use crate::tree::Tree;
use crate::wire::{Answer, Client, Mode, ServerError};

/// A statement of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Its text and parameters.
    pub tree: Tree,
    /// How it is sent.
    pub mode: Mode,
    /// Whether ORDER BY determines the order of its rows.
    pub is_ordered: bool,
}

/// Statements that run one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The statements.
    pub statements: Vec<Statement>,
    /// Whether they change something: then they run inside a transaction that is rolled back.
    pub changes: bool,
    /// Whether expressions are evaluated over rows of tables: PostgreSQL does not say for which rows, and which first.
    pub reads_tables: bool,
}

/// Both servers.
pub struct Servers {
    /// The one that is right.
    pub postgres: Client,
    /// The one under test.
    pub cortado: Client,
}

/// What a run of a case showed.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Both servers answered the same.
    Same {
        /// The SQLSTATE of the last statement.
        code: String,
    },
    /// The answers of the statement with this number differ.
    Differs {
        /// The number of the statement, from 0.
        at: usize,
        /// What differs.
        difference: Difference,
        /// PostgreSQL's answer, Cortado's answer.
        answers: Box<[Answer; 2]>,
    },
    /// A statement took too long on one of the servers.
    Inconclusive,
}

impl Servers {
    /// Runs a case up to its first difference.
    pub fn run(&mut self, case: &Case) -> io::Result<Verdict> {
        if case.changes {
            self.both("BEGIN")?;
        }
        let verdict = self.statements(case)?;
        if case.changes {
            self.both("ROLLBACK")?;
        }
        Ok(verdict)
    }

    fn both(&mut self, sql: &str) -> io::Result<()> {
        self.postgres.run(sql, &[], Mode::Simple)?;
        self.cortado.run(sql, &[], Mode::Simple)?;
        Ok(())
    }

    fn statements(&mut self, case: &Case) -> io::Result<Verdict> {
        let mut code = String::new();
        for (at, statement) in case.statements.iter().enumerate() {
            let (sql, parameters) = statement.tree.render();
            let expected = self.postgres.run(&sql, &parameters, statement.mode)?;
            let found = self.cortado.run(&sql, &parameters, statement.mode)?;
            if expected.is_lost || [&expected, &found].iter().any(|answer| compare::code(answer) == CANCELED) {
                return Ok(Verdict::Inconclusive);
            }
            let difference = compare::compare(&expected, &found, statement.is_ordered);
            if difference.as_ref().is_some_and(|_| case.depends_on_order(&expected, &found)) {
                return Ok(Verdict::Inconclusive);
            }
            if let Some(difference) = difference {
                return Ok(Verdict::Differs { at, difference, answers: Box::new([expected, found]) });
            }
            code = compare::code(&expected).to_string();
        }
        Ok(Verdict::Same { code })
    }
}

impl Case {
    /// One statement that changes nothing.
    pub fn query(tree: Tree, mode: Mode, is_ordered: bool) -> Case {
        Case { statements: vec![Statement { tree, mode, is_ordered }], changes: false, reads_tables: false }
    }

    /// Whether one of the answers is an error of a value, which the other server need not meet, or not first.
    fn depends_on_order(&self, expected: &Answer, found: &Answer) -> bool {
        let is_of_value = |answer: &Answer| answer.error.as_ref().is_some_and(ServerError::is_of_value);
        let [one, other] = [is_of_value(expected), is_of_value(found)];
        self.reads_tables && (one && (other || found.error.is_none()) || other && expected.error.is_none())
    }

    /// The texts, with the values of parameters behind them.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for statement in &self.statements {
            let (sql, parameters) = statement.tree.render();
            let values = parameters.iter().enumerate().map(|(at, parameter)| {
                let value = parameter.value.as_deref().unwrap_or("NULL");
                format!(" ${}:{}={value:?}", at + 1, parameter.declared)
            });
            let mode = if statement.mode == Mode::Simple { String::new() } else { format!(" -- {:?}", statement.mode) };
            lines.push(format!("{sql};{mode}{}", values.collect::<String>()));
        }
        lines.join("\n")
    }
}
