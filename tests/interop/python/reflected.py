"""Makes a schema in a database, and tells in JSON what tools see of it: SQLAlchemy, Alembic's autogenerate, Django's inspectdb.

`reflected.py DSN`, where DSN is a URL of SQLAlchemy.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import django
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from django.conf import settings
from django.core.management import call_command
from sqlalchemy.dialects import postgresql as pg


def parents(metadata: sa.MetaData) -> None:
    """A table with a column of each type, and constraints."""
    sa.Table(
        "parents", metadata, sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("code", sa.String(5), nullable=False, unique=True, comment="short"), sa.Column("kind", sa.CHAR(3)),
        sa.Column("name", sa.String, server_default="none"), sa.Column("note", sa.Text, server_default=sa.text("'it''s'")),
        sa.Column("price", sa.Numeric(10, 2), server_default=sa.text("0")), sa.Column("rate", sa.Numeric),
        sa.Column("share", sa.Double, server_default="1.5"), sa.Column("single", sa.REAL),
        sa.Column("small", sa.SmallInteger, server_default="-1"), sa.Column("big", sa.BigInteger),
        sa.Column("ok", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("day", sa.Date, server_default="2020-01-01"),
        sa.Column("at", pg.TIMESTAMP(timezone=True), server_default=sa.func.now()),
        sa.Column("local", pg.TIMESTAMP(precision=3)), sa.Column("moment", pg.TIMESTAMP(timezone=True, precision=0)),
        sa.Column("clock", pg.TIME(precision=2)), sa.Column("span", pg.INTERVAL), sa.Column("data", sa.LargeBinary),
        sa.Column("doc", pg.JSONB, server_default=sa.text("'{}'::jsonb")), sa.Column("plain", pg.JSON),
        sa.Column("uid", pg.UUID, server_default=sa.text("gen_random_uuid()")), sa.Column("tags", pg.ARRAY(sa.Text)),
        sa.Column("codes", pg.ARRAY(sa.String(3))), sa.Column("x", sa.Integer, nullable=False),
        sa.Column("y", sa.Integer, nullable=False), sa.Column("total", sa.Integer, sa.Computed("x + y", persisted=True)),
        sa.UniqueConstraint("x", "y", name="both"), sa.CheckConstraint("x > 0 AND y < 10", name="in_range"), comment="those above",
    )  # fmt: skip


def others(metadata: sa.MetaData) -> None:
    """Tables with references, indexes, and keys of other kinds."""
    sa.Table(
        "children", metadata, sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("parent_id", sa.Integer, sa.ForeignKey("parents.id", ondelete="CASCADE"), nullable=False),
        sa.Column(
            "code", sa.String(5),
            sa.ForeignKey("parents.code", name="by_code", onupdate="SET NULL", deferrable=True, initially="DEFERRED"),
        ),
        sa.Column("x", sa.Integer), sa.Column("y", sa.Integer), sa.Column("above", sa.BigInteger, sa.ForeignKey("children.id")),
        sa.ForeignKeyConstraint(["x", "y"], ["parents.x", "parents.y"], match="FULL"), sa.Index("by_parent", "parent_id"),
        sa.Index("one_xy", "x", "y", unique=True),
    )  # fmt: skip
    sa.Table(
        "pairs", metadata, sa.Column("a", sa.String(10), primary_key=True),
        sa.Column("b", sa.Integer, primary_key=True, autoincrement=False), sa.Column("v", sa.Float),
    )  # fmt: skip
    sa.Table(
        "numbered", metadata, sa.Column("id", sa.SmallInteger, sa.Identity(start=10, increment=5), primary_key=True),
        sa.Column("v", sa.String(1)),
    )  # fmt: skip


def migrated(connection: sa.Connection) -> None:
    """The changes of a later migration, in the operations of Alembic."""
    operations = Operations(MigrationContext.configure(connection))
    operations.add_column("pairs", sa.Column("parent_id", sa.Integer, sa.ForeignKey("parents.id")))
    operations.add_column("pairs", sa.Column("state", sa.String(8), server_default="new", nullable=False))
    operations.alter_column("numbered", "v", type_=sa.String(20))
    operations.create_index("by_state", "pairs", ["state", "v"])
    operations.drop_constraint("by_code", "children", type_="foreignkey")


def seen(engine: sa.Engine) -> dict[str, Any]:
    """All that reflection gives about each table."""
    inspector = sa.inspect(engine)
    found: dict[str, Any] = {}
    asks: dict[str, Any] = {
        "foreign keys": inspector.get_foreign_keys, "indexes": inspector.get_indexes, "unique": inspector.get_unique_constraints,
        "checks": inspector.get_check_constraints,
    }  # fmt: skip
    for table in sorted(inspector.get_table_names()):
        columns = [{**each, "type": each["type"].compile(engine.dialect)} for each in inspector.get_columns(table)]
        found[table] = {
            "columns": columns,
            "key": inspector.get_pk_constraint(table),
            "comment": inspector.get_table_comment(table),
        }
        found[table] |= {name: sorted(ask(table), key=lambda each: str(each["name"])) for name, ask in asks.items()}
    return found


def models_of(url: sa.URL) -> str:
    """The models that Django's inspectdb writes."""
    settings.configure(DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql", "NAME": url.database, "USER": url.username, "HOST": url.host, "PORT": url.port,
        }
    })  # fmt: skip
    django.setup()
    out = io.StringIO()
    call_command("inspectdb", stdout=out)
    return out.getvalue()


def main(dsn: str) -> None:
    engine = sa.create_engine(dsn)
    metadata = sa.MetaData()
    parents(metadata)
    others(metadata)
    metadata.create_all(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        changes = [repr(each) for each in compare_metadata(context, metadata)]
    answer = {"made": seen(engine), "changes": changes}
    with engine.begin() as connection:
        migrated(connection)
    answer |= {"migrated": seen(engine), "models": models_of(engine.url)}
    engine.dispose()
    json.dump(answer, sys.stdout, default=str)


if __name__ == "__main__":
    main(sys.argv[1])
