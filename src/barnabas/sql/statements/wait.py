"""WAIT FOR: until a topic can be read up to an offset, or up to what it holds now."""

from __future__ import annotations

import time
from typing import Any

from sqlglot.tokenizer_core import TokenType

from barnabas.client.results import LATEST
from barnabas.sql.catalog.access import WAIT_S
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.states import WRONG_OBJECT, syntax_error

_FORM = "WAIT FOR name [PARTITION n] [OFFSET n]"


def wait(session: Host, statement: Statement, _: Any) -> Ready:
    """WAIT FOR name [PARTITION n] [OFFSET n].

    With an offset it returns when the record at this offset can be read; without, when everything that the topic holds now can be read,
    the records of open transactions too; of a view, when it has all that is committed now. `statement_timeout` ends it.
    """
    if statement.word(1) != "FOR" or len(statement.tokens) < 3:
        raise syntax_error(f"the statement is {_FORM}", statement.position(1))
    at = 3
    parts = [str(statement.tokens[2].text)]
    while at + 1 < len(statement.tokens) and statement.tokens[at].token_type == TokenType.DOT:
        parts.append(str(statement.tokens[at + 1].text))
        at += 2
    numbers: dict[str, int] = {}
    while at < len(statement.tokens):
        word = statement.word(at)
        text = str(statement.tokens[at + 1].text) if at + 1 < len(statement.tokens) else ""
        if word not in ("PARTITION", "OFFSET") or not text.isdigit():
            raise syntax_error(f"the statement is {_FORM}", statement.position(at))
        numbers[word] = int(text)
        at += 2
    relation = session.find(parts, statement.position(2))
    if not isinstance(relation, TopicRelation):
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" is no topic', position=statement.position(2))
    if relation.has_job and not numbers:
        return done(statement.text, "WAIT", lambda: session.catching_up.refresh(relation.topic))
    return done(statement.text, "WAIT", lambda: _wait(session, relation.topic, numbers.get("PARTITION"), numbers.get("OFFSET")))


def _wait(session: Host, topic: str, partition: int | None, offset: int | None) -> None:
    partitions = sorted(session.client.topics_by_name([topic])[topic].partitions)
    if partition is not None and partition not in partitions:
        raise SqlError("22023", f"the topic {topic} has no partition {partition}; it has {partitions[0]} to {partitions[-1]}")
    if offset is not None and partition is None:
        if len(partitions) > 1:
            raise SqlError("22023", f"the topic {topic} has {len(partitions)} partitions; say which: {_FORM}")
        partition = partitions[0]
    places = [(topic, each) for each in partitions if partition in (None, each)]
    if offset is not None:
        wanted = dict.fromkeys(places, offset + 1)
    else:
        now = session.client.list_offsets(dict.fromkeys(places, LATEST), read_committed=False)
        wanted = {place: found.offset for place, found in now.items()}
    while True:
        found = session.client.list_offsets(dict.fromkeys(places, LATEST), read_committed=True)
        if all(found[place].offset >= end for place, end in wanted.items()):
            return
        session.running.check()
        time.sleep(WAIT_S)
