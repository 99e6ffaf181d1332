//! Comments: `pg_description`, `pg_shdescription`, and the functions that look one up. Those on types and schemas of
//! the system are PostgreSQL's.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::env::{SystemEnv, int, maybe, number, oid, rows_of, text, words};
use super::producer::Producer;
use super::relations;
use crate::catalog::{Catalog, Part};
use crate::object::{Object, ObjectId};
use pgtypes::{Datum, Oid};

const PG_CLASS: u32 = 1259;
const PG_TYPE: u32 = 1247;
const PG_DATABASE: u32 = 1262;
const PG_CONSTRAINT: u32 = 2606;
const PG_NAMESPACE: u32 = 2615;

pub(super) static PRODUCERS: &[Producer] = &[
    Producer {
        relation: "pg_description",
        constants: &[],
        columns: &["objoid", "classoid", "objsubid", "description"],
        rows: |env| {
            let of_database = comments(env.catalog()).into_iter().filter(|comment| comment.class != PG_DATABASE);
            let row = |comment: Comment| {
                vec![oid(Oid(comment.object)), oid(Oid(comment.class)), int(comment.column), text(&comment.text)]
            };
            rows_of(of_database.map(row).collect())
        },
    },
    Producer {
        relation: "pg_shdescription",
        constants: &[],
        columns: &["objoid", "classoid", "description"],
        rows: |env| {
            let shared = comments(env.catalog()).into_iter().filter(|comment| comment.class == PG_DATABASE);
            let row = |comment: Comment| vec![oid(Oid(comment.object)), oid(Oid(comment.class)), text(&comment.text)];
            rows_of(shared.map(row).collect())
        },
    },
];

/// A comment as the system catalog has it.
struct Comment {
    class: u32,
    object: u32,
    column: u16,
    text: String,
}

/// The comments that PostgreSQL has on what it brings along, by catalog and object.
static OF_SYSTEM: LazyLock<HashMap<(u32, u32), &'static str>> = LazyLock::new(|| {
    let lines = include_str!("data/descriptions.txt").lines();
    let read = |line: &'static str| {
        let (class, rest) = line.split_once(' ')?;
        let (object, text) = rest.split_once(' ')?;
        Some(((class.parse().ok()?, object.parse().ok()?), text))
    };
    lines.filter_map(read).collect()
});

/// All comments in reach: those on objects of the session's database, on databases, and on the system's own objects.
fn comments(catalog: &Catalog) -> Vec<Comment> {
    let mut all = Vec::new();
    for (object, texts) in catalog.all_comments() {
        for (part, text) in texts {
            let Some(class) = class_of(catalog, object, *part) else { continue };
            let column = match part {
                Part::Column(column) => column.0,
                Part::Whole | Part::Constraint => 0,
            };
            all.push(Comment { class, object: object.0, column, text: text.clone() });
        }
    }
    let own: HashSet<(u32, u32)> = all.iter().map(|comment| (comment.class, comment.object)).collect();
    let of_system = OF_SYSTEM.iter().filter(|(place, _)| !own.contains(place));
    all.extend(of_system.map(|((class, object), text)| Comment {
        class: *class,
        object: *object,
        column: 0,
        text: (*text).to_owned(),
    }));
    all.sort_unstable_by_key(|comment| (comment.class, comment.object, comment.column));
    all
}

/// The catalog that has an object; `None` if it is in another database.
fn class_of(catalog: &Catalog, object: ObjectId, part: Part) -> Option<u32> {
    match catalog.object(object).map(|object| &**object) {
        Some(Object::Database(_)) => return Some(PG_DATABASE),
        Some(Object::Schema(schema)) => {
            return (schema.database == catalog.sight().database).then_some(PG_NAMESPACE);
        }
        Some(Object::View(_) | Object::Sequence(_)) => return catalog.name_of_relation(object.0).map(|_| PG_CLASS),
        Some(other) => {
            let schema = other.schema().and_then(|schema| catalog.schema_by_id(schema));
            return schema.filter(|schema| schema.database == catalog.sight().database).map(|_| PG_TYPE);
        }
        None => {}
    }
    if part == Part::Constraint {
        return catalog.table_of_part(object.0).map(|_| PG_CONSTRAINT);
    }
    match catalog.name_of_relation(object.0) {
        Some(_) => Some(PG_CLASS),
        None => {
            let is_constraint =
                catalog.table_of_part(object.0).is_some() || catalog.check_of_domain(object.0).is_some();
            is_constraint.then_some(PG_CONSTRAINT)
        }
    }
}

/// `obj_description(object, catalog)` and `shobj_description`, and the older form without a catalog.
pub(super) fn object_comment(args: &[&Datum], env: &SystemEnv<'_>) -> Datum {
    let (catalog, object) = (env.catalog(), number(args, 0).0);
    let class = match args {
        [_, Datum::Text(_)] => match relations::find(None, words(args, 1)) {
            Some(relation) => Some(relation.table.id.0),
            None => return Datum::Null,
        },
        _ => None,
    };
    let own = |part| {
        let text = catalog.comments(ObjectId(object))?.get(&part)?;
        let found = class_of(catalog, ObjectId(object), part)?;
        class.is_none_or(|class| class == found).then_some(text.as_str())
    };
    let of_system = || match class {
        Some(class) => OF_SYSTEM.get(&(class, object)).copied(),
        None => OF_SYSTEM.iter().find(|((_, known), _)| *known == object).map(|(_, text)| *text),
    };
    maybe(own(Part::Whole).or_else(|| own(Part::Constraint)).or_else(of_system))
}

/// `col_description(relation, column)`
pub(super) fn column_comment(args: &[&Datum], env: &SystemEnv<'_>) -> Datum {
    let (relation, column) = (number(args, 0).0, number(args, 1).0);
    let column = u16::try_from(column).ok().filter(|column| *column > 0);
    let part = column.map(|column| Part::Column(crate::table::ColumnId(column)));
    let comments = env.catalog().comments(ObjectId(relation));
    maybe(part.and_then(|part| comments?.get(&part).cloned()))
}
