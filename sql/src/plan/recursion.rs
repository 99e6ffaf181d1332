//! What WITH RECURSIVE asks of its queries: the order in which they are bound, and the form of those that read
//! themselves. Both follow from the text alone, as in PostgreSQL, and come before any of the queries is bound.

use std::collections::BTreeSet;

use sqlparser::ast::{Cte, LimitClause, OrderBy, OrderByKind, Query, SetExpr, SetOperator, SetQuantifier, With};
use sqlparser::tokenizer::Location;

use super::binder::Binder;
use super::mentions::{self, Mention, Place};
use super::names::fold_ident;
use super::with_name::changing;
use crate::error::{SqlError, SqlState};
use crate::parse::start_of;

/// A query of WITH.
pub(super) struct Item<'w> {
    pub(super) cte: &'w Cte,
    /// Whether it reads itself. If so, it has the form that [`union_of`] takes apart.
    pub(super) is_recursive: bool,
}

/// A query of WITH RECURSIVE whose turn has not come.
struct Waiting<'w> {
    item: Item<'w>,
    /// Its place in the list.
    place: usize,
    /// The places of the queries that it reads, other than its own.
    reads: BTreeSet<usize>,
}

impl Binder<'_> {
    /// The queries of a WITH, in the order in which they are bound: those of WITH RECURSIVE after the ones that they
    /// read. 42712 for a name that two have, 0A000 if there is no such order, 42P19 for a query that reads itself where
    /// it must not.
    pub(super) fn with_items<'w>(&self, with: &'w With) -> Result<Vec<Item<'w>>, SqlError> {
        let names: Vec<String> = with.cte_tables.iter().map(|cte| fold_ident(&cte.alias.name)).collect();
        for (at, name) in names.iter().enumerate() {
            let mut later = names.iter().zip(&with.cte_tables).skip(at + 1);
            if let Some((_, cte)) = later.find(|(other, _)| *other == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(self.error(SqlState::DUPLICATE_ALIAS, message, location(cte)));
            }
        }
        if !with.recursive {
            return Ok(with.cte_tables.iter().map(|cte| Item { cte, is_recursive: false }).collect());
        }
        let waiting = with.cte_tables.iter().enumerate().map(|(place, cte)| {
            let mentioned = mentions::of_query(&cte.query);
            let read = mentioned.iter().filter_map(|mention| names.iter().position(|name| *name == mention.name));
            let mut reads: BTreeSet<usize> = read.collect();
            let is_recursive = reads.remove(&place);
            Waiting { item: Item { cte, is_recursive }, place, reads }
        });
        let items = self.in_order(waiting.collect())?;
        for item in items.iter().filter(|item| item.is_recursive) {
            self.check_recursive(item.cte)?;
        }
        Ok(items)
    }

    /// Puts queries after the ones that they read. The choice among several orders is PostgreSQL's.
    fn in_order<'w>(&self, mut waiting: Vec<Waiting<'w>>) -> Result<Vec<Item<'w>>, SqlError> {
        for at in 0..waiting.len() {
            let Some(ready) = waiting.iter().skip(at).position(|query| query.reads.is_empty()) else {
                let message = "mutual recursion between WITH items is not implemented";
                let place = location(waiting[at].item.cte);
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, place));
            };
            waiting.swap(at, at + ready);
            let bound = waiting[at].place;
            waiting.iter_mut().skip(at + 1).for_each(|query| {
                query.reads.remove(&bound);
            });
        }
        Ok(waiting.into_iter().map(|query| query.item).collect())
    }

    /// 42P19 for a change, and unless a query that reads itself does so once, where it may; 0A000 for what may not be
    /// around its UNION.
    fn check_recursive(&self, cte: &Cte) -> Result<(), SqlError> {
        let name = fold_ident(&cte.alias.name);
        if changing(&cte.query).is_some() {
            let message = format!("recursive query \"{name}\" must not contain data-modifying statements");
            return Err(self.error(SqlState::INVALID_RECURSION, message, location(cte)));
        }
        let Some((first, step, _)) = union_of(&cte.query) else {
            let message = format!(
                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
            );
            return Err(self.error(SqlState::INVALID_RECURSION, message, location(cte)));
        };
        if let Some(mention) = of_name(mentions::of_operand(first, Place::First), &name).first() {
            return Err(self.misplaced(mention));
        }
        let in_step = of_name(mentions::of_operand(step, Place::Free), &name);
        let refused = in_step.iter().enumerate().find(|(at, mention)| *at > 0 || mention.place != Place::Free);
        if let Some((_, mention)) = refused {
            return Err(self.misplaced(mention));
        }
        for with in layers(&cte.query).into_iter().filter_map(|query| query.with.as_ref()) {
            if let Some(mention) = of_name(mentions::of_with(with), &name).first() {
                return Err(self.misplaced(mention));
            }
        }
        self.refuse_around_union(&cte.query)
    }

    fn misplaced(&self, mention: &Mention) -> SqlError {
        let place = match mention.place {
            Place::Free => "more than once",
            Place::First => "within its non-recursive term",
            Place::Subquery => "within a subquery",
            Place::OuterJoin => "within an outer join",
            Place::Intersect => "within INTERSECT",
            Place::Except => "within EXCEPT",
        };
        let message = format!("recursive reference to query \"{}\" must not appear {place}", mention.name);
        self.error(SqlState::INVALID_RECURSION, message, mention.at)
    }

    /// 0A000 for ORDER BY, OFFSET, LIMIT and locks of a recursive query.
    fn refuse_around_union(&self, query: &Query) -> Result<(), SqlError> {
        let refuse = |what: &str, at: Option<Location>| {
            let message = format!("{what} in a recursive query is not implemented");
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            Err(match at {
                Some(at) => error.at(self.position(at)),
                None => error,
            })
        };
        for query in layers(query) {
            if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &query.order_by {
                return refuse("ORDER BY", keys.first().map(|key| start_of(&key.expr)));
            }
            if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
                if let Some(offset) = offset {
                    return refuse("OFFSET", Some(start_of(&offset.value)));
                }
                if let Some(limit) = limit {
                    return refuse("LIMIT", Some(start_of(limit)));
                }
            }
            if let Some(fetch) = &query.fetch {
                return refuse("LIMIT", fetch.quantity.as_ref().map(start_of));
            }
            if !query.locks.is_empty() {
                return refuse("FOR UPDATE/SHARE", None);
            }
        }
        Ok(())
    }

    /// 42P19 for aggregates over the rows of the step before. `first`: where the first of them stands.
    pub(super) fn refuse_recursive_aggregate(&self, first: Option<Location>) -> Result<(), SqlError> {
        let Some(at) = first else { return Ok(()) };
        let message = "aggregate functions are not allowed in a recursive query's recursive term";
        Err(self.error(SqlState::INVALID_RECURSION, message, at))
    }
}

/// The operands of the UNION that a query is, and whether it is UNION ALL.
pub(super) fn union_of(query: &Query) -> Option<(&SetExpr, &SetExpr, bool)> {
    let last = layers(query).pop()?;
    match &*last.body {
        SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } => {
            Some((left, right, *set_quantifier == SetQuantifier::All))
        }
        _ => None,
    }
}

/// A query and those in parentheses that it consists of, from the outermost.
pub(super) fn layers(query: &Query) -> Vec<&Query> {
    let (mut layers, mut last) = (vec![query], query);
    while let SetExpr::Query(inner) = &*last.body {
        last = inner;
        layers.push(last);
    }
    layers
}

fn of_name(mut mentions: Vec<Mention>, name: &str) -> Vec<Mention> {
    mentions.retain(|mention| mention.name == name);
    mentions
}

fn location(cte: &Cte) -> Location {
    cte.alias.name.span.start
}
