//! Tests of [`super`]: shares of conditions, beside what the values say.

use super::*;
use crate::catalog::CommonValue;
use crate::object::FIRST_SCHEMA;
use crate::table::{Column, ColumnId, IndexId, StorageId, TableId};
use pgtypes::SqlType;

/// A table of 10,000 rows: a key, a column with the values 0 to 999 of which 0 has a fifth of the rows and NULL
/// another one, a text of which half are `x`, and a column that is not analyzed.
fn table() -> Table {
    let column = |id, name: &str, ty| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        ty,
        domain: None,
        not_null: id == 1,
        default: None,
        generated: None,
        identity: None,
    };
    Table {
        id: TableId(16_384),
        schema: FIRST_SCHEMA,
        storage: StorageId(16_384),
        name: "t".to_owned(),
        columns: vec![
            column(1, "id", SqlType::INT4),
            column(2, "v", SqlType::INT4),
            column(3, "s", SqlType::TEXT),
            column(4, "new", SqlType::INT4),
        ],
        primary_key: vec![0],
        key_name: "t_pkey".to_owned(),
        key_id: IndexId(16_385),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(4),
    }
}

fn statistics() -> TableStatistics {
    let column = |id, ty, null_fraction, distinct, common: Vec<(Datum, f64)>, histogram: Vec<Datum>| ColumnStatistics {
        column: ColumnId(id),
        ty,
        null_fraction,
        width: 4,
        distinct,
        common: common.into_iter().map(|(value, frequency)| CommonValue { value, frequency }).collect(),
        histogram,
    };
    let ints = |step: i64, last: i64| (0..=last / step).map(|at| Datum::Int(at * step)).collect::<Vec<_>>();
    let texts = ["a", "c", "e", "g"].map(Datum::text).to_vec();
    TableStatistics {
        storage: StorageId(16_384),
        rows: 10_000,
        columns: vec![
            column(1, SqlType::INT4, 0.0, -1.0, Vec::new(), ints(100, 10_000)),
            column(2, SqlType::INT4, 0.2, 1000.0, vec![(Datum::Int(0), 0.2)], ints(10, 1000)),
            column(3, SqlType::TEXT, 0.0, 501.0, vec![(Datum::text("x"), 0.5)], texts),
        ],
    }
}

/// The rows that satisfy conditions.
fn rows(conditions: &[Expr]) -> f64 {
    let (table, statistics) = (table(), statistics());
    Rows::of(&table, &statistics).expect("analyzed").satisfying(conditions).round()
}

fn compare(op: CompareOp, column: usize, value: Expr) -> Expr {
    Expr::Compare { op, left: Box::new(Expr::Column(column)), right: Box::new(value), ty: SqlType::INT4 }
}

fn int(value: i64) -> Expr {
    Expr::Const(Datum::Int(value))
}

#[test]
fn equality_is_looked_up_among_common_values() {
    let equal = |column, value| rows(&[compare(CompareOp::Eq, column, value)]);
    assert_eq!(equal(0, int(7)), 1.0, "a key");
    assert_eq!(equal(0, Expr::Param(0)), 1.0);
    assert_eq!(equal(1, int(0)), 2000.0, "a common value");
    assert_eq!(equal(1, int(7)), 6.0, "any other: 6000 rows with 999 values");
    assert_eq!(equal(1, Expr::Param(0)), 8.0, "the average of the 8000 that are not NULL");
    assert_eq!(equal(1, Expr::Const(Datum::Null)), 0.0);
    assert_eq!(equal(2, Expr::Const(Datum::text("x"))), 5000.0);
    assert_eq!(equal(3, int(1)), 50.0, "not analyzed");
    let (left, right) = (Box::new(int(0)), Box::new(Expr::Column(1)));
    let flipped = Expr::Compare { op: CompareOp::Eq, left, right, ty: SqlType::INT4 };
    assert_eq!(rows(&[flipped]), 2000.0);
    assert_eq!(rows(&[compare(CompareOp::NotEq, 1, int(0))]), 6000.0, "NULL is neither");
}

#[test]
fn ranges_are_read_off_the_histogram() {
    let one = |op, column, value| rows(&[compare(op, column, value)]);
    assert_eq!(one(CompareOp::Less, 0, int(2500)), 2500.0);
    assert_eq!(one(CompareOp::Greater, 0, int(2500)), 7500.0);
    assert_eq!(one(CompareOp::Greater, 0, int(99_999)), 1.0, "rows may have come since");
    assert_eq!(one(CompareOp::Less, 0, int(-5)), 1.0);
    // Half of the 6000 that are neither NULL nor common, and the common value.
    assert_eq!(one(CompareOp::Less, 1, int(500)), 5000.0);
    assert_eq!(one(CompareOp::Greater, 1, int(500)), 3000.0);
    let between = [compare(CompareOp::GreaterEq, 0, int(100)), compare(CompareOp::Less, 0, int(300))];
    assert_eq!(rows(&between), 200.0, "both bounds together");
    let unknown = [compare(CompareOp::GreaterEq, 0, Expr::Param(0)), compare(CompareOp::Less, 0, Expr::Param(1))];
    assert_eq!(rows(&unknown), 50.0);
    assert_eq!(one(CompareOp::Less, 0, Expr::Param(0)), 3333.0);
    // The half that is not `x`, divided into three parts: `d` is in the middle of the second one.
    assert_eq!(one(CompareOp::Less, 2, Expr::Const(Datum::text("d"))), 2500.0);
}

#[test]
fn conditions_are_combined() {
    let zero = || compare(CompareOp::Eq, 1, int(0));
    let x = || compare(CompareOp::Eq, 2, Expr::Const(Datum::text("x")));
    assert_eq!(rows(&[]), 10_000.0);
    assert_eq!(rows(&[zero(), x()]), 1000.0);
    assert_eq!(rows(&[Expr::And(vec![zero(), x()])]), 1000.0);
    assert_eq!(rows(&[Expr::Or(vec![zero(), x()])]), 6000.0);
    assert_eq!(rows(&[Expr::Not(Box::new(x()))]), 5000.0);
    let is_null = |column, negated| rows(&[Expr::IsNull { expr: Box::new(Expr::Column(column)), negated }]);
    assert_eq!((is_null(1, false), is_null(1, true)), (2000.0, 8000.0));
    assert_eq!((is_null(0, false), is_null(0, true)), (0.0, 10_000.0), "NOT NULL");
    let list = |negated| {
        let values = vec![Datum::Int(0), Datum::Int(5)];
        rows(&[Expr::InSet { expr: Box::new(Expr::Column(1)), values, with_null: false, negated, ty: SqlType::INT4 }])
    };
    assert_eq!((list(false), list(true)), (2006.0, 7994.0));
    let params = vec![Expr::Param(0), Expr::Param(1)];
    assert_eq!(
        rows(&[Expr::InList { expr: Box::new(Expr::Column(0)), list: params, negated: false, ty: SqlType::INT4 }]),
        2.0
    );
    assert_eq!(rows(&[Expr::Const(Datum::Bool(false))]), 0.0);
}

#[test]
fn a_table_that_was_emptied_is_not_known() {
    let (table, statistics) = (table(), statistics());
    let other = Table { storage: StorageId(20_000), ..table.clone() };
    assert!(Rows::of(&other, &statistics).is_none());
    let retyped = TableStatistics {
        columns: statistics
            .columns
            .iter()
            .cloned()
            .map(|column| ColumnStatistics { ty: SqlType::INT8, ..column })
            .collect(),
        ..statistics
    };
    let rows = Rows::of(&table, &retyped).expect("analyzed");
    assert_eq!(rows.satisfying(&[compare(CompareOp::Eq, 1, int(0))]), 50.0, "the column has another type now");
}
