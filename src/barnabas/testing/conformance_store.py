"""What every metadata store must do, as tests: subclass `StoreConformance` and say how a store is opened.

    class TestMemoryStore(StoreConformance):
        @pytest.fixture
        def open_store(self):
            tree = MemoryTree()
            return lambda: MemoryStore(tree)

`open_store()` opens a session with the same stored data each time. Stores that only one process may open (`several_sessions =
False`) are closed before they are opened again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from barnabas.cluster.store import ABSENT, ANY, Check, MetadataStore, Put, Remove, StoreConflict, StoreUnavailable

OpenStore = Callable[[], MetadataStore]


class StoreConformance:
    """The rules of `barnabas.cluster.store`, one test for each."""

    several_sessions = True

    def test_what_was_put_is_read(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"one", ABSENT)])
            entry = store.get("/a")
            assert entry is not None
            assert tuple(entry) == ("/a", b"one", 0)

    def test_nothing_is_read_where_nothing_was_put(self, open_store: OpenStore) -> None:
        with open_store() as store:
            assert store.get("/a") is None
            assert list(store.list("/")) == []

    def test_each_write_raises_the_version(self, open_store: OpenStore) -> None:
        with open_store() as store:
            for version in range(3):
                store.commit([Put("/a", b"x")])
                assert store.get("/a") == ("/a", b"x", version)

    def test_a_removed_entry_starts_again_at_version_zero(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"x")])
            store.commit([Put("/a", b"x")])
            store.commit([Remove("/a")])
            assert store.get("/a") is None
            store.commit([Put("/a", b"y", ABSENT)])
            assert store.get("/a") == ("/a", b"y", 0)

    def test_removing_what_is_not_there_is_fine_without_expectation(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Remove("/a", ANY)])
            assert store.get("/a") is None

    def test_an_old_version_is_refused(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"one")])
            store.commit([Put("/a", b"two", 0)])
            with pytest.raises(StoreConflict) as caught:
                store.commit([Put("/a", b"three", 0)])
            assert (caught.value.path, caught.value.expected, caught.value.found) == ("/a", 0, 1)
            assert store.get("/a") == ("/a", b"two", 1)

    def test_making_what_exists_is_refused(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"one")])
            with pytest.raises(StoreConflict):
                store.commit([Put("/a", b"two", ABSENT)])

    def test_changing_or_removing_what_is_gone_is_refused(self, open_store: OpenStore) -> None:
        with open_store() as store:
            for operation in (Put("/a", b"x", 0), Remove("/a", 0), Check("/a", 0)):
                with pytest.raises(StoreConflict):
                    store.commit([operation])
            assert store.get("/a") is None

    def test_one_refused_operation_refuses_them_all(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"one")])
            revision = store.revision
            with pytest.raises(StoreConflict):
                store.commit([Put("/b", b"x"), Put("/a", b"two"), Remove("/a"), Check("/c", 4)])
            assert store.get("/a") == ("/a", b"one", 0)
            assert store.get("/b") is None
            assert store.revision == revision

    def test_a_check_changes_nothing(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"one")])
            store.commit([Check("/a", 0), Check("/b", ABSENT), Put("/c", b"x")])
            assert store.get("/a") == ("/a", b"one", 0)
            assert store.get("/b") is None

    def test_operations_of_a_commit_see_one_another(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"one", ABSENT), Put("/a", b"two", 0), Check("/a", 1)])
            assert store.get("/a") == ("/a", b"two", 1)

    def test_listing_is_by_prefix_and_in_order(self, open_store: OpenStore) -> None:
        paths = ["/t/b", "/t/a", "/t/a.c", "/ta", "/t/a/1", "/t/Ω", "/u"]
        with open_store() as store:
            store.commit([Put(path, b"") for path in paths])
            assert [entry.path for entry in store.list("/t/")] == sorted(path for path in paths if path.startswith("/t/"))
            assert [entry.path for entry in store.list("/")] == sorted(paths)

    def test_the_revision_grows_with_each_commit(self, open_store: OpenStore) -> None:
        with open_store() as store:
            seen = [store.revision]
            for path in ("/a", "/b", "/a"):
                seen.append(store.commit([Put(path, b"")]))
                assert store.revision == seen[-1]
            assert seen == sorted(set(seen))

    def test_data_and_revision_survive_the_session(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/a", b"one"), Put("/b", b"")])
            revision = store.commit([Put("/a", b"two"), Remove("/b")])
        with open_store() as store:
            assert [tuple(entry) for entry in store.list("/")] == [("/a", b"two", 1)]
            assert store.revision >= revision

    def test_ephemeral_entries_end_with_their_session(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/gone", b"x", ABSENT, ephemeral=True), Put("/kept", b"y")])
            assert store.get("/gone") == ("/gone", b"x", 0)
        with open_store() as store:
            assert [entry.path for entry in store.list("/")] == ["/kept"]

    def test_a_large_value_comes_back_whole(self, open_store: OpenStore) -> None:
        value = bytes(range(256)) * 2048
        with open_store() as store:
            store.commit([Put("/a", value)])
            entry = store.get("/a")
            assert entry is not None
            assert entry.value == value

    def test_watchers_hear_of_every_change(self, open_store: OpenStore) -> None:
        heard: list[Sequence[str]] = []
        with open_store() as store:
            store.commit([Put("/before", b"")])
            store.watch(heard.append)
            store.commit([Put("/a", b""), Put("/b", b""), Check("/before", 0)])
            store.commit([Remove("/a")])
            with pytest.raises(StoreConflict):
                store.commit([Put("/b", b"", ABSENT)])
        assert [set(paths) for paths in heard] == [{"/a", "/b"}, {"/a"}]

    def test_a_closed_store_says_so(self, open_store: OpenStore) -> None:
        store = open_store()
        store.close()
        store.close()
        with pytest.raises(StoreUnavailable):
            store.get("/a")
        with pytest.raises(StoreUnavailable):
            store.commit([Put("/a", b"")])

    def test_sessions_see_each_other(self, open_store: OpenStore) -> None:
        if not self.several_sessions:
            pytest.skip("one process at a time")
        heard: list[Sequence[str]] = []
        with open_store() as one, open_store() as other:
            other.watch(heard.append)
            one.commit([Put("/a", b"x", ABSENT, ephemeral=True)])
            assert other.get("/a") == ("/a", b"x", 0)
            with pytest.raises(StoreConflict):
                other.commit([Put("/a", b"y", ABSENT)])
            one.close()
            assert other.get("/a") is None
            assert [tuple(paths) for paths in heard] == [("/a",), ("/a",)]
