//! Generates cases from a seed: the same seed and number make the same case.
//!
//! # Layers
//!
//! 1. `literal`, `texts`: texts for values of each type; those that make sense for a function
//! 2. `producers`: which functions and operators make values of a type
//! 3. `expression`: expressions of a type
//! 4. `schema`: the tables of a run
//! 5. `select`: statements without tables; `change`, `definition`: statements that change rows and tables
//! 6. `query`: queries over tables

mod change;
mod definition;
mod expression;
mod literal;
mod producers;
mod query;
mod schema;
mod select;
mod texts;

use clap::ValueEnum;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::case::Case;
use crate::catalog::Catalog;
use crate::generate::expression::Expressions;
use crate::generate::producers::Producers;
use crate::generate::schema::Table;
use crate::wire::Mode;

/// What a case is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Subject {
    /// Expressions over constants.
    Expressions,
    /// Functions that return sets.
    Sets,
    /// Aggregates.
    Aggregates,
    /// Queries over tables.
    Queries,
    /// Changes of rows.
    Changes,
    /// Definitions of tables and what belongs to them.
    Definitions,
}

/// The number of tables of a run.
const TABLES: usize = 5;

/// Generates cases.
pub struct Generator {
    catalog: Catalog,
    producers: Producers,
    seed: u64,
    subjects: Vec<Subject>,
    tables: Vec<Table>,
}

impl Generator {
    /// A generator of cases about these subjects, and the statements that make its tables.
    pub fn new(catalog: Catalog, seed: u64, subjects: Vec<Subject>) -> (Generator, Vec<String>) {
        let producers = Producers::new(&catalog);
        let mut rng = StdRng::seed_from_u64(seed);
        let (tables, statements) = schema::tables(&mut rng, &catalog, TABLES);
        (Generator { catalog, producers, seed, subjects, tables }, statements)
    }

    /// Generates calls of this function alone.
    pub fn keep_function(&mut self, name: &str) {
        self.catalog.functions.retain(|function| function.name == name);
        self.catalog.operators.clear();
        self.producers = Producers::new(&self.catalog);
        self.subjects = vec![Subject::Expressions];
    }

    /// The case with this number.
    pub fn case(&self, number: u64) -> Case {
        let mut rng = StdRng::seed_from_u64(self.seed.wrapping_mul(1 << 32).wrapping_add(number));
        let subject = self.subjects[rng.random_range(0..self.subjects.len())];
        let mode = [Mode::Simple, Mode::Extended, Mode::Binary][rng.random_range(0..3)];
        let (catalog, producers) = (&self.catalog, &self.producers);
        let has_parameters = mode != Mode::Simple;
        let mut e = Expressions { rng: &mut rng, catalog, producers, columns: Vec::new(), has_parameters };
        match subject {
            Subject::Expressions => Case::query(select::constants(&mut e), mode, true),
            Subject::Sets => Case::query(select::set(&mut e), mode, true),
            Subject::Aggregates => Case::query(select::aggregates(&mut e), mode, true),
            Subject::Queries => {
                let query = query::query(&mut e, &self.tables);
                Case { reads_tables: true, ..Case::query(query.tree, mode, query.is_ordered) }
            }
            Subject::Changes => {
                let statements = change::changes(&mut e, &self.tables, mode);
                Case { statements, changes: true, reads_tables: true }
            }
            Subject::Definitions => {
                e.has_parameters = false;
                let statements = definition::definitions(&mut e, &self.tables);
                Case { statements, changes: true, reads_tables: false }
            }
        }
    }
}
