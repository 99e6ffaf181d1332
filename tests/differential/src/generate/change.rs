//! INSERT, UPDATE and DELETE with what belongs to them, transactions with savepoints, and the rows afterwards.

use rand::Rng;

use crate::case::Statement;
use crate::generate::expression::{Column, Expressions};
use crate::generate::schema::{self, Table};
use crate::tree::{Part, Tree};
use crate::wire::Mode;

/// Changes of one table, and its rows after them.
pub fn changes(e: &mut Expressions<'_>, tables: &[Table], mode: Mode) -> Vec<Statement> {
    let table = &tables[e.rng.random_range(0..tables.len())];
    let mut statements = Vec::new();
    let with_savepoints = e.one_in(2);
    for at in 0..e.rng.random_range(1..4) {
        if with_savepoints {
            statements.push(command(format!("SAVEPOINT s{at}")));
        }
        let tree = match e.rng.random_range(0..7) {
            0..3 => insert(e, tables, table),
            3..5 => update(e, tables, table),
            _ => delete(e, tables, table),
        };
        statements.push(Statement { tree, mode, is_ordered: false });
        if with_savepoints && !e.one_in(3) {
            let end = e.choose(&["ROLLBACK TO SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO"]);
            statements.push(command(format!("{end} s{at}")));
        }
    }
    let rows = Tree::text(format!("SELECT * FROM {} ORDER BY id", table.name));
    statements.push(Statement { tree: rows, mode, is_ordered: true });
    statements
}

fn command(text: String) -> Statement {
    Statement { tree: Tree::text(text), mode: Mode::Simple, is_ordered: true }
}

fn in_reach(e: &mut Expressions<'_>, table: &Table, alias: &str) {
    e.columns.extend(table.columns.iter().map(|c| Column { name: format!("{alias}{}", c.name), of: c.of }));
}

/// RETURNING of one expression, sometimes.
fn returning(e: &mut Expressions<'_>) -> Tree {
    match e.rng.random_range(0..4) {
        0 => Tree::optional(vec![" RETURNING *".into()]),
        1 => {
            let of = e.columns[e.rng.random_range(0..e.columns.len())].of;
            Tree::optional(vec![" RETURNING ".into(), e.of(of, 1).into()])
        }
        _ => Tree::fixed(Vec::new()),
    }
}

fn insert(e: &mut Expressions<'_>, tables: &[Table], table: &Table) -> Tree {
    e.columns.clear();
    let mut parts: Vec<Part> = vec![format!("INSERT INTO {} AS t ", table.name).into()];
    if e.one_in(4) {
        let source = &tables[e.rng.random_range(0..tables.len())];
        in_reach(e, source, "x.");
        let items: Vec<Tree> = table.columns[1..].iter().map(|column| e.of(column.of, 1)).collect();
        let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
        let offset = e.rng.random_range(0..60);
        parts.push(format!("({}) SELECT x.id + {offset}, ", names.join(", ")).into());
        parts.extend([Tree::fixed(comma(items)).into(), format!(" FROM {} AS x WHERE x.id < 8", source.name).into()]);
    } else {
        let rows = (0..e.rng.random_range(1..4)).map(|_| row(e, table));
        let rows: Vec<Tree> = rows.collect();
        parts.extend(["VALUES ".into(), Tree::list(rows).into()]);
    }
    e.columns.clear();
    in_reach(e, table, "t.");
    if e.one_in(2) {
        let clause = if e.one_in(2) { " ON CONFLICT DO NOTHING" } else { " ON CONFLICT (id) DO NOTHING" };
        if e.one_in(2) {
            in_reach(e, table, "excluded.");
            let (name, value) = assignment(e, table);
            let set = Tree::fixed(vec![format!(" ON CONFLICT (id) DO UPDATE SET {name} = ").into(), value.into()]);
            let filter = Tree::optional(vec![" WHERE t.id < 20".into()]);
            parts.extend([Tree::optional(vec![set.into(), filter.into()]).into()]);
            e.columns.retain(|column| !column.name.starts_with("excluded"));
        } else {
            parts.push(Tree::optional(vec![clause.into()]).into());
        }
    }
    parts.push(returning(e).into());
    Tree::fixed(parts)
}

fn comma(items: Vec<Tree>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            parts.push(", ".into());
        }
        parts.push(item.into());
    }
    parts
}

fn row(e: &mut Expressions<'_>, table: &Table) -> Tree {
    let id = e.rng.random_range(1..60).to_string();
    let mut values = vec![if e.one_in(20) { Tree::atom("NULL") } else { Tree::text(id) }];
    for column in &table.columns[1..] {
        values.push(match e.rng.random_range(0..8) {
            0 => Tree::text("DEFAULT"),
            1 => e.argument(column.of, 1),
            _ => Tree::atom(schema::value(e.rng, e.catalog, column)),
        });
    }
    let mut parts: Vec<Part> = vec!["(".into()];
    parts.extend(comma(values));
    parts.push(")".into());
    Tree::fixed(parts)
}

/// A column and a value for it.
fn assignment(e: &mut Expressions<'_>, table: &Table) -> (String, Tree) {
    let column = table.columns[e.rng.random_range(1..table.columns.len())].clone();
    let value = if e.one_in(8) { Tree::text("DEFAULT") } else { e.argument(column.of, 2) };
    (column.name, value)
}

fn update(e: &mut Expressions<'_>, tables: &[Table], table: &Table) -> Tree {
    e.columns.clear();
    in_reach(e, table, "t.");
    let other = &tables[e.rng.random_range(0..tables.len())];
    let joined = e.one_in(3);
    if joined {
        in_reach(e, other, "o.");
    }
    let (name, value) = assignment(e, table);
    let mut parts: Vec<Part> = vec![format!("UPDATE {} AS t SET {name} = ", table.name).into(), value.into()];
    if e.one_in(6) {
        parts.push(Tree::optional(vec![format!(", id = t.id + {}", e.rng.random_range(0..50)).into()]).into());
    }
    if joined {
        parts.push(format!(" FROM {} AS o WHERE o.id = t.id", other.name).into());
    } else {
        parts.push(" WHERE t.id < 12".into());
    }
    parts.push(Tree::optional(vec![" AND ".into(), e.condition(1).into()]).into());
    parts.push(returning(e).into());
    Tree::fixed(parts)
}

fn delete(e: &mut Expressions<'_>, tables: &[Table], table: &Table) -> Tree {
    e.columns.clear();
    in_reach(e, table, "t.");
    let mut parts: Vec<Part> = vec![format!("DELETE FROM {} AS t", table.name).into()];
    if e.one_in(3) {
        let other = &tables[e.rng.random_range(0..tables.len())];
        in_reach(e, other, "o.");
        parts.push(format!(" USING {} AS o WHERE o.id = t.id", other.name).into());
    } else {
        parts.push(" WHERE t.id > 5".into());
    }
    parts.push(Tree::optional(vec![" AND ".into(), e.condition(1).into()]).into());
    parts.push(returning(e).into());
    Tree::fixed(parts)
}
