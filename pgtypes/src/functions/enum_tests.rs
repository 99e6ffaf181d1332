//! Functions and aggregates of an enum that a catalog knows.

use std::borrow::Cow;

use super::*;
use crate::functions::{Run, find};
use crate::oid::Oid;
use crate::row::{IoEnv, Names};
use crate::timestamp::{Now, TimeZone};
use crate::wire;

const MOOD: T = T { oid: Oid(16_386), typmod: -1 };
const EMPTY: T = T { oid: Oid(16_388), typmod: -1 };

struct Catalog(Vec<Label>);

impl Names for Catalog {
    fn labels(&self, ty: Oid) -> Option<&[Label]> {
        match () {
            () if ty == MOOD.oid => Some(&self.0),
            () if ty == EMPTY.oid => Some(&[]),
            () => None,
        }
    }

    fn find(&self, _: T, _: &str) -> Result<Oid, ValueError> {
        Err(ValueError::internal("no names"))
    }

    fn show(&self, _: T, oid: Oid) -> Option<String> {
        (oid == EMPTY.oid).then(|| "empty".to_owned())
    }
}

fn catalog() -> Catalog {
    let labels = [(-5, "sad"), (1, "ok"), (7, "happy")];
    Catalog(labels.map(|(order, name)| Label { order, name: name.into() }).into())
}

/// The result of a function, or of an aggregate over rows with one value each.
fn result(oid: u32, ty: T, arguments: &[&str]) -> String {
    let (zone, catalog) = (TimeZone::find("UTC").unwrap(), catalog());
    let env = IoEnv { names: &catalog, ..IoEnv::new(&zone, Now(0)) };
    let row = find(Oid(oid)).unwrap();
    let result = if row.result == T::ANYARRAY { ty.array().unwrap() } else { ty };
    let value = |text: &&str| match *text {
        "" => Cow::Owned(Datum::Null),
        text => Cow::Owned(wire::parse(ty, text, &env).unwrap()),
    };
    let values: Vec<Cow<'_, Datum>> = arguments.iter().map(value).collect();
    let types = vec![ty; values.len()];
    let args = Args::new(&values, &types, result, &env);
    let outcome = match row.run {
        Run::Scalar(run) => run(&args),
        Run::Aggregate(start) => {
            let mut state = start(&[ty], result);
            for value in values.chunks(1) {
                state.add(&Args::new(value, &[ty], result, &env)).unwrap();
            }
            state.finish(&Args::new(&[], &[], result, &env))
        }
        _ => panic!("{}", row.name),
    };
    match outcome {
        Ok(value) => wire::show(&value, result, &env),
        Err(error) => format!("{} {}", error.code().0, error.message()),
    }
}

#[test]
fn the_labels_are_those_of_the_type() {
    assert_eq!(result(3528, MOOD, &[""]), "sad");
    assert_eq!(result(3529, MOOD, &["sad"]), "happy");
    assert_eq!(result(3531, MOOD, &[""]), "{sad,ok,happy}");
    assert_eq!(result(3530, MOOD, &["ok", ""]), "{ok,happy}");
    assert_eq!(result(3530, MOOD, &["", "ok"]), "{sad,ok}");
    assert_eq!(result(3530, MOOD, &["", ""]), "{sad,ok,happy}");
    assert_eq!(result(3530, MOOD, &["happy", "sad"]), "{}");
    assert_eq!(result(3528, EMPTY, &[""]), "55000 enum empty contains no values");
    assert_eq!(result(3531, EMPTY, &[""]), "{}");
}

#[test]
fn the_least_and_the_greatest_are_by_the_order_of_labels() {
    assert_eq!(result(3526, MOOD, &["happy", "sad", "ok"]), "happy");
    assert_eq!(result(3527, MOOD, &["happy", "sad", "ok"]), "sad");
    assert_eq!(result(2335, MOOD, &["ok", "sad"]), "{ok,sad}");
}
