"""SQLAlchemy: create_all, the ORM with relationships, and reflection of what create_all made."""

import datetime as dt
from decimal import Decimal

from sqlalchemy import (CheckConstraint, ForeignKey, Index, MetaData, Numeric, String, UniqueConstraint, func, inspect,
                        select)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload

from connect import engine
from sections import equal

class Base(DeclarativeBase):
    pass

class Author(Base):
    __tablename__ = "sqlalchemy_authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(30))
    joined: Mapped[dt.datetime] = mapped_column(server_default=func.now())
    books: Mapped[list["Book"]] = relationship(back_populates="author", cascade="all, delete-orphan")
    __table_args__ = (UniqueConstraint("name", name="sqlalchemy_authors_name"),)

class Book(Base):
    __tablename__ = "sqlalchemy_books"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    price: Mapped[Decimal | None] = mapped_column(Numeric(10, 2))
    author_id: Mapped[int] = mapped_column(ForeignKey("sqlalchemy_authors.id", ondelete="CASCADE"))
    author: Mapped[Author] = relationship(back_populates="books")
    __table_args__ = (CheckConstraint("price >= 0", name="sqlalchemy_books_price"),
                      Index("sqlalchemy_books_title", "title", "price"))

def catalog():
    ours = engine()
    Base.metadata.drop_all(ours)
    Base.metadata.create_all(ours)
    Base.metadata.create_all(ours)  # finds them by has_table
    orm(ours)
    reflection(ours)
    Base.metadata.drop_all(ours)
    equal(inspect(ours).has_table("sqlalchemy_books"), False)

def orm(ours):
    with Session(ours) as session:
        ada = Author(name="Ada", books=[Book(title="Notes", price=Decimal("9.50")), Book(title="Letters")])
        session.add_all([ada, Author(name="Grace", books=[Book(title="Compilers", price=Decimal("20"))])])
        session.commit()
        assert ada.joined is not None
        joined = session.scalars(select(Author).options(joinedload(Author.books)).order_by(Author.name)).unique().all()
        equal([(author.name, sorted(book.title for book in author.books)) for author in joined],
              [("Ada", ["Letters", "Notes"]), ("Grace", ["Compilers"])])
        session.expunge_all()
        loaded = session.scalars(select(Author).options(selectinload(Author.books)).order_by(Author.id)).all()
        equal([len(author.books) for author in loaded], [2, 1])
        sums = select(Author.name, func.sum(Book.price), func.count(Book.id)).join(Author.books)
        sums = sums.group_by(Author.name).having(func.count() > 1)
        equal(session.execute(sums).all(), [("Ada", Decimal("9.50"), 2)])
        loaded[0].name = "Augusta Ada"
        session.delete(loaded[1])
        session.commit()
        equal(session.scalar(select(func.count()).select_from(Book)), 2)
        locked = session.get(Author, loaded[0].id, with_for_update=True)
        equal(locked.name, "Augusta Ada")

def reflection(ours):
    inspector = inspect(ours)
    columns = {column["name"]: column for column in inspector.get_columns("sqlalchemy_books")}
    equal([(name, str(column["type"]), column["nullable"]) for name, column in columns.items()],
          [("id", "INTEGER", False), ("title", "VARCHAR", False), ("price", "NUMERIC(10, 2)", True),
           ("author_id", "INTEGER", False)])
    equal(columns["id"]["default"], "nextval('sqlalchemy_books_id_seq'::regclass)")
    equal(inspector.get_pk_constraint("sqlalchemy_books")["constrained_columns"], ["id"])
    foreign = inspector.get_foreign_keys("sqlalchemy_books")[0]
    equal((foreign["referred_table"], foreign["referred_columns"], foreign["options"]),
          ("sqlalchemy_authors", ["id"], {"ondelete": "CASCADE"}))
    indexes = [(index["name"], index["column_names"], index["unique"])
               for index in inspector.get_indexes("sqlalchemy_books")]
    equal(indexes, [("sqlalchemy_books_title", ["title", "price"], False)])
    equal([unique["column_names"] for unique in inspector.get_unique_constraints("sqlalchemy_authors")], [["name"]])
    equal([check["name"] for check in inspector.get_check_constraints("sqlalchemy_books")], ["sqlalchemy_books_price"])
    assert {"sqlalchemy_authors", "sqlalchemy_books"} <= set(inspector.get_table_names())
    equal((inspector.get_view_names(), inspector.get_table_comment("sqlalchemy_books")), ([], {"text": None}))
    assert "public" in inspector.get_schema_names()
    reflected = MetaData()
    reflected.reflect(ours, only=["sqlalchemy_books", "sqlalchemy_authors"])
    books = reflected.tables["sqlalchemy_books"]
    equal([column.name for column in books.primary_key], ["id"])
    equal({key.target_fullname for key in books.foreign_keys}, {"sqlalchemy_authors.id"})
