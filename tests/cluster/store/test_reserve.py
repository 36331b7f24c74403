"""Room for the metadata on a full disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import Put, StoreUnavailable
from barnabas.cluster.store.reserve import Reserve


def test_the_file_is_there_while_there_is_room(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "r", 8192)
    assert not reserve.give_up()
    reserve.take()
    assert (reserve.is_there, (tmp_path / "r").stat().st_size) == (True, 8192)
    assert reserve.give_up()
    assert not (tmp_path / "r").exists()
    without = Reserve(tmp_path / "no" / "r", 8192)
    without.take()
    assert not without.is_there


class FullDatabase:
    """A database whose pages are counted: the disk is full once the limit is reached, and the reserve is worth `pages`."""

    def __init__(self, store: EmbeddedStore, pages: int) -> None:
        self.store, self.pages = store, pages

    @contextmanager
    def full(self) -> Iterator[None]:
        (used,) = self.store._database.execute("PRAGMA page_count").fetchone()
        self.store._database.execute(f"PRAGMA max_page_count = {used}")
        give_up = self.store._reserve.give_up

        def freed() -> bool:
            self.store._database.execute(f"PRAGMA max_page_count = {used + self.pages}")
            return give_up()

        self.store._reserve.give_up = freed  # type: ignore[method-assign]  # also makes room
        yield


def test_a_change_on_a_full_disk_takes_the_reserve_and_the_next_one_has_it_again(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path) as store:
        reserve = tmp_path / "metadata.db.reserve"
        assert reserve.exists()
        with FullDatabase(store, pages=50).full():
            revision = store.revision
            assert store.commit([Put("/a", b"x" * 60_000)]) == revision + 1
            assert store.get("/a") is not None
            assert reserve.exists()  # the disk had room for the reserve again
            with pytest.raises(StoreUnavailable, match="full"):
                store.commit([Put("/b", b"x" * 900_000)])
            assert store.get("/b") is None
            assert store.revision == revision + 1
