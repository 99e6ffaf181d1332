//! Binding without a cluster: parameter types, errors, access paths.

use std::sync::Arc;

use super::*;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::parse;
use crate::table::{Column, ColumnId, IndexId, StorageId, Table, TableId};
use pgtypes::{Datum, SqlType};

fn catalog() -> Catalog {
    let column = |id, name: &str, ty, not_null| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        ty,
        not_null,
        default: None,
        generated: None,
        identity: None,
        domain: None,
    };
    Catalog::new(
        3,
        [Table {
            schema: crate::object::FIRST_SCHEMA,
            id: TableId(16_384),
            storage: StorageId(16_384),
            name: "t".to_owned(),
            columns: vec![
                column(1, "a", SqlType::INT4, true),
                column(2, "b", SqlType::TEXT, true),
                column(3, "n", SqlType::INT8, false),
                column(4, "f", SqlType::FLOAT8, false),
                column(5, "at", SqlType::TIMESTAMPTZ, false),
                column(6, "v", SqlType::varchar(5), false),
                column(7, "raw", SqlType::BYTEA, false),
                column(8, "ok", SqlType::BOOL, false),
            ],
            primary_key: vec![0, 1],
            key_name: "t_pkey".to_owned(),
            key_id: IndexId(16_999),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            last_column: ColumnId(8),
        }],
    )
}

fn plan(sql: &str) -> Result<Arc<Plan>, SqlError> {
    bind(&parse(sql).unwrap()[0], Some(&[]), &catalog())
}

fn params(sql: &str) -> Vec<&'static str> {
    plan(sql).unwrap().params.iter().map(|ty| ty.row().name).collect()
}

fn error(sql: &str) -> (String, Option<u32>) {
    let error = plan(sql).unwrap_err();
    (format!("{} {}", error.code.0, error.message), error.position)
}

fn explain(sql: &str) -> Vec<String> {
    match &plan(&format!("explain {sql}")).unwrap().body {
        Body::Explain(lines) => lines.iter().map(|line| line.trim().to_owned()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_take_the_type_of_their_context() {
    assert_eq!(params("select * from t where a = $1 and b = $2"), ["int4", "text"]);
    assert_eq!(params("update t set n = n + $1 where a = $2"), ["int8", "int4"]);
    assert_eq!(params("update t set v = $1, raw = $2, ok = $3, at = $4"), ["varchar", "bytea", "bool", "timestamptz"]);
    assert_eq!(params("insert into t (a, b, f) values ($1, $2, $3)"), ["int4", "text", "float8"]);
    assert_eq!(params("insert into t (a, b) select $1, $2"), ["int4", "text"]);
    assert_eq!(params("select $1"), ["text"]);
    assert_eq!(params("select * from t limit $1 offset $2"), ["int8", "int8"]);
    assert_eq!(params("select * from t where n between $1 and $2 or a in ($3, $4)"), ["int8", "int8", "int4", "int4"]);
    assert_eq!(params("select coalesce($1, 1), $2::bool, $3 || 'x'"), ["int4", "bool", "text"]);
    assert_eq!(params("select * from t where a = $1 or $1 is null"), ["int4"]);
    let untyped = ("42P08 could not determine data type of parameter $1".into(), Some(23));
    assert_eq!(error("select * from t where $1 is null or a = $1"), untyped);
    assert_eq!(params("select * from t where (a, b) in (($1, $2), ($3, $4))"), ["int4", "text", "int4", "text"]);
}

#[test]
fn declared_types_are_kept() {
    let statement = &parse("select * from t where a = $1").unwrap()[0];
    let bound = bind(statement, Some(&[SqlType::INT8]), &catalog()).unwrap();
    assert_eq!(bound.params, [SqlType::INT8]);
    assert_eq!(error("select $2::int"), ("42P18 could not determine data type of parameter $1".into(), None));
    assert_eq!(error("select $1 is null"), ("42P18 could not determine data type of parameter $1".into(), None));
}

#[test]
fn access_paths() {
    let first = |sql: &str| explain(sql).into_iter().take(2).collect::<Vec<_>>();
    assert_eq!(first("select * from t where b = 'x' and a = 1"), ["Point Get on t", "Key: ((a, b) = (1, 'x'::text))"]);
    assert_eq!(first("select * from t where a = 1"), ["Range Scan on t", "Key: (a = 1)"]);
    assert_eq!(first("select * from t where 5 <= a and a < 9"), ["Range Scan on t", "Key: ((a >= 5) AND (a < 9))"]);
    assert_eq!(first("select * from t where b = 'x'"), ["Full Scan on t", "Filter: (b = 'x'::text)"]);
    assert_eq!(first("select * from t where (a, b) in ((1, 'x'), (2, 'y'))")[0], "Point Get on t");
    assert_eq!(
        first("select * from t where a in (1, 2) and b in ('x', 'y')")[1],
        "Key: ((a, b) IN ((1, 'x'::text), (1, 'y'::text), (2, 'x'::text), (2, 'y'::text)))"
    );
    assert_eq!(first("select * from t where a = n"), ["Full Scan on t", "Filter: (a = n)"]);
    assert_eq!(first("select * from t where a = 1 order by b desc"), ["Range Scan Backward on t", "Key: (a = 1)"]);
    assert_eq!(first("select * from t order by a, b"), ["Full Scan on t"]);
    assert_eq!(first("select * from t order by a, b desc")[0], "Sort");
    // The column becomes a numeric to be compared.
    assert_eq!(first("select * from t where a > 1.5"), ["Full Scan on t", "Filter: ((a)::numeric > 1.5)"]);
    assert_eq!(first("select * from t where a > f")[0], "Full Scan on t");
}

#[test]
fn errors_of_names_and_types() {
    assert_eq!(error("select 1 from from t"), ("42601 syntax error at or near \"from\"".into(), Some(15)));
    assert_eq!(error("select x from t"), ("42703 column \"x\" does not exist".into(), Some(8)));
    assert_eq!(error("select * from nope"), ("42P01 relation \"nope\" does not exist".into(), Some(15)));
    assert_eq!(error("select t.a from t x").0, "42P01 invalid reference to FROM-clause entry for table \"t\"");
    assert_eq!(error("select 1 + true"), ("42883 operator does not exist: integer + boolean".into(), Some(10)));
    assert_eq!(error("select a = b from t"), ("42883 operator does not exist: integer = text".into(), Some(10)));
    assert_eq!(
        error("select 1 where 2"),
        ("42804 argument of WHERE must be type boolean, not type integer".into(), Some(16))
    );
    assert_eq!(error("select a = 'x' from t"), ("22P02 invalid input syntax for type integer: \"x\"".into(), Some(12)));
    assert_eq!(
        error("select a, count(*) from t").0,
        "42803 column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function"
    );
    assert_eq!(
        error("select * from t where count(*) > 1"),
        ("42803 aggregate functions are not allowed in WHERE".into(), Some(23))
    );
    assert_eq!(error("select nope(1)"), ("42883 function nope(integer) does not exist".into(), Some(8)));
    assert_eq!(error("select 1::nope"), ("42704 type \"nope\" does not exist".into(), Some(11)));
    assert_eq!(error("select true::bytea"), ("42846 cannot cast type boolean to bytea".into(), Some(12)));
}

#[test]
fn unsupported_features_are_named() {
    for (sql, what) in [
        ("select a from t group by rollup (a)", "GROUPING SETS, CUBE and ROLLUP are"),
        (
            "select u.a from (select a from t) u for update",
            "row locks of a view, a sub-query or a system catalog here are",
        ),
        ("select * from (delete from t returning a) x", "a statement that changes rows here is"),
        ("create table x (a point)", "type point is"),
        ("create index i on t using hash (a)", "access method \"hash\" is"),
        ("alter table t disable trigger all", "this form of ALTER TABLE is"),
    ] {
        let (message, _) = error(sql);
        assert_eq!(message, format!("0A000 {what} not supported yet"));
    }
}

#[test]
fn long_chains_bind() {
    let sql = format!("select * from t where {}", vec!["a = 1"; 3000].join(" or "));
    assert!(plan(&sql).is_ok());
    let sql = format!("select {}", vec!["1"; 400].join(" + "));
    assert!(plan(&sql).is_ok());
    let sql = format!("select {}1{}", "(".repeat(45), ")".repeat(45));
    assert!(plan(&sql).is_ok());
}

/// Expressions within the parser's limits must be bound, printed, evaluated and freed on a worker thread's stack.
#[test]
fn the_deepest_expressions_do_not_overflow_the_stack() {
    let work = || {
        let half = format!("{})", " + a".repeat(450));
        for sql in [format!("select ((a{half}{half} from t"), format!("select a from t where ((a{half}{half} > 0")] {
            let bound = plan(&sql).unwrap();
            assert!(!explain(&sql).is_empty());
            let Body::Select(select) = &bound.body else { panic!("no query") };
            let expr = select.filter.as_ref().unwrap_or(&select.output[0]);
            let row = vec![Datum::Int(1); 8];
            let value = crate::expr::eval::eval(expr, &row, &env()).unwrap().into_owned();
            assert!([Datum::Int(901), Datum::Bool(true)].contains(&value), "{value:?}");
            assert_eq!(expr.clone(), *expr);
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

fn env() -> crate::expr::eval::Env<'static> {
    let zone = Box::leak(Box::new(pgtypes::TimeZone::utc()));
    crate::expr::eval::Env::of_params(&[], zone)
}

/// Values of two types had an order, which gave a wrong answer.
#[test]
fn a_comparison_of_two_types_is_an_internal_error() {
    use crate::expr::eval::eval;
    let (one, other) = (Expr::Const(Datum::Int(1)), Expr::Const(Datum::Float(1.0)));
    let (left, right) = (|| Box::new(one.clone()), || Box::new(other.clone()));
    let ty = SqlType::INT4;
    for expr in [
        Expr::Compare { op: crate::expr::CompareOp::Less, left: left(), right: right(), ty },
        Expr::Distinct { left: left(), right: right(), negated: false, ty },
        Expr::InList { expr: left(), list: vec![other.clone()], negated: false, ty },
        Expr::InSet { expr: left(), values: vec![Datum::Float(1.0)], with_null: false, negated: false, ty },
        Expr::Extreme { greatest: true, items: vec![one.clone(), other.clone()], ty: SqlType::INT4 },
    ] {
        assert_eq!(eval(&expr, &[], &env()).unwrap_err().code, SqlState::INTERNAL_ERROR, "{expr:?}");
    }
}

fn nodes(expr: &Expr) -> usize {
    1 + expr.children().into_iter().map(nodes).sum::<usize>()
}

/// Each level held two copies of the one below: 40 levels had 2^40 nodes.
#[test]
fn operands_used_twice_are_not_copied() {
    let nested = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(40), close.repeat(40));
    let texts = [
        nested("nullif(", "n", ", 1)"),
        nested("((", "a + a > 3", ") between false and true)"),
        nested("case (", "a + a", ") when 1 then 1 else 2 end"),
        nested("((", "a + a", ", 1) in ((1, 1), (2, 2)))::int::text::int"),
    ];
    for (at, text) in texts.iter().enumerate() {
        let bound = plan(&format!("select {text} from t")).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Body::Select(select) = &bound.body else { panic!("no query") };
        let count = nodes(&select.output[0]);
        assert!(count < 2000, "text {at} has {count} nodes");
    }
    let mut text = "a > 1".to_owned();
    for _ in 0..40 {
        text = format!("concat({text}) = 't'");
    }
    let bound = plan(&format!("select {text} from t")).unwrap();
    let Body::Select(select) = &bound.body else { panic!("no query") };
    assert!(nodes(&select.output[0]) < 2000);
}

/// Finding the position of a literal scanned the text from its start.
#[test]
fn many_literals_bind_in_linear_time() {
    let rows = vec!["(1, 'x', '2024-01-01 10:00')"; 60_000].join(", ");
    assert!(plan(&format!("insert into t (a, b, at) values {rows}")).is_ok());
}

/// Rows of VALUES were as wide as the table, however many columns were given.
#[test]
fn rows_to_insert_have_only_the_given_columns() {
    let bound = plan("insert into t (b, a) values ('x', 1), ('y', 2)").unwrap();
    let Body::Insert(insert) = &bound.body else { panic!("no INSERT") };
    let Source::Values(rows) = &insert.source.source else { panic!("no VALUES") };
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    let columns = insert.columns.as_ref().unwrap();
    assert_eq!(columns[..3], [Expr::Column(1), Expr::Column(0), Expr::Const(Datum::Null)]);
    let sql = format!("insert into t (a) values (1){}", ",(1)".repeat(300_000));
    assert_eq!(error(&sql).0, "54000 INSERT has 300001 rows, of at most 300000");
}

/// The value would stay in memory with every cached plan.
#[test]
fn large_constants_are_not_folded() {
    let output = |sql: &str| {
        let bound = plan(sql).unwrap();
        let Body::Select(select) = &bound.body else { panic!("no query") };
        select.output[0].clone()
    };
    assert!(matches!(output("select repeat('x', 100)"), Expr::Const(_)));
    assert!(matches!(output("select repeat('x', 10000)"), Expr::Call { .. }));
}

#[test]
fn long_lists_are_key_lookups_and_sorted_sets() {
    let list = |count: i32| (0..count).rev().map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let narrow = |sql: &str| {
        let column = |id, name: &str| Column {
            id: ColumnId(id),
            name: name.to_owned(),
            ty: SqlType::INT4,
            not_null: true,
            default: None,
            generated: None,
            identity: None,
            domain: None,
        };
        let table = Table {
            schema: crate::object::FIRST_SCHEMA,
            id: TableId(16_385),
            storage: StorageId(16_385),
            name: "k".to_owned(),
            columns: vec![column(1, "id"), column(2, "v")],
            primary_key: vec![0],
            key_name: "k_pkey".to_owned(),
            key_id: IndexId(16_999),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            last_column: ColumnId(2),
        };
        bind(&parse(sql).unwrap()[0], Some(&[]), &Catalog::new(1, [table])).unwrap()
    };
    for (count, points) in [(5000, true), (65_536, true), (65_537, false)] {
        let bound = narrow(&format!("select * from k where id in ({})", list(count)));
        let Body::Select(SelectPlan { source: Source::Table(access), .. }) = &bound.body else { panic!("no table") };
        assert_eq!(matches!(access.path, AccessPath::Points(_)), points, "{count}");
    }
    let bound = narrow(&format!("select * from k where v not in ({}, null)", list(5000)));
    let Body::Select(select) = &bound.body else { panic!("no query") };
    assert!(matches!(select.filter, Some(Expr::InSet { with_null: true, negated: true, .. })), "{:?}", select.filter);
}
