//! Objects of the catalog beside tables: databases, schemas, views, sequences, enums and domains. Used by catalog,
//! binder and executor.
//!
//! A database holds schemas, a schema holds relations. Tables, indexes, views and sequences of a schema share their
//! names, as in PostgreSQL. Types have names of their own.

use crate::error::{SqlError, SqlState};
use pgtypes::{Label, Oid, SqlType};

/// Identifies a database: its OID in `pg_database`. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId(pub u32);

/// Identifies a schema: its OID in `pg_namespace`. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(pub u32);

/// Identifies a CHECK or a foreign key: its OID in `pg_constraint`. Drawn from the same counter as [`ObjectId`]. 0
/// before it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstraintId(pub u32);

/// Identifies any object: its OID in its catalog. Ids of databases, schemas, tables and indexes are drawn from the same
/// counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// The database that a new cluster has, with PostgreSQL's OID.
pub const FIRST_DATABASE: DatabaseId = DatabaseId(5);
/// Its schema `public`, with PostgreSQL's OID.
pub const FIRST_SCHEMA: SchemaId = SchemaId(2200);
/// The name of the schema that a new database has.
pub const PUBLIC: &str = "public";

/// Where a binder puts a temporary relation of a session that has no schema for them yet.
pub const NEW_TEMPORARY: SchemaId = SchemaId(0);

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Its id.
    pub id: DatabaseId,
    /// The folded name, of its own in the cluster.
    pub name: String,
}

/// A schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its id.
    pub id: SchemaId,
    /// The database that it belongs to.
    pub database: DatabaseId,
    /// The folded name, of its own in the database.
    pub name: String,
    /// The node of the session whose temporary relations it holds; `None` for a schema that stays.
    pub session_node: Option<u64>,
}

/// A view: a query under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its OID in `pg_class`.
    pub id: ObjectId,
    /// Its schema.
    pub schema: SchemaId,
    /// The folded name.
    pub name: String,
    /// Names and types of its columns.
    pub columns: Vec<(String, SqlType)>,
    /// Text of the query, valid SQL on its own. Its names are looked up in `path`.
    pub query: String,
    /// Where the names of the query are looked up.
    pub path: Vec<SchemaId>,
    /// The relations that the query reads.
    pub uses: Vec<ObjectId>,
}

/// A sequence. The state of its values is a record of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// Its OID in `pg_class`.
    pub id: ObjectId,
    /// Its schema.
    pub schema: SchemaId,
    /// The folded name.
    pub name: String,
    /// `smallint`, `integer` or `bigint`.
    pub ty: SqlType,
    /// The first value.
    pub start: i64,
    /// Not 0.
    pub increment: i64,
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// How many values a node takes at once, at least 1.
    pub cache: i64,
    /// Whether it begins again after the last value.
    pub cycles: bool,
    /// What its last RESTART began. Values that were drawn in another epoch do not count. From 2^63 on it is random;
    /// below, it is how often an earlier release restarted the sequence.
    pub epoch: u64,
    /// The first value of the epoch.
    pub restart: i64,
    /// The table that owns it, and the number of its column there. It is dropped with them.
    pub owner: Option<(ObjectId, u16)>,
}

/// The first of the epochs of sequences that are random.
pub(crate) const UNIQUE_EPOCHS: u64 = 1 << 63;

/// The epoch that a plan gives to a sequence which it restarts. It is never stored.
const NEXT_EPOCH: u64 = u64::MAX;

impl Sequence {
    /// 22023 for a value beyond its limits. `what`: the option that gives it.
    pub(crate) fn check_value(&self, what: &str, value: i64) -> Result<(), SqlError> {
        let message = if value < self.min {
            format!("{what} value ({value}) cannot be less than MINVALUE ({})", self.min)
        } else if value > self.max {
            format!("{what} value ({value}) cannot be greater than MAXVALUE ({})", self.max)
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
    }

    /// Restarts it with this value. The epoch has no number yet: a session keeps the plan, and runs it again after a
    /// rollback. That is another RESTART.
    pub(crate) fn restart_with(&mut self, first: i64) {
        (self.epoch, self.restart) = (NEXT_EPOCH, first);
    }

    /// Gives a random number to the epoch of a RESTART.
    pub(crate) fn number_epoch(&mut self, random: impl FnOnce() -> [u8; 16]) {
        if self.epoch == NEXT_EPOCH {
            let number = random().first_chunk::<8>().copied().map_or(0, u64::from_be_bytes);
            self.epoch = (number | UNIQUE_EPOCHS).min(NEXT_EPOCH - 1);
        }
    }
}

/// An enum.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumType {
    /// Its OID in `pg_type`: an even number. The next one is that of its array type.
    pub id: ObjectId,
    /// Its schema.
    pub schema: SchemaId,
    /// The folded name.
    pub name: String,
    /// Its labels, in their order. The order of a label is what rows and keys hold of it, so it never changes.
    pub labels: Vec<Label>,
    /// The OIDs of the labels in `pg_enum`.
    pub label_oids: Vec<u32>,
}

/// Identifies a column within its table across schema changes, from 1. Also its number in `pg_attribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u16);

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its id.
    pub id: ConstraintId,
    /// The folded name, among those of the table's constraints.
    pub name: String,
    /// Text of the condition, valid SQL on its own.
    pub text: String,
    /// The columns that it reads, in the order of the condition; none for a domain's.
    pub columns: Vec<ColumnId>,
}

/// A domain: a name for those values of another type that pass its constraints. Neither rows nor expressions know it:
/// their values are of the base type.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// Its OID in `pg_type`: an even number. The next one is that of its array type.
    pub id: ObjectId,
    /// Its schema.
    pub schema: SchemaId,
    /// The folded name.
    pub name: String,
    /// The base type, with its modifier. Never a domain.
    pub base: SqlType,
    /// The domain that it is made of, if it is. The constraints of that one hold too.
    pub parent: Option<ObjectId>,
    /// Whether it refuses NULL.
    pub not_null: bool,
    /// Text of the default of columns that have none, valid SQL on its own.
    pub default: Option<String>,
    /// Its own CHECKs, over `VALUE`, in the order of their names.
    pub checks: Vec<Check>,
}

/// How far apart the orders of labels are that are made together: there is room for 32 labels that are put between the
/// same two, one after the other.
const LABEL_STEP: i64 = 1 << 32;

impl EnumType {
    /// Its type.
    pub fn ty(&self) -> SqlType {
        SqlType::new(Oid(self.id.0))
    }

    /// The orders of this many labels.
    pub fn orders(count: usize) -> impl Iterator<Item = i64> {
        (1..).map(|place: i64| place.saturating_mul(LABEL_STEP)).take(count)
    }

    /// The order of a label at a place among the others; `None` if there is no room left between its neighbours.
    pub fn order_at(&self, place: usize) -> Option<i64> {
        let before = place.checked_sub(1).and_then(|before| self.labels.get(before)).map(|label| label.order);
        let after = self.labels.get(place).map(|label| label.order);
        match (before, after) {
            (None, None) => Some(LABEL_STEP),
            (Some(before), None) => before.checked_add(LABEL_STEP),
            (None, Some(after)) => after.checked_sub(LABEL_STEP),
            (Some(before), Some(after)) => Some(before + (after - before) / 2).filter(|order| *order > before),
        }
    }
}

/// An object of the catalog that is no table.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A database.
    Database(Database),
    /// A schema.
    Schema(Schema),
    /// A view.
    View(View),
    /// A sequence.
    Sequence(Sequence),
    /// An enum.
    Enum(EnumType),
    /// A domain.
    Domain(Domain),
}

impl Object {
    /// Its id.
    pub fn id(&self) -> ObjectId {
        match self {
            Object::Database(database) => ObjectId(database.id.0),
            Object::Schema(schema) => ObjectId(schema.id.0),
            Object::View(view) => view.id,
            Object::Sequence(sequence) => sequence.id,
            Object::Enum(ty) => ty.id,
            Object::Domain(domain) => domain.id,
        }
    }

    /// The same relation under another id. Databases and schemas have ids of other kinds.
    pub(crate) fn with_id(&self, id: ObjectId) -> Object {
        match self {
            Object::View(view) => Object::View(View { id, ..view.clone() }),
            Object::Sequence(sequence) => Object::Sequence(Sequence { id, ..sequence.clone() }),
            Object::Enum(ty) => Object::Enum(EnumType { id, ..ty.clone() }),
            Object::Domain(domain) => Object::Domain(Domain { id, ..domain.clone() }),
            other => other.clone(),
        }
    }

    /// The same relation in another schema.
    pub(crate) fn in_schema(&self, schema: SchemaId) -> Object {
        match self {
            Object::View(view) => Object::View(View { schema, ..view.clone() }),
            Object::Sequence(sequence) => Object::Sequence(Sequence { schema, ..sequence.clone() }),
            Object::Enum(ty) => Object::Enum(EnumType { schema, ..ty.clone() }),
            Object::Domain(domain) => Object::Domain(Domain { schema, ..domain.clone() }),
            other => other.clone(),
        }
    }

    /// Its folded name.
    pub fn name(&self) -> &str {
        match self {
            Object::Database(database) => &database.name,
            Object::Schema(schema) => &schema.name,
            Object::View(view) => &view.name,
            Object::Sequence(sequence) => &sequence.name,
            Object::Enum(ty) => &ty.name,
            Object::Domain(domain) => &domain.name,
        }
    }

    /// The word for its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Object::Database(_) => "database",
            Object::Schema(_) => "schema",
            Object::View(_) => "view",
            Object::Sequence(_) => "sequence",
            Object::Enum(_) | Object::Domain(_) => "type",
        }
    }

    /// The schema of a relation or a type.
    pub fn schema(&self) -> Option<SchemaId> {
        match self {
            Object::Database(_) | Object::Schema(_) => None,
            Object::View(view) => Some(view.schema),
            Object::Sequence(sequence) => Some(sequence.schema),
            Object::Enum(ty) => Some(ty.schema),
            Object::Domain(domain) => Some(domain.schema),
        }
    }

    /// Whether it is a type, not a relation.
    pub fn is_type(&self) -> bool {
        matches!(self, Object::Enum(_) | Object::Domain(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enum_of(orders: &[i64]) -> EnumType {
        let labels = orders.iter().map(|order| Label { order: *order, name: order.to_string().into() }).collect();
        EnumType { id: ObjectId(16_384), schema: FIRST_SCHEMA, name: "e".to_owned(), labels, label_oids: Vec::new() }
    }

    /// Labels before, after and between others get orders there; the 33rd between the same two gets none.
    #[test]
    fn orders_of_new_labels_are_between_their_neighbours() {
        let orders: Vec<i64> = EnumType::orders(2).collect();
        assert_eq!(enum_of(&[]).order_at(0), Some(orders[0]));
        assert_eq!(enum_of(&orders).order_at(0), Some(orders[0] - LABEL_STEP));
        assert_eq!(enum_of(&orders).order_at(2), Some(orders[1] + LABEL_STEP));
        let mut labels = orders.clone();
        for _ in 0..32 {
            let order = enum_of(&labels).order_at(1).unwrap();
            assert!(labels[0] < order && order < labels[1]);
            labels.insert(1, order);
        }
        assert_eq!(enum_of(&labels).order_at(1), None);
        assert_eq!(enum_of(&[i64::MAX]).order_at(1), None);
    }
}
