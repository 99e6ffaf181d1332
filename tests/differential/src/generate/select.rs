//! Statements without tables: expressions over constants, functions that return sets, aggregates of VALUES.

use rand::Rng;

use crate::generate::expression::{Column, Expressions};
use crate::generate::literal;
use crate::tree::{Part, Tree};

/// Levels of an expression.
const DEPTH: u32 = 3;

/// `SELECT expression, ...`
pub fn constants(e: &mut Expressions<'_>) -> Tree {
    let items = (0..e.rng.random_range(1..3)).map(|_| {
        let (of, depth) = (e.any_type(), e.rng.random_range(1..=DEPTH));
        e.of(of, depth)
    });
    let items: Vec<Tree> = items.collect();
    Tree::fixed(vec!["SELECT ".into(), Tree::list(items).into()])
}

/// A function that returns a set, in the select list or in FROM. The rows come in its order.
pub fn set(e: &mut Expressions<'_>) -> Tree {
    let at = e.choose(&e.producers.sets.clone());
    let function = &e.catalog.functions[at];
    let call = if function.name == "generate_series" {
        series(e, &function.arguments)
    } else {
        let goal = e.any_type();
        e.call(function, goal, 2)
    };
    match e.rng.random_range(0..4) {
        0 => Tree::fixed(vec!["SELECT * FROM ".into(), call.into(), " LIMIT 20".into()]),
        1 => Tree::fixed(vec!["SELECT f.* FROM ".into(), call.into(), " WITH ORDINALITY AS f LIMIT 20".into()]),
        2 => {
            let of = e.any_type();
            let other = e.of(of, 1);
            Tree::fixed(vec!["SELECT ".into(), Tree::list(vec![call, other]).into(), " LIMIT 20".into()])
        }
        _ => Tree::fixed(vec!["SELECT ".into(), call.into(), " LIMIT 20".into()]),
    }
}

/// generate_series with few values.
fn series(e: &mut Expressions<'_>, arguments: &[u32]) -> Tree {
    let mut items = Vec::new();
    for (at, of) in arguments.iter().enumerate() {
        let texts: &[&str] = match (*of, at) {
            (1114 | 1184, 0) => &["2000-01-01", "2024-02-28 12:00"],
            (1114 | 1184, _) => &["2000-01-05", "2024-03-02 12:00", "1999-12-30"],
            (1186, _) => &["1 day", "-1 day", "12 hours", "1 mon", "0", "1 mon -1 day"],
            (_, 0) => &["1", "-2", "5"],
            (_, 1) => &["3", "10", "-5"],
            _ => &["1", "2", "-1", "0", "-3"],
        };
        let text = e.choose(texts);
        let name = e.catalog.name(*of);
        items.push(Tree::atom(format!("{}::{name}", literal::constant(text))));
    }
    let mut parts: Vec<Part> = vec!["generate_series(".into()];
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            parts.push(", ".into());
        }
        parts.push(item.into());
    }
    parts.push(")".into());
    Tree::expression(parts)
}

/// Aggregates over the rows of VALUES, sometimes with DISTINCT, FILTER or ORDER BY.
pub fn aggregates(e: &mut Expressions<'_>) -> Tree {
    let types = [e.any_type(), e.any_type()];
    let mut rows = Vec::new();
    for _ in 0..e.rng.random_range(1..5) {
        let row = types.map(|of| match e.one_in(6) {
            true => Tree::atom(format!("NULL::{}", e.catalog.name(of))),
            false => {
                let text = literal::valid(e.rng, e.catalog, of);
                Tree::atom(format!("{}::{}", literal::constant(&text), e.catalog.name(of)))
            }
        });
        let [a, b] = row;
        rows.push(Tree::fixed(vec!["(".into(), a.into(), ", ".into(), b.into(), ")".into()]));
    }
    e.columns = ["v.a", "v.b"].into_iter().zip(types).map(|(name, of)| Column { name: name.to_string(), of }).collect();
    let items = (0..e.rng.random_range(1..3)).map(|_| aggregate(e)).collect();
    let head = Tree::list(items);
    let mut parts: Vec<Part> =
        vec!["SELECT ".into(), head.into(), " FROM (VALUES ".into(), Tree::list(rows).into(), ") AS v(a, b)".into()];
    if e.one_in(4) {
        parts.push(Tree::optional(vec![" WHERE ".into(), e.condition(1).into()]).into());
    }
    Tree::fixed(parts)
}

/// A call of an aggregate over the columns in reach.
pub fn aggregate(e: &mut Expressions<'_>) -> Tree {
    if e.one_in(8) {
        return Tree::atom("count(*)");
    }
    let fitting: Vec<usize> = e
        .producers
        .aggregates
        .iter()
        .copied()
        .filter(|at| {
            let first = e.catalog.functions[*at].arguments.first();
            first.is_some_and(|of| e.columns.iter().any(|column| column.of == *of))
        })
        .collect();
    let all: Vec<usize> =
        e.producers.aggregates.iter().copied().filter(|at| !e.catalog.functions[*at].arguments.is_empty()).collect();
    let at = match fitting.is_empty() || e.one_in(3) {
        true => e.choose(&all),
        false => e.choose(&fitting),
    };
    let function = &e.catalog.functions[at];
    let columns = e.columns.clone();
    let goal = columns[e.rng.random_range(0..columns.len())].of;
    let call = e.call(function, goal, 1);
    let Some((Part::Text(name), rest)) = call.parts.split_first() else { return call };
    let mut parts: Vec<Part> = vec![name.clone().into()];
    let order = columns[e.rng.random_range(0..columns.len())].name.clone();
    match e.rng.random_range(0..6) {
        0 => parts.push(Tree::optional(vec!["DISTINCT ".into()]).into()),
        1 => {
            let inner = rest[..rest.len() - 1].iter().cloned();
            parts.extend(inner);
            parts.push(Tree::optional(vec![format!(" ORDER BY {order} DESC").into()]).into());
            parts.push(")".into());
            return Tree::expression(parts);
        }
        _ => {}
    }
    parts.extend(rest.iter().cloned());
    if e.one_in(6) {
        let condition = e.condition(1);
        parts.push(Tree::optional(vec![" FILTER (WHERE ".into(), condition.into(), ")".into()]).into());
    }
    Tree::expression(parts)
}
