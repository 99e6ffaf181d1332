//! The nodes of a plan: the result of the binder, run by the executor.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::access::{PlainOutput, TableAccess};
use super::bound_index::TableWrite;
use super::explained::Explain;
use super::rel::{SelectPlan, Source, Subplan};
use crate::catalog::ddl::NewTable;
use crate::catalog::{Catalog, Part, Relation, Sight};
use crate::coop::drop_elsewhere;
use crate::error::SqlState;
use crate::expr::Expr;
use crate::object::{DatabaseId, Object, ObjectId, SchemaId, Sequence};
use crate::table::{ColumnId, StorageId, Table, TableId};
use pgtypes::SqlType;

/// The nodes of a plan that is visited and dropped on another thread. Fewer take a millisecond or two.
const LARGE_NODES: usize = 16_384;

/// A result column, as RowDescription describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The name, as in PostgreSQL (`?column?`, `count`, ...).
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// OID of its table and its number there; (0, 0) if computed.
    pub origin: (u32, i16),
}

/// A bound statement. Reusable while every name of a table that it has looked up leads to the same table, or to none.
#[derive(Debug)]
pub struct Plan {
    /// The newest catalog version that it is known to be valid for.
    pub(crate) valid_for: AtomicU64,
    /// The version of the statistics that it was made with; `None` if it has not looked at them.
    pub(crate) statistics: Option<u64>,
    /// What the session saw of the catalog.
    pub(crate) sight: Sight,
    /// The names of relations that the binder has looked up.
    pub(crate) lookups: Vec<Lookup>,
    /// Types of `$1`, `$2`, ...
    pub params: Vec<SqlType>,
    /// The result columns; `None` for a statement without rows.
    pub columns: Option<Vec<ResultColumn>>,
    /// The command in errors, where it is not the beginning of the text: `SELECT FOR UPDATE`.
    pub command: Option<&'static str>,
    /// Whether it changes data or schema.
    pub writes: bool,
    /// Whether it changes the schema.
    pub is_ddl: bool,
    /// Whether it cannot run in a transaction with other statements.
    pub outside_block_only: Option<&'static str>,
    /// Whether an expression has a constant part, so that [`Plan::check_constants`] has something to do.
    pub(crate) constant_parts: bool,
    /// Whether an expression takes or gives up advisory locks, or asks other nodes.
    pub(crate) takes_locks: bool,
    /// Whether a query of its WITH changes rows.
    pub(crate) changes_in_with: bool,
    /// Whether an expression uses sequences.
    pub(crate) uses_sequences: bool,
    /// The function that an expression calls to change a sequence: `nextval()`, `setval()`.
    pub(crate) changed_sequence: Option<&'static str>,
    /// Whether an expression asks for the id of the transaction.
    pub(crate) needs_transaction: bool,
    /// Set for a query for plain columns.
    pub(crate) plain: Option<PlainOutput>,
    /// Notices for the client, sent at execution.
    pub notices: Vec<Notice>,
    /// The size of its expressions.
    pub(crate) cost: Cost,
    /// Set for EXPLAIN ANALYZE of the body: it runs, and its rows say how.
    pub(crate) analyze: Option<Explain>,
    /// The sub-queries of its expressions.
    pub(crate) subplans: Vec<Subplan>,
    /// The queries of WITH.
    pub(crate) with: Vec<WithQuery>,
    /// The foreign keys that it may meet.
    pub(crate) references: Option<References>,
    pub(crate) body: Body,
}

/// All that a statement runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<'p> {
    pub(crate) body: &'p Body,
    pub(crate) subplans: &'p [Subplan],
    pub(crate) with: &'p [WithQuery],
}

impl Plan {
    /// All that it runs.
    pub(crate) fn whole(&self) -> Whole<'_> {
        Whole { body: &self.body, subplans: &self.subplans, with: &self.with }
    }

    /// Whether sub-queries run while expressions are evaluated.
    pub(crate) fn has_subqueries(&self) -> bool {
        !self.subplans.is_empty()
    }
}

/// The rows that passed the stages of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    /// Those of the source.
    pub(crate) source: u64,
    /// Those that passed the filter.
    pub(crate) passed: u64,
    /// Those of the aggregation.
    pub(crate) grouped: u64,
    /// Those that DISTINCT has left.
    pub(crate) distinct: u64,
    /// Those that OFFSET has dropped.
    pub(crate) skipped: u64,
    /// Those of the result.
    pub(crate) returned: u64,
}

impl RowCounts {
    /// Adds others.
    pub(crate) fn add(&mut self, more: RowCounts) {
        self.source += more.source;
        self.passed += more.passed;
        self.grouped += more.grouped;
        self.distinct += more.distinct;
        self.skipped += more.skipped;
        self.returned += more.returned;
    }
}

/// The size of the expressions of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The nodes of all expressions, and the values of IN lists.
    pub(crate) nodes: usize,
    /// About the nodes that are evaluated and the columns that are decoded for each row, in units of
    /// [`crate::coop::Turn`].
    pub(crate) row: usize,
}

/// The look-up of the name of a relation or of a type in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// The schema; `None` for those of the search path.
    pub(crate) schema: Option<SchemaId>,
    /// The folded name.
    pub(crate) name: String,
    /// Whether it is the name of a user's type.
    pub(crate) is_type: bool,
    /// The relation or type, if there is one.
    pub(crate) found: Option<Relation>,
}

impl Plan {
    /// Whether the statement would be bound to the same relations with this catalog.
    pub(crate) fn is_valid_for(&self, catalog: &Catalog) -> bool {
        if self.statistics.is_some_and(|version| version != catalog.statistics().version()) {
            return false;
        }
        let sees_the_same = self.sight == *catalog.sight();
        if sees_the_same && self.valid_for.load(Ordering::Relaxed) == catalog.version {
            return true;
        }
        // A statement that creates a schema has looked up no relation.
        if self.is_ddl {
            return false;
        }
        let is_same = |lookup: &Lookup| {
            if lookup.is_type {
                let now = catalog.user_type(lookup.schema, &lookup.name);
                return match (&lookup.found, now) {
                    (None, None) => true,
                    (Some(Relation::Object(then)), Some(now)) => Arc::ptr_eq(then, now) || then == now,
                    _ => false,
                };
            }
            let now = match lookup.schema {
                Some(schema) => catalog.relation_in(schema, &lookup.name),
                None => catalog.relation(None, &lookup.name),
            };
            match (&lookup.found, now) {
                (None, None) => true,
                (Some(then), Some(now)) => then.is_same(now),
                _ => false,
            }
        };
        let is_valid = self.lookups.iter().all(is_same);
        if is_valid && sees_the_same {
            self.valid_for.store(catalog.version, Ordering::Relaxed);
        }
        is_valid
    }

    /// The tables that it names, or an index of.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.lookups.iter().filter_map(|lookup| match lookup.found.as_ref()? {
            Relation::Table(table) | Relation::Index(table) => Some(table),
            Relation::Object(_) => None,
        })
    }

    /// The tables that it drops or truncates.
    pub(crate) fn dropped_tables(&self) -> &[Arc<Table>] {
        match &self.body {
            Body::Truncate(tables, _) => tables,
            Body::Drop(_, drops) => &drops.tables,
            _ => &[],
        }
    }

    /// Whether a walk over its expressions takes too long for a session's thread.
    pub(crate) fn is_large(&self) -> bool {
        self.cost.nodes > LARGE_NODES
    }

    /// Whether it is INSERT, UPDATE or DELETE, or has one in its WITH. These run to their end before the first row of
    /// RETURNING is sent.
    pub(crate) fn changes_rows(&self) -> bool {
        self.changes_in_with || matches!(self.body, Body::Insert(_) | Body::Update(_) | Body::Delete(_))
    }

    /// Whether it reads tables like a query, although it changes the schema.
    pub(crate) fn is_created_from_query(&self) -> bool {
        matches!(self.body, Body::CreateTableAs(_))
    }

    /// Whether it prints how its reads were served.
    pub(crate) fn counts_reads(&self) -> bool {
        self.analyze.is_some()
    }

    /// The storages of the rows that it inserts, changes or locks.
    pub(crate) fn written(&self) -> Vec<StorageId> {
        let children = self.references.iter().flat_map(|found| found.children.values().flatten());
        let children = children.map(|referring| referring.child.storage);
        let parents = self.references.iter().flat_map(|found| found.parents.values());
        let parents = parents.map(|parent| parent.table.storage);
        let bodies = self.with.iter().filter_map(WithQuery::change).chain([&self.body]);
        bodies.filter_map(Body::target).chain(children).chain(parents).collect()
    }
}

impl Body {
    /// The storage of the rows that it inserts, changes or locks.
    fn target(&self) -> Option<StorageId> {
        let table = match self {
            Body::Insert(plan) => &plan.write.table,
            Body::Update(plan) => &plan.access.table,
            Body::Delete(plan) => &plan.access.table,
            Body::CopyFrom(plan) => &plan.write.table,
            Body::Select(SelectPlan { source: Source::Table(access), lock: Some(_), .. }) => &access.table,
            _ => return None,
        };
        Some(table.storage)
    }
}

impl Drop for Plan {
    /// A plan of many expressions is freed on another thread.
    fn drop(&mut self) {
        if self.is_large() {
            drop_elsewhere(std::mem::replace(&mut self.body, Body::Nothing("")));
        }
    }
}

/// A notice for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its SQLSTATE.
    pub code: SqlState,
    /// Its text.
    pub message: String,
    /// Whether it is a WARNING, not a NOTICE.
    pub is_warning: bool,
}

/// A query of WITH that runs once for the statement.
#[derive(Debug)]
pub(crate) struct WithQuery {
    /// Its name, for EXPLAIN.
    pub(crate) name: String,
    pub(crate) body: WithBody,
    /// Whether a query reads it.
    pub(crate) is_read: bool,
}

impl WithQuery {
    /// What it changes.
    pub(crate) fn change(&self) -> Option<&Body> {
        match &self.body {
            WithBody::Change(body) => Some(body),
            _ => None,
        }
    }
}

/// What a query of WITH is.
#[derive(Debug)]
pub(crate) enum WithBody {
    /// A query.
    Query(Box<SelectPlan>),
    /// A recursive one: `first`, then `step` over the rows that the last step has added, until it adds none. Without
    /// `all` rows that were there already are dropped. `inner`: the places of the queries of WITH inside of `step`, and
    /// of its sub-queries, which may read what the last step has added.
    Recursive { first: Box<SelectPlan>, step: Box<SelectPlan>, all: bool, inner: (Range<usize>, Range<usize>) },
    /// INSERT, UPDATE or DELETE.
    Change(Box<Body>),
}

/// The body of a plan.
#[derive(Debug)]
pub(crate) enum Body {
    /// A query.
    Select(SelectPlan),
    /// INSERT.
    Insert(InsertPlan),
    /// UPDATE.
    Update(Box<UpdatePlan>),
    /// DELETE.
    Delete(DeletePlan),
    /// TRUNCATE. The sequences that it restarts: what they were, what they are to be.
    Truncate(Vec<Arc<Table>>, Vec<(Object, Object)>),
    /// COPY FROM.
    CopyFrom(CopyFromPlan),
    /// CREATE TABLE; `None` if IF NOT EXISTS found the table.
    CreateTable(Option<NewTable>),
    /// CREATE TABLE AS: the table, and the query whose rows it gets.
    CreateTableAs(Box<(NewTable, SelectPlan)>),
    /// CREATE of an object that is no table, with its tag; `None` if IF NOT EXISTS found it.
    CreateObject(&'static str, Option<NewObject>),
    /// ALTER of an object that is no table, with its tag: what it was, what it is to be.
    AlterObject(&'static str, Object, Object),
    /// ALTER of an object that texts name, with its tag: the object and others that name it, each as it was and as it
    /// is to be; the tables that name it.
    AlterObjects(&'static str, Vec<(Object, Object)>, Vec<Alteration>),
    /// A DROP, with its tag.
    Drop(&'static str, Drops),
    /// ALTER TABLE, CREATE INDEX or DROP INDEX, with its tag. The tables are distinct.
    AlterTables(&'static str, Vec<Alteration>),
    /// COMMENT: on an object, or on a part of it; none without a text.
    Comment(ObjectId, Part, Option<String>),
    /// ANALYZE, or VACUUM with it, with its tag: the tables; `None` for all of the database.
    Analyze(&'static str, Option<Vec<AnalyzeTarget>>),
    /// A statement without effect. Holds its tag.
    Nothing(&'static str),
    /// EXPLAIN. Holds the rows.
    Explain(Vec<String>),
}

/// A table to analyze.
#[derive(Clone, Debug)]
pub(crate) struct AnalyzeTarget {
    pub(crate) table: Arc<Table>,
    /// The positions of the columns.
    pub(crate) columns: Vec<usize>,
}

/// An object to create. It gets its id when it is created.
#[derive(Debug)]
pub(crate) enum NewObject {
    /// A schema of a database.
    Schema(DatabaseId, String),
    /// A database, with a schema `public`.
    Database(String),
    /// A view.
    Relation(Object),
}

/// What is dropped: what the statement names, and what goes with it.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) objects: Vec<Arc<Object>>,
    /// Tables that lose foreign keys to dropped ones.
    pub(crate) changes: Vec<Alteration>,
}

/// A change of a table's descriptor.
#[derive(Debug)]
pub(crate) struct Alteration {
    pub(crate) old: Arc<Table>,
    /// The descriptor that the table is to have. New indexes have the id 0 and no storage; so has a new primary key.
    pub(crate) new: Table,
    /// Whether the stored rows change, or their keys.
    pub(crate) rewrites: bool,
    /// The columns of the new rows, over the old ones; `None` if they are the same.
    pub(crate) row: Option<Vec<Expr>>,
    /// What the rows are checked for.
    pub(crate) validates: Validates,
    /// New sequences, and the columns that own them and draw from them. Their ids and owners do not count.
    pub(crate) sequences: Vec<(ColumnId, Sequence)>,
    /// Sequences of identity columns that change: what each was, what it is to be.
    pub(crate) altered: Vec<(Sequence, Sequence)>,
    /// Views that go, and sequences.
    pub(crate) dropped: Vec<Arc<Object>>,
}

impl Alteration {
    /// No change yet.
    pub(crate) fn of(table: Arc<Table>) -> Alteration {
        let new = (*table).clone();
        Alteration {
            old: table,
            new,
            rewrites: false,
            row: None,
            validates: Validates::default(),
            sequences: Vec::new(),
            altered: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Whether the table stays as it is: only sequences change.
    pub(crate) fn is_of_sequences(&self) -> bool {
        !self.altered.is_empty() && !self.rewrites && self.new == *self.old
    }
}

/// Constraints that rows must satisfy: new ones, and those over values that change.
#[derive(Debug, Default)]
pub(crate) struct Validates {
    /// Columns without NULL.
    pub(crate) not_null: Vec<ColumnId>,
    /// Columns whose domains have new constraints.
    pub(crate) domains: Vec<ColumnId>,
    /// The names of checks.
    pub(crate) checks: Vec<String>,
    /// The names of foreign keys.
    pub(crate) foreign_keys: Vec<String>,
    /// Foreign keys of other tables to this one: these tables, and the names.
    pub(crate) referring: Vec<(TableId, String)>,
}

impl Validates {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        let is_own = !self.not_null.is_empty() || !self.domains.is_empty() || !self.checks.is_empty();
        !is_own && self.foreign_keys.is_empty() && self.referring.is_empty()
    }
}

/// INSERT.
#[derive(Debug)]
pub(crate) struct InsertPlan {
    pub(crate) write: TableWrite,
    pub(crate) source: SelectPlan,
    /// The table's columns over a row of the source; `None` if the source's row is the table's.
    pub(crate) columns: Option<Vec<Expr>>,
    /// Whether the source reads the target table, so it must be read to its end first.
    pub(crate) reads_itself: bool,
    pub(crate) conflict: Box<Conflict>,
    /// Over the new row.
    pub(crate) returning: Option<Vec<Expr>>,
}

/// COPY FROM.
#[derive(Debug)]
pub(crate) struct CopyFromPlan {
    pub(crate) write: TableWrite,
    /// The positions of the table's columns that the data has, in its order.
    pub(crate) columns: Vec<usize>,
    /// The other columns and their default values.
    pub(crate) defaults: Vec<(usize, Expr)>,
    /// Over the new row.
    pub(crate) filter: Option<Expr>,
}

/// The action of INSERT for a duplicate key.
#[derive(Debug)]
pub(crate) enum Conflict {
    /// An error.
    Fail,
    /// DO NOTHING.
    DoNothing(Arbiters),
    /// DO UPDATE. The expressions are over the old row followed by the proposed row (`excluded`).
    DoUpdate { arbiters: Arbiters, assignments: Vec<(usize, Expr)>, filter: Option<Expr> },
}

/// The unique keys whose duplicates ON CONFLICT is about. Those of others are errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arbiters {
    /// Whether the primary key is one.
    pub(crate) primary_key: bool,
    /// For each index of the table, whether it is one.
    pub(crate) indexes: Vec<bool>,
}

impl Arbiters {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        !self.primary_key && !self.indexes.contains(&true)
    }
}

/// The foreign keys that a statement may meet.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// What refers to each table whose rows it may change.
    pub(crate) children: HashMap<TableId, Vec<Referring>>,
    /// The tables that have foreign keys.
    pub(crate) tables: HashMap<TableId, Arc<Table>>,
    /// The tables that these refer to, and those that are referred to.
    pub(crate) parents: HashMap<TableId, TableAccess>,
}

impl References {
    /// Adds those of another table.
    pub(crate) fn add(&mut self, others: References) {
        self.children.extend(others.children);
        self.tables.extend(others.tables);
        self.parents.extend(others.parents);
    }

    /// Whether rows that refer may get defaults that use sequences.
    pub(crate) fn use_sequences(&self) -> bool {
        let actions =
            self.children.values().flatten().flat_map(|referring| [&referring.on_delete, &referring.on_update]);
        actions.into_iter().any(|action| match action {
            ChildAction::Update(plan) => plan.assignments.iter().any(|(_, value)| value.uses_sequences()),
            _ => false,
        })
    }
}

/// A foreign key, seen from the table that it refers to.
#[derive(Debug)]
pub(crate) struct Referring {
    /// The table that has it.
    pub(crate) child: Arc<Table>,
    /// Its place among the foreign keys there.
    pub(crate) position: usize,
    /// The positions of the columns that it refers to.
    pub(crate) columns: Vec<usize>,
    /// The rows that refer to the values of these, which are the parameters.
    pub(crate) access: TableAccess,
    pub(crate) filter: Option<Expr>,
    pub(crate) on_delete: ChildAction,
    pub(crate) on_update: ChildAction,
}

/// What becomes of the rows that refer to one that is deleted, or gets another key.
#[derive(Debug)]
pub(crate) enum ChildAction {
    /// There must be none at the end of the statement.
    NoAction,
    /// There must be none.
    Restrict,
    /// They are deleted.
    Delete(Box<DeletePlan>),
    /// They are changed. The new key follows the old one in the parameters.
    Update(Box<UpdatePlan>),
}

impl Referring {
    /// Whether an action changes the rows that refer.
    pub(crate) fn writes(&self) -> bool {
        let writes = |action: &ChildAction| matches!(action, ChildAction::Delete(_) | ChildAction::Update(_));
        writes(&self.on_delete) || writes(&self.on_update)
    }
}

/// UPDATE.
#[derive(Debug)]
pub(crate) struct UpdatePlan {
    pub(crate) access: TableAccess,
    pub(crate) filter: Option<Expr>,
    /// Columns and their new values over the old row.
    pub(crate) assignments: Vec<(usize, Expr)>,
    pub(crate) write: TableWrite,
    /// Whether it assigns a column of the primary key.
    pub(crate) changes_key: bool,
    /// Whether it assigns a column that another table may refer to: of the primary key or of a unique index.
    pub(crate) changes_unique: bool,
    /// Over the new row.
    pub(crate) returning: Option<Vec<Expr>>,
    /// FROM. Then all expressions are over its rows.
    pub(crate) joined: Option<Box<Joined>>,
}

/// DELETE.
#[derive(Debug)]
pub(crate) struct DeletePlan {
    pub(crate) access: TableAccess,
    pub(crate) filter: Option<Expr>,
    pub(crate) write: TableWrite,
    /// Over the old row.
    pub(crate) returning: Option<Vec<Expr>>,
    /// USING. Then all expressions are over its rows.
    pub(crate) joined: Option<Box<Joined>>,
}

/// The target of UPDATE ... FROM or DELETE ... USING, joined with the other tables.
#[derive(Debug)]
pub(crate) struct Joined {
    /// Its rows: the columns of the target, the key of that row, the columns of the others.
    pub(crate) source: SelectPlan,
    /// The whole condition, over such a row: a target row that has changed is looked at again.
    pub(crate) condition: Option<Expr>,
}
