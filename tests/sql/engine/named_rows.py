"""A table without a primary key beside a list of its rows, with random statements and records of another program."""

from __future__ import annotations

import random
from collections import Counter

from confluent_kafka import Producer

from barnabas.tables.row_names import name_of
from tests.sql.engine.asking import Asking

Row = tuple[int, str]
COLUMNS = "n int, s text"
KEYS: tuple[bytes | None, ...] = (None, b"k", b"k", b"", b"\x00" * 24, name_of(None, 7, 0), name_of(None, 0, 10**9))


class Rows:
    """A table beside a list of its rows, and one of the rows that its stream has."""

    def __init__(self, ask: Asking, name: str, seed: int) -> None:
        self.ask, self.name, self._random = ask, name, random.Random(seed)
        self._servers = ",".join(f"{host}:{port}" for host, port in ask.session.client.config.bootstrap_servers)
        self.rows: list[Row] = []
        self.brought: list[Row] = []
        ask(f"create table {name} ({COLUMNS}) with (partitions = 2)")

    def _new(self) -> Row:
        return self._random.randrange(5), self._random.choice("abc")

    def insert(self) -> None:
        made = [self._new() for _ in range(self._random.randint(1, 4))]
        self.ask(f"insert into {self.name} values " + ", ".join(f"({n}, '{s}')" for n, s in made))
        self.rows += made
        self.brought += made

    def produce(self) -> None:
        """As another program: records with and without keys; those without a value are no rows."""
        producer = Producer({"bootstrap.servers": self._servers})
        for _ in range(self._random.randint(1, 6)):
            n, s = self._new()
            has_value = self._random.random() < 0.8
            value = b'{"n": %d, "s": "%s"}' % (n, s.encode()) if has_value else None
            producer.produce(self.name, value, key=self._random.choice(KEYS), partition=self._random.randrange(2))
            if has_value:
                self.rows.append((n, s))
                self.brought.append((n, s))
        assert producer.flush(60) == 0
        self.ask(f"wait for {self.name}")

    def update(self) -> None:
        n, s = self._new()
        tag = self.ask.tag(f"update {self.name} set n = n + 1, s = '{s}' where n = {n}")
        assert tag == f"UPDATE {sum(row[0] == n for row in self.rows)}"
        self.rows = [(row[0] + 1, s) if row[0] == n else row for row in self.rows]

    def delete(self) -> None:
        n, s = self._new()
        self.ask(f"delete from {self.name} where n = {n} and s = '{s}'")
        self.rows = [row for row in self.rows if row != (n, s)]

    def merge(self) -> None:
        n, s = self._new()
        others = [row for row in self.rows if row[0] != n]
        has_any = len(others) < len(self.rows)
        self.ask(
            f"merge into {self.name} t using (values ({n}, '{s}')) g (n, s) on t.n = g.n when matched and t.s = g.s then delete "
            "when matched then update set s = g.s when not matched then insert values (g.n, g.s)"
        )
        self.rows = others + [(n, s) for row in self.rows if row[0] == n and row[1] != s] + ([] if has_any else [(n, s)])
        self.brought += [] if has_any else [(n, s)]

    def transaction(self) -> None:
        """Statements that see each other's rows, and are kept or not."""
        before, brought = list(self.rows), list(self.brought)
        self.ask("begin")
        for _ in range(self._random.randint(1, 6)):
            self._random.choice([self.insert, self.update, self.delete, self.merge])()
            self.check()
        if self._random.random() < 0.4:
            self.ask("rollback")
            self.rows, self.brought = before, brought
            return
        self.ask("commit")
        # rows of a transaction have no place before its end: the stream has their last form, or nothing
        self.brought = [tuple(row) for row in self.ask.rows(f"select n, s from stream {self.name}")]
        assert not Counter(brought) - Counter(self.brought)

    def step(self) -> None:
        self._random.choice([self.insert, self.insert, self.produce, self.update, self.delete, self.merge, self.transaction])()

    def check(self, ask: Asking | None = None) -> None:
        ask = ask or self.ask
        assert Counter(ask.rows(f"select * from {self.name}")) == Counter(self.rows)
        assert ask.rows(f"select count(*) from {self.name}") == [(len(self.rows),)]

    def check_stream(self, ask: Asking | None = None) -> None:
        assert Counter((ask or self.ask).rows(f"select n, s from stream {self.name}")) == Counter(self.brought)
