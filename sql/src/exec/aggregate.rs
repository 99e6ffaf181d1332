//! Groups and their aggregates: FILTER, DISTINCT and ORDER BY around the function's own state.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::budget::Budget;
use super::rows::{Row, distinct_key, key_order};
use crate::coop::{MANY, drop_elsewhere};
use crate::error::SqlError;
use crate::expr::eval::{Env, eval, is_true};
use crate::plan::{AggregateCall, AggregateOrder, Aggregation};
use pgtypes::Datum;
use pgtypes::functions::{Aggregate, Args, Run};

/// The groups of an aggregation.
#[derive(Default)]
pub(crate) struct Groups {
    /// Whether there is an aggregation.
    pub(crate) is_used: bool,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<Group>,
}

/// A group: its keys, and the states of its aggregates.
pub(crate) struct Group {
    keys: Row,
    accumulators: Vec<Accumulator>,
}

impl Groups {
    /// No group yet; without keys the only one.
    pub(crate) fn new(aggregation: Option<&Aggregation>) -> Groups {
        let mut groups = Groups { is_used: aggregation.is_some(), ..Groups::default() };
        if let Some(aggregation) = aggregation.filter(|aggregation| aggregation.keys.is_empty()) {
            groups.groups.push(Group::new(aggregation, Vec::new()));
        }
        groups
    }

    /// Adds a row to its group.
    pub(crate) fn add(
        &mut self,
        aggregation: &Aggregation,
        row: &[Datum],
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<(), SqlError> {
        let place = if aggregation.keys.is_empty() { 0 } else { self.place(aggregation, row, env, budget)? };
        let Some(group) = self.groups.get_mut(place) else { return Ok(()) };
        for (accumulator, call) in group.accumulators.iter_mut().zip(&aggregation.calls) {
            accumulator.add(call, row, env, budget)?;
        }
        Ok(())
    }

    fn place(
        &mut self,
        aggregation: &Aggregation,
        row: &[Datum],
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<usize, SqlError> {
        let keys = aggregation.keys.iter().map(|key| eval(key, row, env)).collect::<Result<Vec<_>, SqlError>>()?;
        let bytes = distinct_key(keys.iter().map(|key| &**key))?;
        if let Some(place) = self.places.get(&bytes) {
            return Ok(*place);
        }
        let keys: Row = keys.into_iter().map(Cow::into_owned).collect();
        let state = aggregation.calls.len() * size_of::<Accumulator>();
        budget.charge(2 * bytes.len() + keys.iter().map(Datum::memory).sum::<usize>() + state)?;
        self.places.insert(bytes, self.groups.len());
        self.groups.push(Group::new(aggregation, keys));
        Ok(self.groups.len() - 1)
    }

    /// All groups, in the order of their first rows.
    pub(crate) fn finish(self) -> impl Iterator<Item = Group> {
        self.groups.into_iter()
    }
}

impl Group {
    fn new(aggregation: &Aggregation, keys: Row) -> Group {
        Group { keys, accumulators: aggregation.calls.iter().map(Accumulator::new).collect() }
    }

    /// Evaluates the direct arguments of its aggregates. Changes nothing.
    pub(crate) fn rehearse(&self, aggregation: &Aggregation, env: &Env<'_>) -> Result<(), SqlError> {
        let mut direct = aggregation.calls.iter().flat_map(|call| &call.direct);
        direct.try_for_each(|(expr, _)| eval(expr, &self.keys, env).map(drop))
    }

    /// The row of the group: its keys, then the aggregates.
    pub(crate) fn row(self, aggregation: &Aggregation, env: &Env<'_>, budget: &mut Budget) -> Result<Row, SqlError> {
        let mut row = self.keys;
        for (mut accumulator, call) in self.accumulators.into_iter().zip(&aggregation.calls) {
            let value = accumulator.finish(call, &row, env, budget)?;
            row.push(value);
        }
        Ok(row)
    }
}

/// The state of one aggregate.
pub(crate) struct Accumulator {
    state: Option<Box<dyn Aggregate>>,
    /// The bytes of the state that are charged to the budget.
    charged: usize,
    seen: HashSet<Vec<u8>>,
    /// The arguments of the rows that are to be sorted, with their keys.
    rows: Vec<(Vec<Datum>, Vec<Datum>)>,
}

impl Accumulator {
    /// The state of an aggregate before the first row.
    pub(crate) fn new(call: &AggregateCall) -> Accumulator {
        let state = match call.function.run {
            Run::Aggregate(begin) | Run::OrderedSet(_, begin) => Some(begin(&call.types, call.result)),
            _ => None,
        };
        Accumulator { state, charged: 0, seen: HashSet::new(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn add(
        &mut self,
        call: &AggregateCall,
        row: &[Datum],
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<(), SqlError> {
        if let Some(filter) = &call.filter
            && !is_true(filter, row, env)?
        {
            return Ok(());
        }
        let values = call.args.iter().map(|arg| eval(arg, row, env)).collect::<Result<Vec<_>, SqlError>>()?;
        if call.function.is_strict && values.iter().any(|value| value.is_null()) {
            return Ok(());
        }
        if call.distinct {
            let key = distinct_key(values.iter().map(|value| &**value))?;
            let bytes = key.len() + size_of::<Vec<u8>>();
            if !self.seen.insert(key) {
                return Ok(());
            }
            budget.charge(bytes)?;
        }
        if call.order.is_empty() {
            return self.step(call, &values, env, budget);
        }
        let keys = call.order.iter().map(|key| Ok(eval(&key.expr, row, env)?.into_owned()));
        let keys = keys.collect::<Result<Vec<Datum>, SqlError>>()?;
        let values: Vec<Datum> = values.into_iter().map(Cow::into_owned).collect();
        budget.charge(keys.iter().chain(&values).map(Datum::memory).sum())?;
        self.rows.push((keys, values));
        Ok(())
    }

    fn step(
        &mut self,
        call: &AggregateCall,
        values: &[Cow<'_, Datum>],
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<(), SqlError> {
        let state = self.state.as_deref_mut().ok_or_else(|| SqlError::internal("an aggregate has no state"))?;
        state.add(&Args::new(values, &call.types, call.result, &env.io))?;
        let memory = state.memory();
        if memory > self.charged {
            budget.charge(memory - self.charged)?;
            self.charged = memory;
        }
        Ok(())
    }

    /// Whether rows can be added after [`Accumulator::finish`].
    pub(crate) fn is_lasting(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.is_lasting())
    }

    /// The result over all added rows. `keys`: those of their group, which the direct arguments are over.
    pub(crate) fn finish(
        &mut self,
        call: &AggregateCall,
        keys: &[Datum],
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<Datum, SqlError> {
        if self.seen.len() > MANY {
            drop_elsewhere(std::mem::take(&mut self.seen));
        }
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|(a, _), (b, _)| order(&call.order, a, b));
        for (_, values) in &rows {
            let values: Vec<Cow<'_, Datum>> = values.iter().map(Cow::Borrowed).collect();
            self.step(call, &values, env, budget)?;
        }
        let direct = call.direct.iter().map(|(expr, _)| eval(expr, keys, env)).collect::<Result<Vec<_>, SqlError>>()?;
        let types: Vec<_> = call.direct.iter().map(|(_, ty)| *ty).collect();
        let state = self.state.as_deref_mut().ok_or_else(|| SqlError::internal("an aggregate has no state"))?;
        Ok(state.finish(&Args::new(&direct, &types, call.result, &env.io))?)
    }
}

fn order(keys: &[AggregateOrder], a: &[Datum], b: &[Datum]) -> Ordering {
    let pairs = keys.iter().zip(a.iter().zip(b));
    let mut orders = pairs.map(|(key, (a, b))| key_order(a, b, key.descending, key.nulls_first));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
