//! Queries over the tables: joins, sub-queries, grouping, set operations, WITH, LATERAL, ORDER BY and LIMIT.

use rand::Rng;

use crate::catalog::TypeOid;
use crate::generate::expression::{Column, Expressions};
use crate::generate::literal::oids;
use crate::generate::schema::{GROUPABLE, Table};
use crate::generate::select;
use crate::tree::{Kind, Part, Tree};

/// A query, and whether its rows have an order.
pub struct Query {
    /// Its text.
    pub tree: Tree,
    /// Whether ORDER BY determines the order of all its rows.
    pub is_ordered: bool,
}

/// Any query over the tables.
pub fn query(e: &mut Expressions<'_>, tables: &[Table]) -> Query {
    match e.rng.random_range(0..10) {
        0 => set_operation(e, tables),
        1 => with(e, tables),
        2 | 3 => Query { tree: grouped(e, tables), is_ordered: false },
        4 => distinct(e, tables),
        _ => plain(e, tables),
    }
}

/// FROM with one to three tables: the text and the aliases. Its columns come into reach.
fn from(e: &mut Expressions<'_>, tables: &[Table]) -> (Tree, Vec<String>) {
    let count = [1, 1, 2, 2, 3][e.rng.random_range(0..5)];
    let (mut parts, mut aliases): (Vec<Part>, Vec<String>) = (vec![" FROM ".into()], Vec::new());
    for at in 0..count {
        let table = &tables[e.rng.random_range(0..tables.len())];
        let alias = ["a", "b", "c"][at].to_string();
        let before = e.columns.clone();
        let own = table.columns.iter().map(|column| Column { name: format!("{alias}.{}", column.name), of: column.of });
        let item = source(e, table, &alias, at > 0);
        e.columns.extend(own);
        if at == 0 {
            parts.push(item.into());
        } else {
            let join =
                e.choose(&[" JOIN ", " LEFT JOIN ", " JOIN ", " RIGHT JOIN ", " FULL JOIN ", " CROSS JOIN ", ", "]);
            let needs_condition = ![" CROSS JOIN ", ", "].contains(&join);
            let mut joined: Vec<Part> = vec![join.into(), item.into()];
            if needs_condition {
                joined.extend([" ON ".into(), equality(e, &before, &alias, join == " FULL JOIN ").into()]);
            }
            parts.push(Tree::fixed(joined).into());
        }
        aliases.push(alias);
    }
    (Tree::fixed(parts), aliases)
}

/// A table, or a sub-query of all its rows.
fn source(e: &mut Expressions<'_>, table: &Table, alias: &str, can_be_lateral: bool) -> Tree {
    match e.rng.random_range(0..10) {
        0 => Tree::text(format!("(SELECT * FROM {} WHERE id < 20) AS {alias}", table.name)),
        1 if can_be_lateral => Tree::text(format!("LATERAL (SELECT * FROM {}) AS {alias}", table.name)),
        _ => Tree::text(format!("{} AS {alias}", table.name)),
    }
}

/// A condition of a join: an equality of columns of one type, and sometimes more.
fn equality(e: &mut Expressions<'_>, before: &[Column], alias: &str, only_equality: bool) -> Tree {
    let of_alias = format!("{alias}.");
    let own: Vec<Column> = e.columns.iter().filter(|column| column.name.starts_with(&of_alias)).cloned().collect();
    let pairs: Vec<(String, String)> = before
        .iter()
        .flat_map(|left| {
            let fitting = own.iter().filter(|right| right.of == left.of && GROUPABLE.contains(&left.of));
            fitting.map(|right| (left.name.clone(), right.name.clone())).collect::<Vec<_>>()
        })
        .collect();
    let (left, right) = pairs[e.rng.random_range(0..pairs.len())].clone();
    let mut parts: Vec<Part> = vec![format!("{left} = {right}").into()];
    if !only_equality && e.one_in(4) {
        parts.push(Tree::optional(vec![" AND ".into(), e.condition(1).into()]).into());
    }
    Tree::fixed(parts)
}

/// A condition over the columns in reach: simple comparisons mostly, so that rows remain, and sub-queries.
fn filter(e: &mut Expressions<'_>, tables: &[Table]) -> Tree {
    let column = e.columns[e.rng.random_range(0..e.columns.len())].clone();
    match e.rng.random_range(0..10) {
        0..4 => {
            let operator = e.choose(&[" = ", " < ", " >= ", " <> ", " <= ", " > "]);
            let other = e.argument(column.of, 1);
            Tree::expression(vec![
                "(".into(),
                Tree::atom(column.name).into(),
                operator.into(),
                other.into(),
                ")".into(),
            ])
        }
        4..6 => subquery_condition(e, tables, &column),
        6 => {
            let word = e.choose(&[" AND ", " OR "]);
            Tree::expression(vec![
                "(".into(),
                filter(e, tables).into(),
                word.into(),
                filter(e, tables).into(),
                ")".into(),
            ])
        }
        7 => Tree::expression(vec!["(NOT ".into(), filter(e, tables).into(), ")".into()]),
        _ => e.condition(2),
    }
}

fn subquery_condition(e: &mut Expressions<'_>, tables: &[Table], column: &Column) -> Tree {
    let table = &tables[e.rng.random_range(0..tables.len())];
    let fitting: Vec<String> =
        table.columns.iter().filter(|inner| inner.of == column.of).map(|inner| inner.name.clone()).collect();
    let outer = e.columns.iter().find(|column| column.of == oids::INT4).map_or("1".to_string(), |c| c.name.clone());
    let bound = e.rng.random_range(1..25);
    let correlated = Tree { kind: Kind::Optional, parts: vec![format!(" AND s.id <> {outer}").into()] };
    if fitting.is_empty() || !GROUPABLE.contains(&column.of) {
        let word = e.choose(&["EXISTS (", "NOT EXISTS ("]);
        let text = format!("{word}SELECT 1 FROM {} AS s WHERE s.id < {bound}", table.name);
        return Tree::expression(vec![text.into(), correlated.into(), ")".into()]);
    }
    let inner = fitting[e.rng.random_range(0..fitting.len())].clone();
    let word = e.choose(&[" IN (", " NOT IN (", " = ANY (", " > ALL (", " <= ANY ("]);
    let text = format!("SELECT s.{inner} FROM {} AS s WHERE s.id < {bound}", table.name);
    let column = Tree::atom(column.name.clone());
    Tree::expression(vec!["(".into(), column.into(), word.into(), text.into(), correlated.into(), "))".into()])
}

/// An item of the select list.
fn item(e: &mut Expressions<'_>, tables: &[Table]) -> Tree {
    match e.rng.random_range(0..10) {
        0..5 => Tree::atom(e.columns[e.rng.random_range(0..e.columns.len())].name.clone()),
        5 => scalar_subquery(e, tables),
        _ => {
            let of = e.columns[e.rng.random_range(0..e.columns.len())].of;
            e.of(of, 2)
        }
    }
}

fn scalar_subquery(e: &mut Expressions<'_>, tables: &[Table]) -> Tree {
    let table = &tables[e.rng.random_range(0..tables.len())];
    let outer = e.columns.iter().find(|column| column.of == oids::INT4).map_or("1".to_string(), |c| c.name.clone());
    let column = &table.columns[e.rng.random_range(0..table.columns.len())].name;
    let value = match e.rng.random_range(0..3) {
        0 => "count(*)".to_string(),
        1 => format!("count(DISTINCT s.{column})").replace("jsonb", "text"),
        _ => "max(s.id)".to_string(),
    };
    let filter = Tree::optional(vec![format!(" WHERE s.id <= {outer}").into()]);
    Tree::expression(vec![format!("(SELECT {value} FROM {} AS s", table.name).into(), filter.into(), ")".into()])
}

fn plain(e: &mut Expressions<'_>, tables: &[Table]) -> Query {
    let (from, aliases) = from(e, tables);
    let items = (0..e.rng.random_range(1..4)).map(|_| item(e, tables)).collect();
    let mut parts: Vec<Part> = vec!["SELECT ".into(), Tree::list(items).into(), from.into()];
    if !e.one_in(3) {
        parts.push(Tree::optional(vec![" WHERE ".into(), filter(e, tables).into()]).into());
    }
    let is_ordered = e.one_in(2);
    if is_ordered {
        parts.push(order(e, &aliases).into());
        if e.one_in(2) {
            parts.push(Tree::optional(vec![format!(" LIMIT {}", e.rng.random_range(0..9)).into()]).into());
        }
        if e.one_in(4) {
            parts.push(Tree::optional(vec![format!(" OFFSET {}", e.rng.random_range(0..5)).into()]).into());
        }
    }
    Query { tree: Tree::fixed(parts), is_ordered }
}

/// ORDER BY some column and all keys.
fn order(e: &mut Expressions<'_>, aliases: &[String]) -> Tree {
    let sortable: Vec<String> = e
        .columns
        .iter()
        .filter(|c| GROUPABLE.contains(&c.of) || c.of == oids::FLOAT8)
        .map(|c| c.name.clone())
        .collect();
    let first = sortable[e.rng.random_range(0..sortable.len())].clone();
    let direction = e.choose(&["", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST"]);
    let first = Tree::optional(vec![format!("{first}{direction}, ").into()]);
    let keys: Vec<String> = aliases.iter().map(|alias| format!("{alias}.id")).collect();
    Tree::fixed(vec![" ORDER BY ".into(), first.into(), keys.join(", ").into()])
}

/// GROUP BY with aggregates and HAVING.
fn grouped(e: &mut Expressions<'_>, tables: &[Table]) -> Tree {
    let (from, aliases) = from(e, tables);
    let groupable: Vec<String> =
        e.columns.iter().filter(|c| GROUPABLE.contains(&c.of)).map(|c| c.name.clone()).collect();
    let keys: Vec<Tree> = (0..e.rng.random_range(0..3))
        .map(|_| Tree::atom(groupable[e.rng.random_range(0..groupable.len())].clone()))
        .collect();
    let order: Vec<String> = aliases.iter().map(|alias| format!("{alias}.id")).collect();
    let aggregates = (0..e.rng.random_range(1..3)).map(|_| ordered_aggregate(e, &order.join(", ")));
    let items: Vec<Tree> = keys.iter().cloned().chain(aggregates.collect::<Vec<_>>()).collect();
    let mut parts: Vec<Part> = vec!["SELECT ".into(), Tree::list(items).into(), from.into()];
    if e.one_in(2) {
        parts.push(Tree::optional(vec![" WHERE ".into(), filter(e, tables).into()]).into());
    }
    if !keys.is_empty() {
        parts.extend([" GROUP BY ".into(), Tree::list(keys).into()]);
    }
    if e.one_in(4) {
        parts.push(Tree::optional(vec![format!(" HAVING count(*) > {}", e.rng.random_range(0..4)).into()]).into());
    }
    Tree::fixed(parts)
}

/// An aggregate whose result does not depend on the order of the rows.
fn ordered_aggregate(e: &mut Expressions<'_>, order: &str) -> Tree {
    let call = select::aggregate(e);
    let (text, parameters) = call.render();
    let has_own_order = text.contains("ORDER BY") || text.contains("DISTINCT") || text.contains("FILTER");
    if text == "count(*)" || has_own_order || !parameters.is_empty() || !text.ends_with(')') {
        return Tree::atom("count(*)");
    }
    let inner = &text[..text.len() - 1];
    Tree::expression(vec![
        inner.to_string().into(),
        Tree::optional(vec![format!(" ORDER BY {order}").into()]).into(),
        ")".into(),
    ])
}

/// DISTINCT of columns, or DISTINCT ON with an order.
fn distinct(e: &mut Expressions<'_>, tables: &[Table]) -> Query {
    let (from, aliases) = from(e, tables);
    let groupable: Vec<String> =
        e.columns.iter().filter(|c| GROUPABLE.contains(&c.of)).map(|c| c.name.clone()).collect();
    let pick = |e: &mut Expressions<'_>| groupable[e.rng.random_range(0..groupable.len())].clone();
    let filter = Tree::optional(vec![" WHERE ".into(), filter(e, tables).into()]);
    if e.one_in(2) {
        let items: Vec<Tree> = (0..e.rng.random_range(1..3)).map(|_| Tree::atom(pick(e))).collect();
        let tree = Tree::fixed(vec!["SELECT DISTINCT ".into(), Tree::list(items).into(), from.into(), filter.into()]);
        return Query { tree, is_ordered: false };
    }
    let (key, other) = (pick(e), item(e, tables));
    let keys: Vec<String> = aliases.iter().map(|alias| format!("{alias}.id")).collect();
    let head = format!("SELECT DISTINCT ON ({key}) ");
    let order = format!(" ORDER BY {key}, {}", keys.join(", "));
    let tree = Tree::fixed(vec![head.into(), Tree::list(vec![other]).into(), from.into(), filter.into(), order.into()]);
    Query { tree, is_ordered: true }
}

/// A query of columns of these types.
fn select_of(e: &mut Expressions<'_>, tables: &[Table], types: &[TypeOid]) -> Tree {
    let table = &tables[e.rng.random_range(0..tables.len())];
    e.columns = table.columns.iter().map(|c| Column { name: c.name.clone(), of: c.of }).collect();
    let items = types.iter().map(|of| match e.columns.iter().find(|column| column.of == *of) {
        Some(column) => Tree::atom(column.name.clone()),
        None => Tree::atom(format!("NULL::{}", e.catalog.name(*of))),
    });
    let items: Vec<Tree> = items.collect();
    let filter = Tree::optional(vec![" WHERE ".into(), filter(e, tables).into()]);
    Tree::fixed(vec!["SELECT ".into(), Tree::list(items).into(), format!(" FROM {}", table.name).into(), filter.into()])
}

fn set_operation(e: &mut Expressions<'_>, tables: &[Table]) -> Query {
    let types: Vec<TypeOid> = (0..e.rng.random_range(1..3)).map(|_| e.choose(&GROUPABLE)).collect();
    let one = select_of(e, tables, &types);
    // Sometimes of other types: a common one is found, or none.
    let others: Vec<TypeOid> = types.iter().map(|of| if e.one_in(5) { e.choose(&GROUPABLE) } else { *of }).collect();
    let other = select_of(e, tables, &others);
    let word = e.choose(&[" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " EXCEPT ALL ", " INTERSECT ALL "]);
    Query { tree: Tree::fixed(vec![one.into(), word.into(), other.into()]), is_ordered: false }
}

fn with(e: &mut Expressions<'_>, tables: &[Table]) -> Query {
    if e.one_in(3) {
        let (last, step) = (e.rng.random_range(1..8), e.rng.random_range(1..3));
        let word = e.choose(&["UNION ALL", "UNION"]);
        let of = e.columns.clone();
        e.columns = vec![Column { name: "n".to_string(), of: oids::INT4 }];
        let (goal, depth) = (e.choose(&[oids::INT4, oids::TEXT, oids::NUMERIC]), 2);
        let item = e.of(goal, depth);
        e.columns = of;
        let head =
            format!("WITH RECURSIVE r(n) AS (SELECT 1 {word} SELECT n + {step} FROM r WHERE n < {last}) SELECT ");
        let items = Tree::list(vec![Tree::atom("n"), item]);
        return Query {
            tree: Tree::fixed(vec![head.into(), items.into(), " FROM r ORDER BY n".into()]),
            is_ordered: true,
        };
    }
    let inner = plain(e, tables);
    e.columns.clear();
    let outer = &tables[e.rng.random_range(0..tables.len())];
    let text = format!(") SELECT count(*), (SELECT count(*) FROM {}) FROM w AS one, w AS two", outer.name);
    let materialized = e.choose(&["", "MATERIALIZED ", "NOT MATERIALIZED "]);
    Query {
        tree: Tree::fixed(vec![format!("WITH w AS {materialized}(").into(), inner.tree.into(), text.into()]),
        is_ordered: true,
    }
}
