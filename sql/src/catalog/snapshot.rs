//! The objects of one catalog version, as a session sees them.
//!
//! All sessions of a node share the objects. A session sees those of its database, and looks names up in the schemas of
//! its search path ([`Catalog::seen_from`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kv::client::ScanRange;
use tso::Timestamp;
use txn::Transaction;

use super::comments::{self, Comments};
use super::descriptor;
use super::keys::{self, OwnerRecord, VersionRecord};
use super::object_record;
use super::statistics::NodeStatistics;
use crate::codec::{self, CodecError};
use crate::error::{SqlError, storage_error};
use crate::object::{
    Database, DatabaseId, Domain, EnumType, FIRST_DATABASE, FIRST_SCHEMA, Object, ObjectId, PUBLIC, Schema, SchemaId,
    Sequence, View,
};
use crate::table::{Index, StorageId, Table, TableId, quote_identifier};

/// Records per page when a catalog is loaded.
const PAGE_ROWS: u32 = 256;

/// The name by which a session calls the schema of its temporary relations.
pub(crate) const OWN_NAME: &str = "pg_temp";

/// The catalog of one version, as a session sees it.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Grows with every step of a schema change. After a transaction's own schema change, a number that no other
    /// catalog has.
    pub version: u64,
    objects: Arc<Objects>,
    sight: Sight,
    /// What the node knows of its tables; nothing for a catalog of the past.
    statistics: NodeStatistics,
}

/// What a session sees of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Its database.
    pub(crate) database: DatabaseId,
    /// Where names without a schema are looked up, in this order. New objects are created in the first one.
    pub(crate) path: Arc<[SchemaId]>,
    /// The schema of its temporary relations, where names are looked up first.
    pub(crate) temporary: Option<SchemaId>,
}

impl Sight {
    /// Where names without a schema are looked up, in this order.
    pub(crate) fn searched(&self) -> impl Iterator<Item = SchemaId> {
        self.temporary.into_iter().chain(self.path.iter().copied().filter(|id| Some(*id) != self.temporary))
    }
}

/// All objects of a version.
#[derive(Clone, Debug, Default)]
struct Objects {
    /// By schema and folded name.
    relations: HashMap<SchemaId, HashMap<String, Relation>>,
    /// The users' types, by schema and folded name.
    types: HashMap<SchemaId, HashMap<String, Arc<Object>>>,
    tables: HashMap<TableId, Arc<Table>>,
    /// The tables of indexes and constraints, by the OIDs of these.
    parts: HashMap<u32, TableId>,
    others: HashMap<ObjectId, Arc<Object>>,
    /// Those among `others`, by id.
    databases: BTreeMap<DatabaseId, Database>,
    schemas: BTreeMap<SchemaId, Schema>,
    /// The comments on objects.
    comments: BTreeMap<ObjectId, Comments>,
    /// The closed tables, with the transactions that close them.
    closed: HashMap<TableId, Timestamp>,
}

/// What the name of a relation leads to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Relation {
    /// A table.
    Table(Arc<Table>),
    /// An index, of this table.
    Index(Arc<Table>),
    /// A view or a sequence; where a name of a type is looked up, a type.
    Object(Arc<Object>),
}

impl Relation {
    /// Whether both are the same, unchanged.
    pub(crate) fn is_same(&self, other: &Relation) -> bool {
        match (self, other) {
            (Relation::Table(a), Relation::Table(b)) | (Relation::Index(a), Relation::Index(b)) => {
                Arc::ptr_eq(a, b) || a == b
            }
            (Relation::Object(a), Relation::Object(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }

    /// The OID in `pg_class`. `name` is the name that has led to it.
    pub(crate) fn oid(&self, name: &str) -> u32 {
        match self {
            Relation::Table(table) => table.id.0,
            Relation::Index(table) => table.index(name).map_or(table.key_id.0, |index| index.id.0),
            Relation::Object(object) => object.id().0,
        }
    }

    /// The table.
    pub(crate) fn table(&self) -> Option<&Arc<Table>> {
        match self {
            Relation::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// Whether a statement may use a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may.
    Open,
    /// Another transaction is about to drop or truncate it.
    Closed,
    /// It has changed or is gone.
    Changed,
}

impl Default for Sight {
    fn default() -> Sight {
        Sight { database: FIRST_DATABASE, path: Arc::new([FIRST_SCHEMA]), temporary: None }
    }
}

impl Objects {
    fn new(tables: Vec<Arc<Table>>, others: Vec<Arc<Object>>, closed: HashMap<TableId, Timestamp>) -> Objects {
        let mut objects = Objects { closed, ..Objects::default() };
        tables.into_iter().for_each(|table| objects.add_table(table));
        others.into_iter().for_each(|object| objects.add(object));
        objects
    }

    fn add_table(&mut self, table: Arc<Table>) {
        let names = self.relations.entry(table.schema).or_default();
        names.extend(index_names(&table).map(|name| (name.to_owned(), Relation::Index(table.clone()))));
        names.insert(table.name.clone(), Relation::Table(table.clone()));
        self.parts.extend(part_oids(&table).map(|oid| (oid, table.id)));
        self.tables.insert(table.id, table);
    }

    fn add(&mut self, object: Arc<Object>) {
        match &*object {
            Object::Database(database) => drop(self.databases.insert(database.id, database.clone())),
            Object::Schema(schema) => drop(self.schemas.insert(schema.id, schema.clone())),
            Object::View(View { schema, name, .. }) | Object::Sequence(Sequence { schema, name, .. }) => {
                let names = self.relations.entry(*schema).or_default();
                names.insert(name.clone(), Relation::Object(object.clone()));
            }
            Object::Enum(EnumType { schema, name, .. }) | Object::Domain(Domain { schema, name, .. }) => {
                self.types.entry(*schema).or_default().insert(name.clone(), object.clone());
            }
        }
        self.others.insert(object.id(), object);
    }

    fn remove_table(&mut self, id: TableId) {
        let Some(table) = self.tables.remove(&id) else { return };
        for oid in part_oids(&table) {
            self.parts.remove(&oid);
        }
        let Some(names) = self.relations.get_mut(&table.schema) else { return };
        names.remove(&table.name);
        index_names(&table).for_each(|name| drop(names.remove(name)));
    }

    fn remove(&mut self, id: ObjectId) {
        let Some(object) = self.others.remove(&id) else { return };
        match &*object {
            Object::Database(database) => drop(self.databases.remove(&database.id)),
            Object::Schema(schema) => drop(self.schemas.remove(&schema.id)),
            Object::View(View { schema, name, .. }) | Object::Sequence(Sequence { schema, name, .. }) => {
                self.relations.get_mut(schema).map(|names| names.remove(name));
            }
            Object::Enum(EnumType { schema, name, .. }) | Object::Domain(Domain { schema, name, .. }) => {
                drop(self.types.get_mut(schema).map(|names| names.remove(name)));
            }
        }
    }
}

/// What a new cluster has.
pub(super) fn first_objects() -> [Object; 2] {
    let (name, public) = ("postgres".to_owned(), PUBLIC.to_owned());
    [
        Object::Database(Database { id: FIRST_DATABASE, name }),
        Object::Schema(Schema { id: FIRST_SCHEMA, database: FIRST_DATABASE, name: public, session_node: None }),
    ]
}

impl Catalog {
    /// A catalog of these tables, in the first database.
    pub fn new(version: u64, tables: impl IntoIterator<Item = Table>) -> Catalog {
        let others = first_objects().into_iter().map(Arc::new).collect();
        Catalog::of(version, Objects::new(tables.into_iter().map(Arc::new).collect(), others, HashMap::new()))
    }

    fn of(version: u64, objects: Objects) -> Catalog {
        Catalog { version, objects: Arc::new(objects), sight: Sight::default(), statistics: NodeStatistics::default() }
    }

    /// Loads the catalog at a transaction's snapshot. The transaction has no schema changes of its own.
    pub async fn load(txn: &Transaction) -> Result<Catalog, SqlError> {
        let record = txn.get(&keys::version()).await.map_err(storage_error)?;
        let record = record.ok_or_else(|| CodecError::new("catalog", "not initialised"))?;
        Catalog::load_version(txn, VersionRecord::decode(&record)?.version, None).await
    }

    /// Loads the catalog of a version, which the caller has read in the same transaction. An object that is the same as
    /// in `previous` is shared with it.
    pub(super) async fn load_version(
        txn: &Transaction,
        version: u64,
        previous: Option<&Catalog>,
    ) -> Result<Catalog, SqlError> {
        let mut tables = Vec::new();
        for (_, value) in read_range(txn, keys::tables()).await? {
            let table = descriptor::decode(&value)?;
            let shared = previous.and_then(|previous| previous.by_id(table.id)).filter(|known| ***known == table);
            tables.push(shared.cloned().unwrap_or_else(|| Arc::new(table)));
        }
        let mut others = Vec::new();
        let mut comments = BTreeMap::new();
        for (key, value) in read_range(txn, keys::objects()).await? {
            if let Some(object) = keys::commented(&key) {
                comments.insert(object, comments::decode(&value)?);
                continue;
            }
            let object = object_record::decode(&value)?;
            let shared = previous.and_then(|previous| previous.object(object.id())).filter(|known| ***known == object);
            others.push(shared.cloned().unwrap_or_else(|| Arc::new(object)));
        }
        let mut closed = HashMap::new();
        for (key, value) in read_range(txn, keys::all_closed()).await? {
            let table = keys::closed_table(&key).ok_or_else(|| CodecError::new("closed table", "malformed key"))?;
            closed.insert(table, OwnerRecord::decode(&value)?.owner);
        }
        let objects = Objects { comments, ..Objects::new(tables, others, closed) };
        Ok(Catalog::of(version, objects))
    }

    /// The same with the statistics of the node.
    pub(super) fn with_statistics(self, statistics: NodeStatistics) -> Catalog {
        Catalog { statistics, ..self }
    }

    /// The statistics of its tables.
    pub(crate) fn statistics(&self) -> &NodeStatistics {
        &self.statistics
    }

    /// The same objects, seen from a session.
    pub(crate) fn seen_from(&self, sight: &Sight) -> Catalog {
        Catalog { sight: sight.clone(), ..self.clone() }
    }

    /// From where it is seen.
    pub(crate) fn sight(&self) -> &Sight {
        &self.sight
    }

    /// The relation of a folded name: of the schema, or of the first schema of the search path that has it.
    pub(crate) fn relation(&self, schema: Option<&str>, name: &str) -> Option<&Relation> {
        match schema {
            Some(schema) => self.relation_in(self.schema(schema)?.id, name),
            None => self.sight.searched().find_map(|schema| self.relation_in(schema, name)),
        }
    }

    /// The relation of a folded name in a schema.
    pub(crate) fn relation_in(&self, schema: SchemaId, name: &str) -> Option<&Relation> {
        self.objects.relations.get(&schema)?.get(name)
    }

    /// The user's type of a folded name: of the schema, or of the first schema of the search path that has it.
    pub(crate) fn user_type(&self, schema: Option<SchemaId>, name: &str) -> Option<&Arc<Object>> {
        match schema {
            Some(schema) => self.objects.types.get(&schema)?.get(name),
            None => self.sight.searched().find_map(|schema| self.user_type(Some(schema), name)),
        }
    }

    /// Schema and name of the relation with an OID, of the session's database.
    pub(crate) fn name_of_relation(&self, oid: u32) -> Option<(SchemaId, &str)> {
        if let Some(table) = self.seen_table(TableId(oid)) {
            return Some((table.schema, &table.name));
        }
        if let Some(object) = self.object(ObjectId(oid)).filter(|object| !object.is_type()) {
            let schema = object.schema().filter(|schema| self.is_seen(*schema))?;
            return Some((schema, object.name()));
        }
        let table = self.table_of_part(oid)?;
        if table.key_id.0 == oid {
            return Some((table.schema, &table.key_name));
        }
        let index = table.indexes.iter().find(|index| index.id.0 == oid)?;
        Some((table.schema, &index.name))
    }

    /// The table of an id, of the session's database.
    pub(crate) fn seen_table(&self, id: TableId) -> Option<&Arc<Table>> {
        self.by_id(id).filter(|table| self.is_seen(table.schema))
    }

    /// The table that has an index or a constraint of this OID, of the session's database.
    pub(crate) fn table_of_part(&self, oid: u32) -> Option<&Arc<Table>> {
        self.seen_table(*self.objects.parts.get(&oid)?)
    }

    /// Whether the search path leads to the relation of this schema.
    pub(crate) fn is_visible(&self, schema: SchemaId, name: &str) -> bool {
        let first = self.sight.searched().find(|schema| self.relation_in(*schema, name).is_some());
        first == Some(schema)
    }

    /// A relation as SQL: with its schema, unless the search path finds it.
    pub(crate) fn relation_text(&self, schema: SchemaId, name: &str) -> String {
        let shown = quote_identifier(name);
        match self.schema_by_id(schema).filter(|_| !self.is_visible(schema, name)) {
            Some(schema) => format!("{}.{shown}", quote_identifier(&schema.name)),
            None => shown,
        }
    }

    /// The table of a folded name, looked up in the search path.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.relation(None, name)?.table()
    }

    /// The tables of the session's database, by their ids.
    pub(crate) fn tables(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<Arc<Table>> =
            self.objects.tables.values().filter(|table| self.is_seen(table.schema)).cloned().collect();
        tables.sort_unstable_by_key(|table| table.id);
        tables
    }

    /// The tables of all databases.
    pub(crate) fn all_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.objects.tables.values()
    }

    /// Whether a table of the session's database has a constraint of this name.
    pub(crate) fn has_constraint(&self, name: &str) -> bool {
        self.tables().iter().any(|table| table.has_constraint(name))
    }

    /// The views, sequences and types of the session's database, by their ids.
    pub(crate) fn relations(&self) -> Vec<Arc<Object>> {
        let is_seen = |object: &&Arc<Object>| object.schema().is_some_and(|schema| self.is_seen(schema));
        let mut relations: Vec<Arc<Object>> = self.objects.others.values().filter(is_seen).cloned().collect();
        relations.sort_unstable_by_key(|object| object.id());
        relations
    }

    /// All that belongs to a database, itself included.
    pub(crate) fn content_of(&self, database: DatabaseId) -> (Vec<Arc<Table>>, Vec<Arc<Object>>) {
        let within = |schema| self.schema_by_id(schema).is_some_and(|schema| schema.database == database);
        let tables = self.all_tables().filter(|table| within(table.schema)).cloned().collect();
        let objects = self.objects.others.values().filter(|object| match &***object {
            Object::Database(other) => other.id == database,
            Object::Schema(schema) => schema.database == database,
            Object::View(view) => within(view.schema),
            Object::Sequence(sequence) => within(sequence.schema),
            Object::Enum(ty) => within(ty.schema),
            Object::Domain(domain) => within(domain.schema),
        });
        (tables, objects.cloned().collect())
    }

    /// The schemas of the session's database, by their ids.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.objects.schemas.values().filter(|schema| schema.database == self.sight.database)
    }

    /// The databases, by their ids.
    pub(crate) fn databases(&self) -> impl Iterator<Item = &Database> {
        self.objects.databases.values()
    }

    /// The database of a folded name.
    pub(crate) fn database(&self, name: &str) -> Option<&Database> {
        self.databases().find(|database| database.name == name)
    }

    /// Whether a folded name is that of the session's database.
    pub(crate) fn is_own_database(&self, name: &str) -> bool {
        self.database(name).is_some_and(|database| database.id == self.sight.database)
    }

    /// The name of the first schema of the search path.
    pub(crate) fn current_schema(&self) -> Option<&str> {
        let schema = self.schema_by_id(*self.sight.path.first()?)?;
        Some(&schema.name)
    }

    /// The schema of a folded name in the session's database.
    pub(crate) fn schema(&self, name: &str) -> Option<&Schema> {
        if name == OWN_NAME {
            return self.schema_by_id(self.sight.temporary?);
        }
        self.schemas().find(|schema| schema.name == name)
    }

    /// The schema of an id.
    pub(crate) fn schema_by_id(&self, id: SchemaId) -> Option<&Schema> {
        self.objects.schemas.get(&id)
    }

    /// Whether a schema holds temporary relations.
    pub(crate) fn is_temporary(&self, schema: SchemaId) -> bool {
        self.schema_by_id(schema).is_some_and(|schema| schema.session_node.is_some())
    }

    /// The schemas of temporary relations, of all databases.
    pub(super) fn temporary_schemas(&self) -> impl Iterator<Item = &Schema> {
        self.objects.schemas.values().filter(|schema| schema.session_node.is_some())
    }

    /// The views and sequences of a schema of any database.
    pub(super) fn objects_of(&self, schema: SchemaId) -> Vec<Arc<Object>> {
        self.objects.others.values().filter(|object| object.schema() == Some(schema)).cloned().collect()
    }

    pub(super) fn is_seen(&self, schema: SchemaId) -> bool {
        self.schema_by_id(schema).is_some_and(|schema| schema.database == self.sight.database)
    }

    /// The table of an id.
    pub(crate) fn by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.objects.tables.get(&id)
    }

    /// Whether a user's table, index, view or sequence has this id.
    pub(crate) fn has_relation(&self, id: ObjectId) -> bool {
        let is_object = || self.object(id).is_some_and(|object| !object.is_type());
        self.by_id(TableId(id.0)).is_some() || self.table_of_part(id.0).is_some() || is_object()
    }

    /// The object of an id that is no table.
    pub(crate) fn object(&self, id: ObjectId) -> Option<&Arc<Object>> {
        self.objects.others.get(&id)
    }

    /// The table with this storage.
    pub(super) fn by_storage(&self, storage: StorageId) -> Option<&Arc<Table>> {
        self.all_tables().find(|table| table.storage == storage)
    }

    /// The table of a row's key, or of an index entry's, with its database.
    pub(crate) fn table_of_key(&self, key: &kv::Key) -> Option<(Option<DatabaseId>, &Arc<Table>)> {
        let table = match codec::index::split_entry_key(key.as_bytes()) {
            Some((storage, _)) => self.index_of_storage(storage)?.0,
            None => self.by_storage(codec::key::split_row_key(key.as_bytes())?.0)?,
        };
        Some((self.schema_by_id(table.schema).map(|schema| schema.database), table))
    }

    /// The index of a storage, and its table.
    pub(super) fn index_of_storage(&self, storage: StorageId) -> Option<(&Arc<Table>, &Index)> {
        let found = |table: &'_ Arc<Table>| table.indexes.iter().position(|index| index.storage == storage);
        let (table, at) = self.all_tables().find_map(|table| Some((table, found(table)?)))?;
        Some((table, table.indexes.get(at)?))
    }

    /// Whether no table is closed.
    pub(crate) fn is_open(&self) -> bool {
        self.objects.closed.is_empty()
    }

    /// The transaction that closes a table, if it is closed.
    pub(super) fn closed_by(&self, table: TableId) -> Option<Timestamp> {
        self.objects.closed.get(&table).copied()
    }

    /// Whether `owner` may use a table that was planned with this descriptor.
    pub(super) fn access(&self, table: &Arc<Table>, owner: Timestamp) -> Access {
        match self.by_id(table.id) {
            Some(now) if Arc::ptr_eq(now, table) || **now == **table => match self.closed_by(table.id) {
                Some(closing) if closing != owner => Access::Closed,
                _ => Access::Open,
            },
            _ => Access::Changed,
        }
    }

    /// This catalog with one table added or replaced, under another version.
    pub(super) fn with(&self, version: u64, table: Table) -> Catalog {
        self.changed(version, |objects| {
            objects.remove_table(table.id);
            objects.add_table(Arc::new(table));
        })
    }

    /// This catalog with another descriptor of a table.
    pub(crate) fn with_table(&self, table: Table) -> Catalog {
        self.with(self.version, table)
    }

    /// This catalog without a table, under another version.
    pub(super) fn without(&self, version: u64, table: TableId) -> Catalog {
        self.changed(version, |objects| objects.remove_table(table))
    }

    /// This catalog with an object added or replaced, under another version.
    pub(super) fn with_object(&self, version: u64, object: Object) -> Catalog {
        self.changed(version, |objects| {
            objects.remove(object.id());
            objects.add(Arc::new(object));
        })
    }

    /// This catalog with another form of an object.
    pub(crate) fn with_renamed(&self, object: Object) -> Catalog {
        self.with_object(self.version, object)
    }

    /// This catalog without an object that is no table: a type, a view, a sequence.
    pub(crate) fn without_dropped(&self, id: ObjectId) -> Catalog {
        self.without_object(self.version, id)
    }

    /// This catalog without a table.
    pub(crate) fn without_table(&self, table: TableId) -> Catalog {
        self.without(self.version, table)
    }

    /// This catalog without an object, under another version.
    pub(super) fn without_object(&self, version: u64, id: ObjectId) -> Catalog {
        self.changed(version, |objects| objects.remove(id))
    }

    /// The comments on an object.
    pub(crate) fn comments(&self, object: ObjectId) -> Option<&Comments> {
        self.objects.comments.get(&object)
    }

    /// All comments, of all databases.
    pub(crate) fn all_comments(&self) -> impl Iterator<Item = (ObjectId, &Comments)> {
        self.objects.comments.iter().map(|(object, comments)| (*object, comments))
    }

    /// This catalog with other comments on an object, under another version.
    pub(super) fn with_comments(&self, version: u64, object: ObjectId, comments: Comments) -> Catalog {
        self.changed(version, |objects| match comments.is_empty() {
            true => drop(objects.comments.remove(&object)),
            false => drop(objects.comments.insert(object, comments)),
        })
    }

    fn changed(&self, version: u64, change: impl FnOnce(&mut Objects)) -> Catalog {
        let mut objects = (*self.objects).clone();
        change(&mut objects);
        Catalog { version, objects: Arc::new(objects), ..self.clone() }
    }
}

/// The names of a table's indexes, that of its primary key included.
pub(crate) fn index_names(table: &Table) -> impl Iterator<Item = &str> {
    let names = std::iter::once(&table.key_name).chain(table.indexes.iter().map(|index| &index.name));
    names.map(String::as_str).filter(|name| !name.is_empty())
}

/// The OIDs of a table's indexes and constraints. A constraint that has an index shares its OID.
fn part_oids(table: &Table) -> impl Iterator<Item = u32> {
    let key = (!table.has_hidden_key()).then_some(table.key_id.0);
    let indexes = table.indexes.iter().map(|index| index.id.0);
    let constraints = table.checks.iter().map(|check| check.id).chain(table.foreign_keys.iter().map(|key| key.id));
    key.into_iter().chain(indexes).chain(constraints.map(|id| id.0))
}

/// The records of a range at a transaction's snapshot.
pub(super) async fn read_range(
    txn: &Transaction,
    (start, end): (kv::Key, kv::Key),
) -> Result<Vec<(kv::Key, bytes::Bytes)>, SqlError> {
    let mut range = ScanRange { start, end, reverse: false };
    let mut records = Vec::new();
    loop {
        let page = txn.scan(&range, PAGE_ROWS).await.map_err(storage_error)?;
        records.extend(page.pairs);
        match page.resume {
            Some(resume) if resume > range.start => range.start = resume,
            Some(_) => return Err(CodecError::new("page of the catalog", "does not advance").into()),
            None => return Ok(records),
        }
    }
}
