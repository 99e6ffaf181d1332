//! Binding of statements: which part of the binder takes a tree, and what the whole plan says of it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlparser::ast::{LockType, ObjectName, ObjectType, SelectInto, SetExpr, Spanned, Statement};

use super::binder::Binder;
use super::explain::{self, options_of};
use super::explained::Explain;
use super::known::Known;
use super::maintenance::VACUUM;
use super::node::{Body, Conflict, Plan, References, ResultColumn, Whole, WithBody, WithQuery};
use super::visit::visit;
use super::with_name::{changing, has_changes};
use super::{constants, correlated, cost, depth, plain, row_locks, settle};
use crate::catalog::Catalog;
use crate::clock;
use crate::deep_stack;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{Parsed, domain_name, new_owner, new_schema};
use pgtypes::SqlType;

/// Binds a data or schema statement (SELECT, INSERT, UPDATE, DELETE, CREATE/DROP TABLE, TRUNCATE, VALUES, EXPLAIN of
/// these). `declared` are the client's parameter types; `Unknown` or missing ones are inferred. Without the list, as in
/// the simple protocol, there are no parameters. The session handles transaction control and SET/SHOW itself.
pub fn bind(statement: &Parsed, declared: Option<&[SqlType]>, catalog: &Catalog) -> Result<Arc<Plan>, SqlError> {
    // The binder bounds its own recursion, but the tree's span methods walk the whole tree.
    deep_stack::run(statement.is_deep(), || bind_on_this_stack(statement, declared, catalog))
}

fn bind_on_this_stack(
    statement: &Parsed,
    declared: Option<&[SqlType]>,
    catalog: &Catalog,
) -> Result<Arc<Plan>, SqlError> {
    let mut binder = Binder::new(statement, declared, catalog);
    let (analyze, (body, columns)) = match &statement.tree {
        Statement::Explain { statement: explained, .. } => bind_explain(&mut binder, &statement.tree, explained)?,
        tree => {
            let (mut body, columns) = bind_tree(&mut binder, tree)?;
            settle_all(&mut body, &mut binder);
            (None, (body, columns))
        }
    };
    let params = binder.finish_params()?;
    let (subplans, with) = (std::mem::take(&mut binder.subplans), std::mem::take(&mut binder.with));
    let references = binder.references.take();
    let whole = Whole { body: &body, subplans: &subplans, with: &with };
    depth::check(&whole)?;
    let changes_in_with =
        !matches!(body, Body::Explain(_)) && with.iter().any(|query| matches!(query.body, WithBody::Change(_)));
    let (writes, is_ddl) = match &body {
        Body::Select(select) => (select.lock.is_some() || changes_in_with, false),
        Body::Insert(_) | Body::Update(_) | Body::Delete(_) | Body::CopyFrom(_) => (true, false),
        Body::CreateTable(_)
        | Body::Comment(..)
        | Body::CreateObject(..)
        | Body::AlterObject(..)
        | Body::AlterObjects(..)
        | Body::Drop(..)
        | Body::CreateTableAs(_)
        | Body::Truncate(..)
        | Body::AlterTables(..) => (true, true),
        Body::Nothing(_) | Body::Explain(_) | Body::Analyze(..) => (false, false),
    };
    let outside_block_only = match (&body, &statement.tree) {
        (Body::Nothing(tag) | Body::Analyze(tag, _), _) => Some(*tag).filter(|tag| *tag == VACUUM),
        (Body::CreateObject(tag, _) | Body::Drop(tag, _), _) => Some(*tag).filter(|tag| tag.ends_with("DATABASE")),
        (_, Statement::CreateIndex(create)) if create.concurrently => Some("CREATE INDEX CONCURRENTLY"),
        _ => None,
    };
    let lookups = binder.take_lookups();
    // Most statements call no function of the session.
    let has_calls = any(&whole, Expr::calls_session);
    let notices = if matches!(body, Body::Explain(_)) || analyze.is_some() { Vec::new() } else { binder.notices };
    Ok(Arc::new(Plan {
        valid_for: AtomicU64::new(catalog.version),
        sight: catalog.sight().clone(),
        lookups,
        command: command(&statement.tree),
        params,
        columns,
        writes,
        is_ddl,
        outside_block_only,
        constant_parts: constants::any_in(&whole),
        takes_locks: has_calls && takes_locks(&whole)?,
        uses_sequences: has_calls && uses_sequences(&whole)?
            || references.as_ref().is_some_and(References::use_sequences),
        changed_sequence: if has_calls { changed_sequence(&whole) } else { None },
        needs_transaction: has_calls && needs_transaction(&whole),
        cost: cost::of(&whole),
        plain: plain::plain_output(&body).filter(|_| analyze.is_none() && !changes_in_with),
        changes_in_with,
        notices,
        analyze,
        subplans,
        with,
        references,
        statistics: binder.known.version(),
        body,
    }))
}

/// Chooses access paths and join methods, once all conditions are where they go.
fn settle_all(body: &mut Body, binder: &mut Binder<'_>) {
    let known = &binder.known;
    settle_body(body, known);
    for subplan in &mut binder.subplans {
        settle::settle(&mut subplan.plan, known);
        subplan.kept = correlated::kept_rows(&subplan.plan);
    }
    for with in &mut binder.with {
        match &mut with.body {
            WithBody::Query(plan) => settle::settle(plan, known),
            WithBody::Change(body) => settle_body(body, known),
            WithBody::Recursive { first, step, .. } => {
                settle::settle(first, known);
                settle::settle(step, known);
            }
        }
    }
}

fn settle_body(body: &mut Body, known: &Known) {
    match body {
        Body::Select(plan) => settle::settle(plan, known),
        Body::Insert(plan) => settle::settle(&mut plan.source, known),
        Body::CreateTableAs(parts) => settle::settle(&mut parts.1, known),
        Body::Update(plan) => plan.joined.iter_mut().for_each(|joined| settle::settle(&mut joined.source, known)),
        Body::Delete(plan) => plan.joined.iter_mut().for_each(|joined| settle::settle(&mut joined.source, known)),
        _ => {}
    }
}

/// Whether an expression of a statement is one that is looked for.
fn any(whole: &Whole<'_>, is_it: impl Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    // The visitor never fails.
    let _ = visit(whole, &mut |expr| {
        found |= is_it(expr);
        Ok(())
    });
    found
}

/// Whether an expression asks for the id of the transaction.
pub(super) fn needs_transaction(whole: &Whole<'_>) -> bool {
    any(whole, Expr::needs_transaction)
}

/// The function that an expression calls to change a sequence.
pub(super) fn changed_sequence(whole: &Whole<'_>) -> Option<&'static str> {
    let mut found = None;
    // The visitor never fails.
    let _ = visit(whole, &mut |expr| {
        found = found.or(expr.changed_sequence());
        Ok(())
    });
    found
}

/// Whether an expression uses sequences. 0A000 in LIMIT and OFFSET.
pub(super) fn uses_sequences(whole: &Whole<'_>) -> Result<bool, SqlError> {
    let found = any(whole, Expr::uses_sequences);
    let select = match whole.body {
        Body::Select(select) => Some(select),
        Body::Insert(insert) => Some(&insert.source),
        _ => None,
    };
    if found && select.is_some_and(|plan| plan.limit.iter().chain(&plan.offset).any(Expr::uses_sequences)) {
        let message = "functions of sequences in LIMIT and OFFSET are not supported";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(found)
}

/// Whether an expression takes or gives up advisory locks, or asks other nodes. 0A000 where that is not supported.
pub(super) fn takes_locks(whole: &Whole<'_>) -> Result<bool, SqlError> {
    let body = whole.body;
    let found = any(whole, Expr::takes_locks);
    let select = match body {
        Body::Select(select) => Some(select),
        Body::Insert(insert) => Some(&insert.source),
        Body::CreateTableAs(parts) => Some(&parts.1),
        _ => None,
    };
    let refuse = |place: &str| {
        let message = format!("functions of advisory locks and of sessions in {place} are not supported");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    };
    if found && select.is_some_and(|plan| plan.limit.iter().chain(&plan.offset).any(Expr::takes_locks)) {
        return refuse("LIMIT and OFFSET");
    }
    let changes = whole.with.iter().filter_map(WithQuery::change);
    for body in changes.chain([body]).filter(|_| found) {
        let Body::Insert(insert) = body else { continue };
        let Conflict::DoUpdate { assignments, filter, .. } = &*insert.conflict else { continue };
        let exprs = assignments.iter().map(|(_, expr)| expr).chain(filter);
        if exprs.into_iter().any(Expr::takes_locks) {
            return refuse("ON CONFLICT");
        }
    }
    Ok(found)
}

/// A body with the columns of its result.
type BoundBody = (Body, Option<Vec<ResultColumn>>);

/// Binds an EXPLAIN. With ANALYZE the body is the statement that runs, otherwise the rows of the result.
fn bind_explain(
    binder: &mut Binder<'_>,
    tree: &Statement,
    explained: &Statement,
) -> Result<(Option<Explain>, BoundBody), SqlError> {
    let begin = clock::instant();
    let options = options_of(binder, tree)?;
    let creates = match explained {
        Statement::Query(query) => into_of(&query.body).is_some(),
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => false,
        Statement::CreateTable(create) if create.query.is_some() => true,
        _ => return Err(explain::no_plan(binder.statement.text.as_str())),
    };
    if creates && options.analyze {
        return Err(binder.unsupported("EXPLAIN ANALYZE of this statement is", tree.span().start));
    }
    let (mut body, _) = bind_tree(binder, explained)?;
    settle_all(&mut body, binder);
    let explain = Explain { options, planning: clock::instant().duration_since(begin) };
    let columns = Some(vec![explain::column(options.format)]);
    if options.analyze {
        return Ok((Some(explain), (body, columns)));
    }
    let whole = Whole { body: &body, subplans: &binder.subplans, with: &binder.with };
    whole.check_constants()?;
    let rows = explain.rows(&whole, None, binder.catalog);
    Ok((None, (Body::Explain(rows), columns)))
}

/// The name of a statement that writes, where its text begins with another word.
fn command(tree: &Statement) -> Option<&'static str> {
    let tree = match tree {
        Statement::Explain { statement, .. } => match &**statement {
            Statement::Insert(_) => return Some("INSERT"),
            Statement::Update(_) => return Some("UPDATE"),
            Statement::Delete(_) => return Some("DELETE"),
            explained => explained,
        },
        tree => tree,
    };
    let query = match tree {
        Statement::CreateTable(create) if create.query.is_some() => return Some("CREATE TABLE AS"),
        Statement::Query(query) => query,
        _ => return None,
    };
    if into_of(&query.body).is_some() {
        return Some("SELECT INTO");
    }
    match &*query.body {
        SetExpr::Insert(_) => return Some("INSERT"),
        SetExpr::Update(_) => return Some("UPDATE"),
        SetExpr::Delete(_) => return Some("DELETE"),
        _ => {}
    }
    if has_changes(query) {
        return Some("SELECT");
    }
    let clause = query.locks.last()?;
    Some(match (clause.lock_type, query.locks.iter().any(row_locks::is_key_lock)) {
        (LockType::Update, false) => "SELECT FOR UPDATE",
        (LockType::Update, true) => "SELECT FOR NO KEY UPDATE",
        (LockType::Share, false) => "SELECT FOR SHARE",
        (LockType::Share, true) => "SELECT FOR KEY SHARE",
    })
}

/// INTO of the first SELECT of a query.
fn into_of(mut body: &SetExpr) -> Option<&SelectInto> {
    loop {
        body = match body {
            SetExpr::Select(select) => return select.into.as_ref(),
            SetExpr::SetOperation { left, .. } => left,
            _ => return None,
        };
    }
}

/// Binds a tree to a plan's body and the columns of its result.
fn bind_tree(binder: &mut Binder<'_>, tree: &Statement) -> Result<BoundBody, SqlError> {
    if let Statement::Query(query) = tree
        && let Some(change) = changing(query)
    {
        if let Some(with) = &query.with {
            binder.with_clause(with, true)?;
        }
        return bind_tree(binder, change);
    }
    if let Statement::Query(query) = tree
        && let Some(into) = into_of(&query.body)
    {
        return Ok((binder.select_into((&into.name, into.temporary), query)?, None));
    }
    match tree {
        Statement::Query(query) => {
            binder.is_top = true;
            let (plan, columns) = binder.query(query)?;
            Ok((Body::Select(plan), Some(columns)))
        }
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => binder.change(tree),
        Statement::Truncate(truncate) => Ok((binder.truncate(truncate)?, None)),
        Statement::CreateTable(create) => Ok((binder.create_table(create)?, None)),
        Statement::Drop { object_type, if_exists, names, cascade, .. } if !matches!(object_type, ObjectType::Index) => {
            Ok((drop_objects(binder, (object_type, names), (*if_exists, *cascade))?, None))
        }
        Statement::Drop { object_type: ObjectType::Index, if_exists, names, cascade, .. } => {
            Ok((binder.drop_index(names, *if_exists, *cascade)?, None))
        }
        Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            Ok((binder.create_schema(schema_name, *if_not_exists)?, None))
        }
        Statement::CreateSequence { .. } => Ok((binder.sequence_statement(tree)?, None)),
        Statement::CreateType { name, representation } => {
            Ok((binder.create_type(name, representation.as_ref())?, None))
        }
        Statement::AlterType(alter) => Ok((binder.alter_type(alter)?, None)),
        Statement::Comment { object_type, object_name, comment, if_exists: false } => {
            Ok((binder.comment(*object_type, object_name, comment.as_ref())?, None))
        }
        Statement::AlterSchema(alter) => Ok((binder.alter_schema(alter)?, None)),
        Statement::CreateDatabase { db_name, if_not_exists: false, .. } => Ok((binder.create_database(db_name)?, None)),
        Statement::CreateView(create) => Ok((binder.create_view(create)?, None)),
        Statement::CreateIndex(create) => Ok((binder.create_index(create)?, None)),
        Statement::AlterTable(alter) => match (new_schema(&alter.operations), domain_name(&alter.name)) {
            _ if new_owner(&alter.operations).is_some() => Ok((binder.set_owner(alter)?, None)),
            (Some(schema), _) => Ok((binder.set_schema(alter, schema)?, None)),
            (None, Some(domain)) => Ok((binder.domain_statement(&domain, &alter.operations)?, None)),
            (None, None) => Ok((binder.alter_table(alter)?, None)),
        },
        Statement::AlterIndex { name, operation } => Ok((binder.alter_index(name, operation)?, None)),
        Statement::Drop { object_type, .. } => Err(unsupported_drop(binder, object_type)),
        Statement::Vacuum(_) | Statement::Analyze(_) => match &binder.statement.maintenance {
            Some(statement) => Ok((binder.maintenance(statement)?, None)),
            None => Err(SqlError::internal("VACUUM or ANALYZE without its parts")),
        },
        other => Err(binder.unsupported(&format!("{} is", binder.statement.command()), other.span().start)),
    }
}

/// Binds a DROP of anything but indexes.
fn drop_objects(
    binder: &mut Binder<'_>,
    (kind, names): (&ObjectType, &[ObjectName]),
    (if_exists, cascade): (bool, bool),
) -> Result<Body, SqlError> {
    match kind {
        ObjectType::Table => binder.drop_relations("table", names, (if_exists, cascade)),
        ObjectType::View => binder.drop_relations("view", names, (if_exists, cascade)),
        ObjectType::Sequence => binder.drop_relations("sequence", names, (if_exists, cascade)),
        ObjectType::Type => binder.drop_types(names, if_exists, cascade),
        ObjectType::Schema => binder.drop_schemas(names, if_exists, cascade),
        ObjectType::Database => binder.drop_database(names, if_exists),
        other => Err(unsupported_drop(binder, other)),
    }
}

fn unsupported_drop(binder: &Binder<'_>, kind: &ObjectType) -> SqlError {
    binder.unsupported(&format!("DROP {kind} is"), binder.statement.tree.span().start)
}
