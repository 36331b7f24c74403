"""The conformance suite on both stores, and what only a file can do: survive a kill, be torn, be foreign."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cluster.store.embedded import FILE_NAME, EmbeddedStore
from barnabas.cluster.store.interface import (
    ABSENT,
    ANY,
    Check,
    MetadataStore,
    Operation,
    Put,
    Remove,
    StoreConflict,
    StoreUnavailable,
)
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.testing.conformance_store import OpenStore, SessionConformance, StoreConformance


class TestMemoryStore(SessionConformance):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        tree = MemoryTree()
        return lambda: MemoryStore(tree)

    def suspend(self, store: MetadataStore) -> None:
        assert isinstance(store, MemoryStore)
        store.suspend()

    def resume(self, store: MetadataStore) -> None:
        assert isinstance(store, MemoryStore)
        store.resume()

    def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, MemoryStore)
        store.expire()


class TestEmbeddedStore(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: EmbeddedStore(tmp_path)


PATHS = st.sampled_from(["/a", "/b", "/c/d"])
VERSIONS = st.sampled_from([ANY, ABSENT, 0, 1, 2])
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Put, PATHS, st.binary(max_size=4), VERSIONS),
    st.builds(Remove, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS.filter(lambda version: version != ANY)),
)


def done(store: MetadataStore, operations: list[Operation]) -> tuple[str, int, int] | None:
    try:
        store.commit(operations)
    except StoreConflict as conflict:
        return conflict.path, conflict.expected, conflict.found
    return None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(OPERATIONS, max_size=4), max_size=12))
def test_both_stores_agree(tmp_path_factory: pytest.TempPathFactory, commits: list[list[Operation]]) -> None:
    with MemoryStore() as fake, EmbeddedStore(tmp_path_factory.mktemp("store")) as real:
        for operations in commits:
            assert done(fake, operations) == done(real, operations)
            assert list(fake.list("/")) == list(real.list("/"))
            assert fake.revision == real.revision


WRITER = """
import sys
from pathlib import Path
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import Put
store = EmbeddedStore(Path(sys.argv[1]))
store.commit([Put("/me", b"", -1, ephemeral=True)])
for number in range(100_000):
    store.commit([Put(f"/n/{number:06d}", b"x"), Put("/last", str(number).encode())])
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        for _ in range(20):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        acknowledged = 19 + sum(1 for line in process.stdout if line.endswith("\n"))
    with EmbeddedStore(tmp_path) as store:
        numbers = [entry.path for entry in store.list("/n/")]
        last = store.get("/last")
        assert last is not None
        assert acknowledged <= int(last.value) <= acknowledged + 1
        assert numbers == [f"/n/{number:06d}" for number in range(int(last.value) + 1)]
        assert store.get("/me") is None


def test_commits_are_synced(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path) as store:
        (level,) = store._database.execute("PRAGMA synchronous").fetchone()
        (mode,) = store._database.execute("PRAGMA journal_mode").fetchone()
    assert (level, mode) == (2, "wal")  # 2 is FULL


def test_the_file_is_read_by_its_owner_only(tmp_path: Path) -> None:
    def modes() -> dict[str, int]:
        return {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob(FILE_NAME + "*") if path.suffix != ".reserve"}

    private = dict.fromkeys((FILE_NAME, FILE_NAME + "-wal", FILE_NAME + "-shm"), 0o600)
    before = os.umask(0o022)
    try:
        with EmbeddedStore(tmp_path) as store:
            store.commit([Put("/a", b"secret")])
            assert modes() == private
        (tmp_path / FILE_NAME).chmod(0o644)
        (tmp_path / (FILE_NAME + "-wal")).touch(0o644)  # as a killed broker leaves it
        with EmbeddedStore(tmp_path):
            assert modes() == private
    finally:
        os.umask(before)


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 100)
    with pytest.raises(StoreUnavailable, match=FILE_NAME):
        EmbeddedStore(tmp_path)


def test_a_file_of_a_later_format_is_refused(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(StoreUnavailable, match="format 7"):
        EmbeddedStore(tmp_path)
