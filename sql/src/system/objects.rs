//! The objects of the system catalog that are no tables: schemas, the role, the indexes of tables, and the OIDs of what
//! the catalog does not number.
//!
//! OIDs are the same on all nodes: constants, ids of the catalog, or computed from them ([`default_oid`]).

use std::sync::Arc;

use super::env::SystemEnv;
use super::relations::{self, INFORMATION_SCHEMA, PG_CATALOG};
use crate::catalog::Catalog;
use crate::object::{Domain, Object, PUBLIC, SchemaId, Sequence, View};
use crate::table::{Column, ColumnId, IndexId, IndexedValue, StorageId, Table, TableId, quote_identifier};
use pgtypes::codec::key::KeyOrder;
use pgtypes::{Oid, SqlType};

/// The schemas of the system.
pub(super) const SYSTEM_SCHEMAS: [(Oid, &str); 2] = [PG_CATALOG, INFORMATION_SCHEMA];
/// The role that owns everything.
pub(super) const OWNER: (Oid, &str) = (Oid(10), "postgres");
/// The role that the owner of the database belongs to. It owns the schema `public`, and cannot log in.
pub(super) const DATABASE_OWNER: (Oid, &str) = (Oid(6171), "pg_database_owner");
/// The access method of tables.
pub(super) const HEAP: Oid = Oid(2);
/// The access method of indexes.
pub(super) const BTREE: Oid = Oid(403);
/// The least OID of what users create.
const FIRST_USER: u32 = 16_384;
/// OIDs from here on are derived.
const DERIVED: u32 = 1 << 31;
/// The bits of a derived OID for the column; those above hold the table's id.
const COLUMN_BITS: u32 = 11;

/// The OID of a column's default: bit 31, twenty bits of the table's id, eleven of the column's. Two tables share OIDs
/// only if 2^20 ids lie between them.
pub(super) fn default_oid(table: TableId, column: ColumnId) -> Oid {
    let mask = (1 << COLUMN_BITS) - 1;
    Oid(DERIVED | ((table.0 << COLUMN_BITS) & (DERIVED - 1)) | (u32::from(column.0) & mask))
}

/// The OID of the row type of a user's table or view, or none: that of the default that column 0 would have.
pub(super) fn row_type(relation: Oid) -> Oid {
    if relation.0 < FIRST_USER { Oid::NONE } else { default_oid(TableId(relation.0), ColumnId(0)) }
}

/// The table or view whose row type has an OID.
pub(super) fn of_row_type(catalog: &Catalog, row_type_oid: Oid) -> Option<Oid> {
    if row_type_oid.0 < DERIVED {
        return None;
    }
    with_rows(catalog).into_iter().map(|(relation, ..)| relation).find(|relation| row_type(*relation) == row_type_oid)
}

/// The users' tables and views: OIDs, names, schemas.
pub(super) fn with_rows(catalog: &Catalog) -> Vec<(Oid, String, SchemaId)> {
    let tables = catalog.tables().into_iter().map(|table| (Oid(table.id.0), table.name.clone(), table.schema));
    let relations = catalog.relations();
    let views = relations.iter().filter_map(|object| match &**object {
        Object::View(view) => Some((Oid(view.id.0), view.name.clone(), view.schema)),
        _ => None,
    });
    tables.chain(views).collect()
}

/// An index of a table, as the system catalog shows it.
#[derive(Clone, Debug)]
pub(super) struct IndexView {
    pub(super) oid: Oid,
    pub(super) name: String,
    /// Its key, in its order.
    pub(super) keys: Vec<KeyView>,
    /// The places of the columns that it holds beside the key.
    pub(super) included: Vec<usize>,
    pub(super) is_unique: bool,
    pub(super) nulls_not_distinct: bool,
    pub(super) is_primary: bool,
    /// The OID of the constraint that it is for.
    pub(super) constraint: Option<Oid>,
    /// The condition of the rows that it holds.
    pub(super) predicate: Option<String>,
}

/// A part of an index's key.
#[derive(Clone, Debug)]
pub(super) struct KeyView {
    /// The place of the column in the table; `None` for an expression.
    pub(super) column: Option<usize>,
    /// The column or the expression as SQL.
    pub(super) text: String,
    pub(super) ty: SqlType,
    pub(super) order: KeyOrder,
}

/// The indexes of a table, the primary key first. A constraint has the OID of its index: they are in different
/// catalogs.
pub(super) fn indexes(table: &Table, catalog: &Catalog) -> Vec<IndexView> {
    let plain = |at: &usize| {
        let column = table.columns.get(*at)?;
        let order = KeyOrder { descends: false, nulls_first: false };
        Some(KeyView { column: Some(*at), text: quote_identifier(&column.name), ty: column.ty, order })
    };
    let key = (!table.has_hidden_key()).then(|| IndexView {
        oid: Oid(table.key_id.0),
        name: table.key_name.clone(),
        keys: table.primary_key.iter().filter_map(plain).collect(),
        included: Vec::new(),
        is_unique: true,
        nulls_not_distinct: false,
        is_primary: true,
        constraint: Some(Oid(table.key_id.0)),
        predicate: None,
    });
    let others = table.indexes.iter().map(|index| {
        let names = index.column_names(table);
        let keys = index.columns.iter().zip(names).enumerate().map(|(at, (column, text))| KeyView {
            column: match column.value {
                IndexedValue::Column(at) => Some(at),
                IndexedValue::Expression { .. } => None,
            },
            text: catalog.shown_text(&text).into_owned(),
            ty: index.type_of(table, at).unwrap_or(SqlType::UNKNOWN),
            order: column.order,
        });
        IndexView {
            oid: Oid(index.id.0),
            name: index.name.clone(),
            keys: keys.collect(),
            included: index.included.clone(),
            is_unique: index.unique,
            nulls_not_distinct: index.nulls_not_distinct,
            is_primary: false,
            constraint: index.is_constraint.then_some(Oid(index.id.0)),
            predicate: index.predicate.as_deref().map(|text| catalog.shown_text(text).into_owned()),
        }
    });
    key.into_iter().chain(others).collect()
}

/// The index of an OID, with its table.
pub(super) fn index_by_oid(catalog: &Catalog, oid: Oid) -> Option<(Arc<Table>, IndexView)> {
    let table = catalog.table_of_part(oid.0)?;
    let index = indexes(table, catalog).into_iter().find(|index| index.oid == oid)?;
    Some((Arc::clone(table), index))
}

impl IndexView {
    /// The columns of its key.
    pub(super) fn columns<'t>(&'t self, table: &'t Table) -> impl Iterator<Item = &'t Column> {
        self.keys.iter().filter_map(|key| table.columns.get(key.column?))
    }

    /// The names and types of its attributes.
    pub(super) fn attributes(&self, table: &Table) -> Vec<(String, SqlType)> {
        let of_key = |key: &KeyView| match key.column.and_then(|at| table.columns.get(at)) {
            Some(column) => (column.name.clone(), column.ty),
            None => (expression_name(&key.text).to_owned(), key.ty),
        };
        let included = self.included.iter().filter_map(|at| table.columns.get(*at));
        let included = included.map(|column| (column.name.clone(), column.ty));
        self.keys.iter().map(of_key).chain(included).collect()
    }
}

/// The name of an expression's column: that of the function that it calls.
fn expression_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(0);
    if end > 0 && text[end..].starts_with('(') { &text[..end] } else { "expr" }
}

/// All schemas of the session's database.
pub(super) fn schemas(catalog: &Catalog) -> Vec<(Oid, &str)> {
    let own = catalog.schemas().map(|schema| (Oid(schema.id.0), schema.name.as_str()));
    SYSTEM_SCHEMAS.into_iter().chain(own).collect()
}

/// The name of a schema.
pub(super) fn schema_name(catalog: &Catalog, oid: Oid) -> Option<&str> {
    let system = SYSTEM_SCHEMAS.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
    let own = || catalog.schemas().find(|schema| schema.id == SchemaId(oid.0));
    system.or_else(|| own().map(|schema| schema.name.as_str()))
}

/// A view, as the system catalog shows it.
#[derive(Clone, Debug)]
pub(super) struct ViewShown {
    /// The name of its schema.
    pub(super) schema: String,
    /// A table of its name, OID and columns.
    pub(super) table: Table,
    /// Its query, as `pg_get_viewdef` prints it.
    pub(super) definition: String,
}

/// The users' domains of the session's database, by their OIDs.
pub(super) fn domains(catalog: &Catalog) -> Vec<Domain> {
    let one = |object: &Arc<Object>| match &**object {
        Object::Domain(domain) => Some(domain.clone()),
        _ => None,
    };
    catalog.relations().iter().filter_map(one).collect()
}

/// The users' views by their ids.
pub(super) fn views(catalog: &Catalog) -> Vec<ViewShown> {
    let shown = |object: &Arc<Object>| match &**object {
        Object::View(view) => Some(view_shown(catalog, view)),
        _ => None,
    };
    catalog.relations().iter().filter_map(shown).collect()
}

fn view_shown(catalog: &Catalog, view: &View) -> ViewShown {
    let column = |(at, (name, ty)): (usize, &(String, SqlType))| Column {
        id: ColumnId(u16::try_from(at + 1).unwrap_or(u16::MAX)),
        name: name.clone(),
        ty: *ty,
        not_null: false,
        default: None,
        generated: None,
        identity: None,
        domain: None,
    };
    let table = Table {
        id: TableId(view.id.0),
        schema: view.schema,
        storage: StorageId(0),
        name: view.name.clone(),
        columns: view.columns.iter().enumerate().map(column).collect(),
        primary_key: Vec::new(),
        key_name: String::new(),
        key_id: IndexId(0),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(0),
    };
    ViewShown {
        schema: schema_of(catalog, &table).to_owned(),
        table,
        definition: format!(" {};", catalog.shown_text(&view.query)),
    }
}

/// The name of a table's schema.
pub(super) fn schema_of<'c>(catalog: &'c Catalog, table: &Table) -> &'c str {
    catalog.schema_by_id(table.schema).map_or("", |schema| &schema.name)
}

/// The OID of a schema.
pub(super) fn schema_oid(catalog: &Catalog, name: &str) -> Option<Oid> {
    let system = SYSTEM_SCHEMAS.iter().find(|(_, known)| *known == name).map(|(oid, _)| *oid);
    system.or_else(|| catalog.schema(name).map(|schema| Oid(schema.id.0)))
}

/// The OID of a role: that of the owner, or one derived from the name, which any client may log in with.
pub(super) fn role_oid(name: &str) -> Oid {
    if name == OWNER.1 {
        return OWNER.0;
    }
    // FNV-1a, below the derived OIDs and above those that tables get for a long time.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    Oid((hash & 0x0fff_ffff) | 0x4000_0000)
}

/// The roles that exist for a session and can log in: the owner, and the session's own.
pub(super) fn roles(user: &str) -> Vec<(Oid, &str)> {
    let mut roles = vec![OWNER];
    if user != OWNER.1 {
        roles.push((role_oid(user), user));
    }
    roles
}

/// All roles that exist for a session.
pub(super) fn all_roles(user: &str) -> Vec<(Oid, &str)> {
    let mut all = roles(user);
    all.push(DATABASE_OWNER);
    all
}

/// The owner of a schema.
pub(super) fn owner_of_schema(name: &str) -> (Oid, &'static str) {
    if name == PUBLIC { DATABASE_OWNER } else { OWNER }
}

/// The sequences of the session's database, by their ids.
pub(super) fn sequences(catalog: &Catalog) -> Vec<Sequence> {
    let relations = catalog.relations();
    let sequence = |object: &Arc<Object>| match &**object {
        Object::Sequence(sequence) => Some(sequence.clone()),
        _ => None,
    };
    relations.iter().filter_map(sequence).collect()
}

/// The user's table of an OID.
pub(super) fn table_of<'e>(relation: Oid, env: &SystemEnv<'e>) -> Option<&'e Table> {
    env.catalog().seen_table(TableId(relation.0)).map(|table| &**table)
}

/// The columns of a relation; `None` if there is none.
pub(super) fn described<'e>(relation: Oid, env: &SystemEnv<'e>) -> Option<&'e Table> {
    relations::by_oid(relation).map(|relation| &*relation.table).or_else(|| table_of(relation, env))
}

/// Whether a role of this OID exists for the session.
pub(super) fn is_role(wanted: Oid, env: &SystemEnv<'_>) -> bool {
    all_roles(env.session.user()).iter().any(|(oid, _)| *oid == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_have_oids_of_their_own() {
        let mut seen = std::collections::HashSet::new();
        for table in [16_384, 16_386, 1_048_575] {
            for column in [1, 2, 1600] {
                let oid = default_oid(TableId(table), ColumnId(column));
                assert!(oid.0 >= DERIVED && seen.insert(oid), "{table} {column}");
            }
        }
    }

    #[test]
    fn roles_have_oids_by_their_names() {
        assert_eq!((role_oid("postgres"), roles("postgres").len()), (OWNER.0, 1));
        assert_eq!(roles("ann"), [OWNER, (role_oid("ann"), "ann")]);
        assert!(role_oid("ann") != role_oid("bob") && role_oid("ann").0 < DERIVED);
    }
}
