"""Questions to PostgreSQL's catalog, by an ordinary connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import psycopg

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture.forms import PgType
from barnabas.connect.plugins.postgres_capture.pgoutput import Column, Relation
from barnabas.connect.plugins.postgres_capture.settings import Settings

logger = logging.getLogger(__name__)
LOOK_MS = 5000  # for a question about the slot
RELEASE_S = 0.05  # until the slot may be free
LEAST_VERSION = 100_000  # 10, the first with pgoutput


class Said(NamedTuple):
    """What the catalog says of a column beside its type.

    Args:
        is_required: whether the column, or its domain, is NOT NULL.
        is_domain: whether its type is a domain.
        default: an expression; None for none.
    """

    is_required: bool = False
    is_domain: bool = False
    default: str | None = None


class Slot(NamedTuple):
    """A replication slot."""

    plugin: str
    database: str
    wal_status: str | None  # lost: the server has removed what the slot needs; None: an old server does not tell


class Catalog:
    """The catalog of the captured database.

    Raises:
        ConnectError: the database cannot be reached, or cannot be captured.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        connection = settings.connection
        self.place = f"postgresql://{connection['host']}:{connection['port']}/{connection['dbname']}"
        try:
            self.connection = psycopg.connect(**connection, autocommit=True)
        except psycopg.Error as error:
            raise ConnectError(f"{self.place} cannot be reached: {one_line(error)}") from None
        self._types: dict[tuple[int, int], PgType] = {}

    def run(self, statement: str, parameters: Sequence[Any] | None = ()) -> list[Any]:
        """The rows of a statement; none if it has no result."""
        try:
            cursor = self.connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise ConnectError(f"{self.place} refused a statement: {one_line(error)}") from error

    def check(self) -> None:
        """Raises ConnectError for a server that cannot stream changes."""
        if self.connection.info.server_version < LEAST_VERSION:
            raise ConnectError(f"{self.place} is older than PostgreSQL 10, which has pgoutput")
        [(level,)] = self.run("SHOW wal_level")
        if level != "logical":
            raise ConnectError(
                f"{self.place} has wal_level={level}: set wal_level=logical in postgresql.conf, and restart the server"
            )

    def slot(self) -> Slot | None:
        """The slot of the config, if it is there."""
        found = self.run(
            "SELECT plugin, database, to_jsonb(s)->>'wal_status' FROM pg_replication_slots s WHERE slot_name = %s", (self._settings.slot,)
        )  # fmt: skip
        return Slot(*found[0]) if found else None

    def reason_of_loss(self) -> str | None:
        """Why the server has ended the stream of the slot, if it tells: what it says when it reads the next change for this connection."""
        deadline = time.monotonic() + LOOK_MS / 1000
        while time.monotonic() < deadline:
            try:
                self._peek()
            except (ConnectError, psycopg.Error) as error:
                cause = error.__cause__ or error
                if isinstance(cause, psycopg.errors.ObjectInUse):  # the server's end of the lost stream still has it
                    time.sleep(RELEASE_S)
                    continue
                return None if self.connection.closed or isinstance(cause, psycopg.errors.QueryCanceled) else one_line(cause)
            return None
        return None

    def _peek(self) -> None:
        """Read the next change of the slot, and leave it there."""
        options = ("proto_version", "1", "publication_names", quoted(self._settings.publication))
        with self.connection.transaction():
            self.run(f"SET LOCAL statement_timeout = {LOOK_MS}")
            self.run(
                "SELECT 1 FROM pg_logical_slot_peek_binary_changes(%s, NULL, 1, %s, %s, %s, %s)", (self._settings.slot, *options)
            )

    def ensure_publication(self) -> None:
        """Create the publication if it is missing, or add tables that it lacks, as the config says."""
        name, mode = self._settings.publication, self._settings.autocreate
        if self.run("SELECT 1 FROM pg_publication WHERE pubname = %s", (name,)):
            self._complete_publication(mode)
            return
        match mode:
            case "disabled":
                raise ConnectError(f"{self.place} has no publication {name}, and publication.autocreate.mode is disabled")
            case "filtered":
                tables = self.tables()
                if not tables:
                    raise ConnectError(f"no table of {self.place} fits to table.include.list and schema.include.list")
                behind = f" FOR TABLE {_listed(tables)}"
            case "no_tables":
                behind = ""
            case _:
                behind = " FOR ALL TABLES"
        self._run_unless_done(f"CREATE PUBLICATION {quoted(name)}{behind}")

    def _complete_publication(self, mode: str) -> None:
        """With `filtered`, add the chosen tables that it lacks; otherwise say that their changes do not come."""
        published = {each.oid for each in self.published()}
        missing = [each for each in self.tables() if each.oid not in published]
        if missing and mode == "filtered":
            self._run_unless_done(f"ALTER PUBLICATION {quoted(self._settings.publication)} ADD TABLE {_listed(missing)}")
        elif missing:
            logger.warning("event=tables-not-published publication=%s tables=%r", self._settings.publication, _listed(missing))

    def _run_unless_done(self, statement: str) -> None:
        """Run a statement that another connector may have run a moment ago."""
        try:
            self.run(statement)
        except ConnectError as error:
            if not isinstance(error.__cause__, psycopg.errors.DuplicateObject):
                raise

    def published(self, only: str | None = None) -> list[Relation]:
        """The captured tables of the publication, as they are now; or one of them, SCHEMA.TABLE."""
        found = self.run(
            "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", (self._settings.publication,)
        )  # fmt: skip
        names = set(found)
        return [each for each in self.tables(only) if (each.schema, each.table) in names]

    def tables(self, only: str | None = None) -> list[Relation]:
        """The tables that the config chooses, by name; or one of them."""
        rows = self.run(
            "SELECT c.oid, n.nspname, c.relname, c.relreplident::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema' "
            "ORDER BY 2, 3"
        )
        wanted = [row for row in rows if self._settings.takes(row[1], row[2]) and only in {None, f"{row[1]}.{row[2]}"}]
        return [Relation(oid, schema, table, identity, self._columns(oid)) for oid, schema, table, identity in wanted]

    def _columns(self, oid: int) -> tuple[Column, ...]:
        rows = self.run(
            "SELECT attname, atttypid, atttypmod FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped "
            "AND coalesce(to_jsonb(pg_attribute)->>'attgenerated', '') = '' ORDER BY attnum",
            (oid,),
        )
        return tuple(Column(name, kind, modifier, False) for name, kind, modifier in rows)

    def said(self, oid: int) -> dict[str, Said]:
        """What is said of the columns of a table, by name, as they are now."""
        rows = self.run(
            "SELECT a.attname, a.attnotnull OR t.typnotnull, t.typtype = 'd', pg_get_expr(d.adbin, d.adrelid) "
            "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
            "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
            "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped",
            (oid,),
        )
        return {name: Said(*each) for name, *each in rows}

    def key(self, oid: int) -> tuple[str, ...]:
        """The columns of the primary key of a table, in its order; none if it has none."""
        rows = self.run(
            "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place) "
            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum "
            "WHERE i.indrelid = %s AND i.indisprimary ORDER BY k.place",
            (oid,),
        )
        return tuple(name for (name,) in rows)

    def unique(self, oid: int) -> tuple[str, ...]:
        """The columns of a table that are never null and that have a unique index of their own."""
        rows = self.run(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
            "WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND a.attnotnull "
            "AND coalesce((to_jsonb(i)->>'indnkeyatts')::int, i.indnatts) = 1",
            (oid,),
        )
        return tuple(name for (name,) in rows)

    def types(self, columns: Iterable[Column]) -> list[PgType]:
        """The types of columns."""
        return [self._type(each.type_oid, each.modifier) for each in columns]

    def _type(self, oid: int, modifier: int) -> PgType:
        if (oid, modifier) not in self._types:
            rows = self.run(
                "SELECT typname, typtype::text, typbasetype, typtypmod, CASE WHEN typcategory = 'A' THEN typelem ELSE 0 END, "
                "ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder) FROM pg_type t WHERE oid = %s",
                (oid,),
            )
            self._types[oid, modifier] = self._made(rows, modifier)
        return self._types[oid, modifier]

    def _made(self, rows: list[Any], modifier: int) -> PgType:
        if not rows:
            return PgType("unknown")  # it was dropped since
        name, kind, base, base_modifier, element, labels = rows[0]
        if kind == "d":
            return self._type(base, base_modifier)
        return PgType(name, modifier, kind == "e", self._type(element, -1) if element else None, tuple(labels))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def _listed(tables: Iterable[Relation]) -> str:
    return ", ".join(f"{quoted(each.schema)}.{quoted(each.table)}" for each in tables)


def quoted(name: str) -> str:
    """A name in a statement."""
    return '"' + name.replace('"', '""') + '"'


def one_line(error: BaseException) -> str:
    """The text of an error of the library."""
    return " ".join(str(error).split())
