"""The columns of the capture of PostgreSQL beside a plain model, and messages that do not fit."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture.forms import PgType, form_of
from barnabas.connect.plugins.postgres_capture.pgoutput import Relation
from barnabas.connect.plugins.postgres_capture.settings import KEYS, Settings, settings_of
from barnabas.connect.plugins.postgres_capture.shape import Shape
from barnabas.connect.plugins.postgres_capture.slot_batches import SlotBatches
from tests.connect.plugins import pgoutput_model as model

COLUMNS = 3  # a key, a text and a number; a change of the table adds a text
CONFIGS: tuple[dict[str, str], ...] = (
    {}, {"barnabas.format": "flat"}, {"skipped.operations": "none"}, {"skipped.operations": "u,d", "tombstones.on.delete": "false"},
    {"column.exclude.list": ".*[.]c1"}, {"tombstones.on.delete": "false", "skipped.operations": "c"},
)  # fmt: skip
NOW_US = 1_700_000_000_000_000
Message = tuple[bytes, int]


def settings_with(config: dict[str, str]) -> Settings:
    needed = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}
    return settings_of(KEYS.parse({**needed, "skipped.operations": "t", "table.exclude.list": "s.hidden", **config}))


def shape_with(settings: Settings) -> Callable[[Relation], Shape]:
    """A catalog: the first column is the key, but in a table without one."""

    def shape(relation: Relation) -> Shape:
        forms = tuple(form_of(PgType("int4" if each.type_oid == 23 else "text"), settings) for each in relation.columns)
        table = f"{relation.schema}.{relation.table}"
        shown = tuple(at for at, each in enumerate(relation.columns) if settings.takes_column(f"{table}.{each.name}"))
        key = () if relation.table == "keyless" else (0,)
        return Shape(relation, settings.topic(relation.schema, relation.table), forms, key, shown)

    return shape


class Server:
    """Draws what a server could send: tables before their changes, and rows that fit to them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw, self._widths, self._lsn = draw, dict[int, int](), 1000
        self.messages: list[Message] = []

    def transactions(self) -> None:
        for _ in range(self._draw(st.integers(1, 4))):
            commit_lsn = self._lsn + 500
            self._send(b"B" + struct.pack(">qqI", commit_lsn, self._draw(st.integers(0, 10**15)), self._lsn))
            for _ in range(self._draw(st.integers(0, 8))):
                self._something()
            self._lsn = commit_lsn
            self._send(b"C" + struct.pack(">bqqq", 0, commit_lsn, commit_lsn + 8, 0))
            self._lsn += 8

    def _send(self, payload: bytes) -> None:
        self._lsn += 1
        self.messages.append((payload, self._lsn))

    def _something(self) -> None:
        oid, kind = self._draw(st.integers(1, 4)), self._draw(st.sampled_from("IIUUUDDTRM"))
        if kind == "M":
            self._send(b"M")
            return
        if kind == "R" or oid not in self._widths:
            self._relation(oid)
        if kind == "T":
            oids = [each for each in self._widths if self._draw(st.booleans())]
            self._send(b"T" + struct.pack(f">iB{len(oids)}I", len(oids), 0, *oids))
        elif kind in "IUD":
            self._change(oid, kind)

    def _relation(self, oid: int) -> None:
        self._widths[oid] = width = self._draw(st.integers(COLUMNS, COLUMNS + 1))
        table = {1: b"a", 2: b"keyless", 3: b"hidden", 4: b"a"}[oid]
        self._widths.pop(
            {1: 4, 4: 1}.get(oid, 0), None
        )  # another table has the name now, so the server tells of the first one again
        columns = [
            struct.pack(">B", at == 0) + b"c%d\0" % at + struct.pack(">Ii", 23 if at == COLUMNS - 1 else 25, -1)
            for at in range(width)
        ]
        self._send(b"R" + struct.pack(">I", oid) + b"s\0" + table + b"\0d" + struct.pack(">h", width) + b"".join(columns))

    def _change(self, oid: int, kind: str) -> None:
        head = kind.encode() + struct.pack(">I", oid)
        new = b"N" + self._row(oid, is_key=False)
        which = self._draw(st.sampled_from((b"K", b"O") if kind == "D" else (b"", b"", b"K", b"O")))
        old = which + self._row(oid, is_key=which == b"K") if which else b""
        self._send(head + (new if kind == "I" else old if kind == "D" else old + new))

    def _row(self, oid: int, *, is_key: bool) -> bytes:
        width = self._widths[oid]
        text = st.sampled_from((b"n", b"u")) | st.sampled_from(("", "a", 'q"\\', "ä\n", "x" * 40)).map(_text)
        cells = [self._draw(st.sampled_from("kl").map(_text) | st.just(b"u"))]
        number = st.integers(-5, 5).map(_text) | st.just(b"n")
        cells += [b"n" if is_key else self._draw(number if at == COLUMNS - 1 else text) for at in range(1, width)]
        return struct.pack(">h", width) + b"".join(cells)


def _text(value: object) -> bytes:
    data = str(value).encode()
    return b"t" + struct.pack(">i", len(data)) + data


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Message], list[int], dict[str, Any], dict[str, str]]:
    """Messages, where they are cut into runs, the offset, and a config."""
    server = Server(draw)
    server.transactions()
    messages = server.messages
    cuts = sorted(draw(st.lists(st.integers(0, len(messages)), max_size=4)))
    offset: dict[str, Any] = {"lsn": 900}
    if draw(st.booleans()):
        commit = struct.unpack_from(">q", messages[0][0], 1)[0]
        offset |= {"commit": commit, "seq": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        offset |= {"tables": {"s.a": draw(st.integers(900, 3000))}}
    return messages, cuts, offset, draw(st.sampled_from(CONFIGS))


def topics_of(batches: Sequence[Any]) -> dict[str, list[Any]]:
    """The records by topic, with the types of those that have some."""
    found: dict[str, list[Any]] = {}
    for each in batches:
        rows = each.rows
        if not len(rows):
            continue  # an offset alone
        kinds = [(field.name, field.type, field.nullable) for field in rows.schema.field("value").type]
        found.setdefault(each.topic, []).extend((str(kinds), row) for row in rows.to_pylist())
    return found


@settings(max_examples=300)
@given(streams())
def test_columns_equal_the_model(drawn: tuple[list[Message], list[int], dict[str, Any], dict[str, str]]) -> None:
    messages, cuts, offset, config = drawn
    of = settings_with(config)
    fast, plain = SlotBatches(of, offset, shape_with(of)), model.SlotBatches(of, offset, shape_with(of))
    kept: Mapping[str, Any] | None = offset
    for begin, end in zip([0, *cuts], [*cuts, len(messages)], strict=True):
        part = messages[begin:end]
        made = fast.batches([payload for payload, _ in part], [lsn for _, lsn in part], {"server": "p"}, NOW_US)
        for payload, lsn in part:
            plain.receive(model.message_of(payload), lsn)
        expected = plain.take({"server": "p"}, NOW_US)
        assert topics_of(made) == topics_of(expected)
        assert [each.offset for each in made] == [*[None] * (len(made) - 1), fast.offset()][-len(made) :] if made else True
        assert fast.offset() == plain.offset()
        kept = made[-1].offset if made else kept
        assert "commit" in fast.offset() or "commit" not in (kept or {})  # the slot goes on when an offset is kept
        assert (fast.is_open, fast.done_lsn) == (plain._open is not None, plain.done_lsn)


def batches_of(*messages: bytes) -> list[Any]:
    of = settings_with({})
    return SlotBatches(of, {"lsn": 0}, shape_with(of)).batches(messages, range(len(messages)), {}, NOW_US)


BEGIN = b"B" + struct.pack(">qqI", 9, 0, 1)
TABLE = b"R" + struct.pack(">I", 5) + b"s\0t\0d" + struct.pack(">h", 1) + b"\1c0\0" + struct.pack(">Ii", 25, -1)
INSERT = b"I" + struct.pack(">I", 5) + b"N" + struct.pack(">h", 1) + _text("abc")
UPDATE = b"U" + struct.pack(">I", 5) + b"O" + struct.pack(">h", 1) + _text("abc") + b"N" + struct.pack(">h", 1) + _text("abcd")


def test_one_insert_is_one_record() -> None:
    [batch] = batches_of(BEGIN, TABLE, INSERT)
    assert isinstance(batch.rows, pa.Table)
    [row] = batch.rows.to_pylist()
    assert (row["key"], row["value"]["op"], row["value"]["after"]) == ({"c0": "abc"}, "c", {"c0": "abc"})
    assert batch.offset == {"lsn": 0, "commit": 9, "seq": 1}


def test_the_end_of_a_transaction_that_is_kept_in_part_is_kept_too() -> None:
    """Its last part has no change. The slot goes on behind it, so the offset must."""
    of = settings_with({})
    batches = SlotBatches(of, {"lsn": 0}, shape_with(of))
    [batch] = batches.batches([BEGIN, TABLE, INSERT], range(3), {}, NOW_US)
    [end] = batches.batches([b"C" + struct.pack(">bqqq", 0, 9, 17, 0)], [3], {}, NOW_US)
    assert (batch.offset, end.offset, len(end.rows)) == ({"lsn": 0, "commit": 9, "seq": 1}, {"lsn": 17}, 0)
    again = SlotBatches(of, batch.offset or {}, shape_with(of))
    assert again.offset() == batch.offset  # a heartbeat may keep it before the transaction comes
    assert [each.offset for each in again.batches([BEGIN, TABLE, INSERT], range(3), {}, NOW_US)] == []
    assert [each.offset for each in again.batches([b"C" + struct.pack(">bqqq", 0, 9, 17, 0)], [3], {}, NOW_US)] == [{"lsn": 17}]


@pytest.mark.parametrize("whole", [BEGIN, TABLE, INSERT, UPDATE])
def test_a_message_that_is_cut_off_is_an_error(whole: bytes) -> None:
    before = [each for each in (BEGIN, TABLE) if each != whole]
    for end in range(len(whole)):
        with pytest.raises(ConnectError, match="a message of pgoutput cannot be read"):
            batches_of(*before, whole[:end])


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for kind in (b"I", b"U", b"D", b"T", b"B", b"C", b"R", b""):
        with suppress(ConnectError):
            made = batches_of(BEGIN, TABLE, kind + struct.pack(">I", 5) + data)
            assert len(made) <= 1


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ((TABLE, INSERT), "a change outside of a transaction"),
        ((BEGIN, INSERT), "a change of the table 5 before the table itself"),
        ((BEGIN, TABLE, b"I" + struct.pack(">I", 5) + b"N" + struct.pack(">h", 2) + b"nn"), "cannot be read"),
        ((BEGIN, TABLE, b"I" + struct.pack(">I", 5) + b"N" + struct.pack(">hc", 1, b"x")), "cannot be read"),
        ((b"?",), "cannot be read"),
        ((BEGIN, TABLE, b"I" + struct.pack(">I", 5) + b"N" + struct.pack(">hci", 1, b"t", 1) + b"\xff"), "s.t.c0 has a value"),
    ],
)
def test_messages_that_do_not_fit_are_errors(messages: tuple[bytes, ...], error: str) -> None:
    with pytest.raises(ConnectError, match=error):
        batches_of(*messages)
