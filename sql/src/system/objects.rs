//! The objects of the system catalog that are no tables: schemas, the role, the indexes of tables, and the OIDs of what
//! the catalog does not number.
//!
//! OIDs are the same on all nodes: constants, ids of the catalog, or computed from them ([`derived`]).

use std::sync::Arc;

use super::env::SystemEnv;
use super::relations::{self, INFORMATION_SCHEMA, PG_CATALOG};
use crate::catalog::Catalog;
use crate::object::{Object, SchemaId, Sequence};
use crate::table::{Column, Table, TableId};
use pgtypes::Oid;

/// The schemas of the system.
pub(super) const SYSTEM_SCHEMAS: [(Oid, &str); 2] = [PG_CATALOG, INFORMATION_SCHEMA];
/// The role that owns everything.
pub(super) const OWNER: (Oid, &str) = (Oid(10), "postgres");
/// The access method of tables.
pub(super) const HEAP: Oid = Oid(2);
/// The access method of indexes.
pub(super) const BTREE: Oid = Oid(403);
/// OIDs from here on are derived.
const DERIVED: u32 = 1 << 31;
/// The bits of a derived OID for the part of a table; those above hold the table's id.
const PART_BITS: u32 = 11;

/// A part of a table that the catalog does not number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The constraint of its primary key.
    KeyConstraint,
    /// The default of a column.
    Default(u16),
}

/// The OID of a part of a table: bit 31, twenty bits of the table's id, eleven of the part. Two tables share OIDs only
/// if 2^20 ids lie between them.
pub(super) fn derived(table: TableId, part: Part) -> Oid {
    let part = match part {
        Part::KeyConstraint => 1,
        Part::Default(column) => 2 + u32::from(column),
    };
    let mask = (1 << PART_BITS) - 1;
    Oid(DERIVED | ((table.0 << PART_BITS) & (DERIVED - 1)) | (part & mask))
}

/// The table and the part of a derived OID, if they exist.
pub(super) fn part_of(catalog: &Catalog, oid: Oid) -> Option<(Arc<Table>, Part)> {
    if oid.0 < DERIVED {
        return None;
    }
    let part = match oid.0 & ((1 << PART_BITS) - 1) {
        0 => return None,
        1 => Part::KeyConstraint,
        column => Part::Default(u16::try_from(column - 2).ok()?),
    };
    let low = (oid.0 & (DERIVED - 1)) >> PART_BITS;
    let known = catalog.by_id(TableId(low)).cloned();
    let table = known.or_else(|| catalog.tables().into_iter().find(|table| derived(table.id, part) == oid))?;
    let exists = match part {
        Part::KeyConstraint => !table.has_hidden_key(),
        Part::Default(column) => {
            table.columns.iter().any(|c| c.id.0 == column && c.default.is_some() && c.identity.is_none())
        }
    };
    exists.then_some((table, part))
}

/// An index of a table, as the system catalog shows it. Secondary indexes are to be listed by [`indexes`] too; all else
/// is derived from it.
#[derive(Clone, Debug)]
pub(super) struct IndexView {
    pub(super) oid: Oid,
    pub(super) name: String,
    /// The places of its columns in the table, in its order.
    pub(super) columns: Vec<usize>,
    pub(super) is_unique: bool,
    pub(super) is_primary: bool,
    /// The OID of the constraint that it is for.
    pub(super) constraint: Option<Oid>,
}

/// The indexes of a table, the primary key first.
pub(super) fn indexes(table: &Table) -> Vec<IndexView> {
    let key = (!table.has_hidden_key()).then(|| IndexView {
        oid: Oid(table.key_id.0),
        name: table.key_name.clone(),
        columns: table.primary_key.clone(),
        is_unique: true,
        is_primary: true,
        constraint: Some(derived(table.id, Part::KeyConstraint)),
    });
    let others = table.indexes.iter().map(|index| IndexView {
        oid: Oid(index.id.0),
        name: index.name.clone(),
        columns: index.plain_columns().unwrap_or_default(),
        is_unique: index.unique,
        is_primary: false,
        constraint: None,
    });
    key.into_iter().chain(others).collect()
}

/// The index of an OID, with its table.
pub(super) fn index_by_oid(catalog: &Catalog, oid: Oid) -> Option<(Arc<Table>, IndexView)> {
    catalog.tables().into_iter().find_map(|table| {
        let index = indexes(&table).into_iter().find(|index| index.oid == oid)?;
        Some((table, index))
    })
}

impl IndexView {
    /// Its columns.
    pub(super) fn columns<'t>(&'t self, table: &'t Table) -> impl Iterator<Item = &'t Column> {
        self.columns.iter().filter_map(|at| table.columns.get(*at))
    }
}

/// All schemas of the session's database.
pub(super) fn schemas(catalog: &Catalog) -> Vec<(Oid, &str)> {
    let own = catalog.schemas().map(|schema| (Oid(schema.id.0), schema.name.as_str()));
    SYSTEM_SCHEMAS.into_iter().chain(own).collect()
}

/// The name of a schema.
pub(super) fn schema_name(catalog: &Catalog, oid: Oid) -> Option<&str> {
    let system = SYSTEM_SCHEMAS.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
    system.or_else(|| catalog.schema_by_id(SchemaId(oid.0)).map(|schema| schema.name.as_str()))
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

/// The roles that exist for a session: the owner, and the session's own.
pub(super) fn roles(user: &str) -> Vec<(Oid, &str)> {
    let mut roles = vec![OWNER];
    if user != OWNER.1 {
        roles.push((role_oid(user), user));
    }
    roles
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
    env.catalog().by_id(TableId(relation.0)).map(|table| &**table)
}

/// The columns of a relation; `None` if there is none.
pub(super) fn described<'e>(relation: Oid, env: &SystemEnv<'e>) -> Option<&'e Table> {
    relations::by_oid(relation).map(|relation| &*relation.table).or_else(|| table_of(relation, env))
}

/// Whether a role of this OID exists for the session.
pub(super) fn is_role(wanted: Oid, env: &SystemEnv<'_>) -> bool {
    wanted == OWNER.0 || roles(env.session.user()).iter().any(|(oid, _)| *oid == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{ColumnId, IndexId, StorageId};
    use pgtypes::SqlType;

    fn table(id: u32) -> Table {
        let column = |id: u16| Column {
            id: ColumnId(id),
            name: format!("c{id}"),
            ty: SqlType::INT4,
            not_null: id == 1,
            default: (id > 1).then(|| "1".to_owned()),
            identity: None,
        };
        Table {
            id: TableId(id),
            schema: crate::object::FIRST_SCHEMA,
            storage: StorageId(id + 1),
            name: format!("t{id}"),
            columns: [1, 2, 1600].map(column).into(),
            primary_key: vec![0],
            key_name: format!("t{id}_pkey"),
            key_id: IndexId(id + 2),
            indexes: Vec::new(),
        }
    }

    #[test]
    fn derived_oids_lead_back_to_their_parts() {
        // The last id has more bits than a derived OID keeps.
        let ids = [16_384, 16_386, 1_048_575, 3_000_000];
        let catalog = Catalog::new(1, ids.map(table));
        let mut seen = std::collections::HashSet::new();
        for id in ids {
            for part in [Part::KeyConstraint, Part::Default(2), Part::Default(1600)] {
                let oid = derived(TableId(id), part);
                assert!(oid.0 >= DERIVED && seen.insert(oid), "{id} {part:?}");
                let (table, found) = part_of(&catalog, oid).unwrap();
                assert_eq!((table.id, found), (TableId(id), part));
            }
            assert!(part_of(&catalog, derived(TableId(id), Part::Default(1))).is_none(), "no default");
            assert!(part_of(&catalog, derived(TableId(id + 1), Part::KeyConstraint)).is_none(), "no table");
        }
        assert!(part_of(&catalog, Oid(16_384)).is_none());
    }

    #[test]
    fn roles_have_oids_by_their_names() {
        assert_eq!((role_oid("postgres"), roles("postgres").len()), (OWNER.0, 1));
        assert_eq!(roles("ann"), [OWNER, (role_oid("ann"), "ann")]);
        assert!(role_oid("ann") != role_oid("bob") && role_oid("ann").0 < DERIVED);
    }
}
