"""SQLAlchemy: repeated statements, batches with insertmanyvalues, upserts, server-side cursors."""

from sqlalchemy import Column, Integer, MetaData, String, Table, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from connect import engine
from sections import equal

METADATA = MetaData()
ITEMS = Table("sqlalchemy_items", METADATA, Column("id", Integer, primary_key=True), Column("name", String(30)))

def prepared():
    """One statement with many values: psycopg prepares it after five executions."""
    with engine().connect() as conn:
        statement = select(func.sum(text("n"))).select_from(func.generate_series(1, text(":n")).alias("n"))
        for n in range(1, 12):
            equal(conn.scalar(text("SELECT CAST(:n AS integer) + 1"), {"n": n}), n + 1)
            equal(conn.scalar(statement, {"n": n}), n * (n + 1) // 2)

def batch():
    METADATA.drop_all(engine())
    METADATA.create_all(engine())
    with engine().begin() as conn:
        names = [{"name": f"name {n}"} for n in range(2500)]
        ids = conn.scalars(insert(ITEMS).returning(ITEMS.c.id, sort_by_parameter_order=True), names).all()
        equal((len(ids), ids == sorted(ids)), (2500, True))
        conn.execute(insert(ITEMS), [{"id": n, "name": None} for n in range(10_000, 10_200)])
        changed = conn.execute(update(ITEMS).where(ITEMS.c.id >= 10_000).values(name=func.upper("x")))
        equal(changed.rowcount, 200)
        merged = upsert(ITEMS).values([{"id": 10_000, "name": "new"}, {"id": 20_000, "name": "newer"}])
        merged = merged.on_conflict_do_update(index_elements=["id"], set_={"name": merged.excluded.name})
        equal(conn.scalars(merged.returning(ITEMS.c.name)).all(), ["new", "newer"])
        equal(conn.scalar(select(func.count()).select_from(ITEMS)), 2701)

def cursors():
    with engine().connect() as conn:
        result = conn.execution_options(yield_per=100).execute(select(ITEMS.c.id).order_by(ITEMS.c.id))
        equal([len(part) for part in result.partitions()], [100] * 27 + [1])
    METADATA.drop_all(engine())
