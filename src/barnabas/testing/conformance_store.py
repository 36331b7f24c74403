"""Tests for every metadata store: subclass `StoreConformance` and define how a store is opened.

    class TestMemoryStore(SessionConformance):
        @pytest.fixture
        def open_store(self):
            tree = MemoryTree()
            return lambda: MemoryStore(tree)

`open_store()` opens a session with the same stored data each time. Some stores allow only one process: their tests subclass
`StoreConformance` alone, and close the store before they open it again. `SessionConformance` is for stores that several
processes use; its subclasses also define how to disturb a session: `suspend` and `resume` (the connection), `expire` (the
session).

A store may notify its watchers after some time, so the tests wait for the notification. If the store notifies at once, there is
no wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from barnabas.cluster.store.interface import (
    ABSENT,
    ANY,
    MAX_COMMIT_BYTES,
    ROOT,
    Check,
    CommitTooLarge,
    MetadataStore,
    Put,
    Remove,
    SessionEvent,
    SessionState,
    StoreConflict,
    StoreUnavailable,
)

OpenStore = Callable[[], MetadataStore]
HEARD_WITHIN_S = 30.0


class Ear:
    """Records the notifications of watchers; `wait_for` returns after the expected ones."""

    def __init__(self, store: MetadataStore) -> None:
        self.paths: list[str] = []
        self.events: list[SessionEvent] = []
        self._heard = threading.Condition()
        store.watch_session(self._hear_event)
        store.watch(self._hear_paths)

    def _hear_event(self, event: SessionEvent) -> None:
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def _hear_paths(self, paths: object) -> None:
        assert isinstance(paths, tuple)
        with self._heard:
            self.paths += paths
            self._heard.notify_all()

    def wait_for(self, *paths: str) -> None:
        """Wait for these notifications in this order, possibly with others in between."""
        with self._heard:
            told = self._heard.wait_for(lambda: _in_order(paths, self.paths), HEARD_WITHIN_S)
        assert told, f"notified of {self.paths}, not of {paths} in this order"

    def wait_for_states(self, *states: SessionState) -> None:
        """Wait until the session had exactly these states."""
        with self._heard:
            self._heard.wait_for(lambda: len(self.events) >= len(states), HEARD_WITHIN_S)
            heard = [event.state for event in self.events]
        assert heard == list(states), f"the session had the states {heard}"

    def wait_for_last_states(self, *states: SessionState) -> None:
        """Wait until these are the last states of the session; other states may come before them."""

        def last() -> list[SessionState]:
            return [event.state for event in self.events[-len(states) :]]

        with self._heard:
            self._heard.wait_for(lambda: last() == list(states), HEARD_WITHIN_S)
            heard = last()
        assert heard == list(states), f"the last states of the session were {heard}"


def _in_order(wanted: tuple[str, ...], heard: list[str]) -> bool:
    rest = iter(heard)
    return all(path in rest for path in wanted)


class StoreConformance:
    """The rules of `barnabas.cluster.store.interface`, one test for each."""

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

    def test_many_are_read_in_the_order_they_are_asked_for(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put(f"/a/{number:03d}", b"x") for number in range(150)])
            paths = [f"/a/{number:03d}" for number in reversed(range(151))]
            assert store.get_many([*paths, "/a"]) == [None, *((path, b"x", 0) for path in paths[1:]), None]
            assert store.get_many([]) == []

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
        paths = ["/t/b", "/t/a/2", "/t/a.c", "/ta", "/t/a/1", "/t/Ω", "/u"]
        with open_store() as store:
            store.commit([Put(path, b"") for path in paths])
            assert [entry.path for entry in store.list("/t/")] == sorted(path for path in paths if path.startswith("/t/"))
            assert [entry.path for entry in store.list("/t/a")] == ["/t/a.c", "/t/a/1", "/t/a/2"]
            assert [entry.path for entry in store.list("/")] == sorted(paths)

    def test_a_parent_without_a_value_is_no_entry(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/t/a/b", b"x", ABSENT)])
            assert store.get("/t/a") is None
            store.commit([Remove("/t/a/b")])
            assert list(store.list("/")) == []
            store.commit([Put("/t/a/b", b"y", ABSENT)])
            assert store.get("/t/a/b") == ("/t/a/b", b"y", 0)

    def test_the_revision_grows_with_each_commit(self, open_store: OpenStore) -> None:
        with open_store() as store:
            seen = [store.revision]
            for path in ("/a", "/b", "/a"):
                seen.append(store.commit([Put(path, b"")]))
                assert store.revision == seen[-1]
            assert seen == sorted(set(seen))

    def test_the_position_is_that_of_what_watchers_were_told(self, open_store: OpenStore) -> None:
        with open_store() as store:
            before = store.position()
            revision = store.commit([Put("/a", b"")])
            assert before < revision <= store.position()

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

    def test_many_entries_come_back(self, open_store: OpenStore) -> None:
        paths = [f"/many/{n % 7}/{n:04d}" for n in range(2500)]
        with open_store() as store:
            for start in range(0, len(paths), 500):
                store.commit([Put(path, path.encode(), ABSENT) for path in paths[start : start + 500]])
            assert [(entry.path, entry.value) for entry in store.list("/")] == [(path, path.encode()) for path in sorted(paths)]

    def test_an_ephemeral_entry_may_be_written_again(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/me", b"x", ABSENT, ephemeral=True)])
            store.commit([Put("/me", b"y", 0)])
            assert store.get("/me") == ("/me", b"y", 1)
        with open_store() as store:
            assert store.get("/me") is None

    def test_only_what_is_made_can_be_made_ephemeral(self) -> None:
        with pytest.raises(ValueError, match="/me"):
            Put("/me", b"", ANY, ephemeral=True)

    def test_an_ephemeral_entry_that_is_removed_may_become_a_lasting_one(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/me", b"x", ABSENT, ephemeral=True)])
            store.commit([Remove("/me", 0), Put("/me", b"y", ABSENT), Put("/me", b"z", 0)])
        with open_store() as store:
            assert store.get("/me") == ("/me", b"z", 1)

    def test_watchers_hear_of_every_change(self, open_store: OpenStore) -> None:
        with open_store() as store:
            store.commit([Put("/before", b"")])
            ear = Ear(store)
            store.commit([Put("/a", b""), Put("/b", b""), Check("/before", 0)])
            store.commit([Remove("/a")])
            with pytest.raises(StoreConflict):
                store.commit([Put("/c", b""), Put("/b", b"", ABSENT)])
            store.commit([Put("/d/e", b"")])
            ear.wait_for("/a", "/b", "/a", "/d/e")
            assert not {"/before", "/c"} & set(ear.paths)

    def test_the_session_is_connected_until_it_is_closed(self, open_store: OpenStore) -> None:
        store = open_store()
        ear = Ear(store)
        session_id = store.session.session_id
        assert store.session.state is SessionState.CONNECTED
        store.close()
        assert store.session == (SessionState.CLOSED, session_id)
        ear.wait_for_states(SessionState.CLOSED)
        with open_store() as later:
            assert later.session.session_id != session_id

    def test_a_closed_store_says_so(self, open_store: OpenStore) -> None:
        store = open_store()
        store.close()
        store.close()
        with pytest.raises(StoreUnavailable):
            store.get("/a")
        with pytest.raises(StoreUnavailable):
            store.commit([Put("/a", b"")])


class SessionConformance(StoreConformance):
    """Tests for stores that several processes use at once."""

    def suspend(self, store: MetadataStore) -> None:
        """Cut the connection; returns when the store has noticed it."""
        raise NotImplementedError

    def resume(self, store: MetadataStore) -> None:
        """Restore the connection."""
        raise NotImplementedError

    def expire(self, store: MetadataStore) -> None:
        """End the session of a connected store from outside."""
        raise NotImplementedError

    def test_a_commit_that_is_too_large_is_refused_by_name(self, open_store: OpenStore) -> None:
        with open_store() as store:
            with pytest.raises(CommitTooLarge, match="/large"):
                store.commit([Put("/small", b"x"), Put("/large", b"x" * MAX_COMMIT_BYTES)])
            with pytest.raises(CommitTooLarge):
                store.commit([Put(f"/{n}", b"x" * (MAX_COMMIT_BYTES // 9)) for n in range(10)])
            assert list(store.list("/")) == []
            store.commit([Put("/largest", b"x" * (MAX_COMMIT_BYTES - 100))])

    def test_sessions_see_each_other(self, open_store: OpenStore) -> None:
        with open_store() as one, open_store() as other:
            ear = Ear(other)
            one.commit([Put("/a", b"x", ABSENT, ephemeral=True)])
            ear.wait_for("/a")
            assert other.get("/a") == ("/a", b"x", 0)
            with pytest.raises(StoreConflict):
                other.commit([Put("/a", b"y", ABSENT)])
            one.close()
            ear.wait_for("/a", "/a")
            assert other.get("/a") is None

    def test_a_session_that_caught_up_was_told_what_others_had_written(self, open_store: OpenStore) -> None:
        with open_store() as one, open_store() as other:
            ear = Ear(other)
            for number in range(10):
                one.commit([Put(f"/a-{number}", b"x", ABSENT)])
                other.catch_up()
                assert f"/a-{number}" in ear.paths
                assert other.get(f"/a-{number}") is not None

    def test_a_check_fences_the_one_who_lost_an_office(self, open_store: OpenStore) -> None:
        with open_store() as old, open_store() as young:
            old.commit([Put("/epoch", b"1", ABSENT)])
            young.commit([Put("/epoch", b"2", 0)])
            with pytest.raises(StoreConflict) as caught:
                old.commit([Check("/epoch", 0), Put("/work", b"of the old")])
            assert caught.value.path == "/epoch"
            assert young.get("/work") is None

    def test_a_suspended_session_keeps_its_entries_and_answers_nothing(self, open_store: OpenStore) -> None:
        with open_store() as store:
            ear = Ear(store)
            store.commit([Put("/me", b"x", ABSENT, ephemeral=True)])
            session_id = store.session.session_id
            self.suspend(store)
            assert store.session == (SessionState.SUSPENDED, session_id)
            with pytest.raises(StoreUnavailable):
                store.commit([Put("/late", b"")])
            with pytest.raises(StoreUnavailable):
                store.get("/me")
            self.resume(store)
            ear.wait_for(ROOT)
            ear.wait_for_states(SessionState.SUSPENDED, SessionState.CONNECTED)
            assert store.session == (SessionState.CONNECTED, session_id)
            assert store.get("/me") == ("/me", b"x", 0)
            assert store.get("/late") is None
            store.commit([Put("/a", b"")])
            ear.wait_for(ROOT, "/a")
            assert store.get("/late") is None

    def test_an_expired_session_loses_its_entries_and_is_followed_by_another(self, open_store: OpenStore) -> None:
        with open_store() as store, open_store() as other:
            ear, others = Ear(store), Ear(other)
            first = store.session.session_id
            store.commit([Put("/me", b"x", ABSENT, ephemeral=True), Put("/ours", b"y")])
            self.expire(store)
            others.wait_for("/me", "/me")
            # The store may get its session back before the session ends, because the client that ends it reconnects to it.
            ear.wait_for_last_states(SessionState.SUSPENDED, SessionState.EXPIRED, SessionState.CONNECTED)
            *before, second = (event.session_id for event in ear.events)
            assert set(before) == {first}
            assert first != second == store.session.session_id
            ear.wait_for(ROOT)
            assert [entry.path for entry in store.list("/")] == ["/ours"]
            store.commit([Put("/me", b"again", ABSENT, ephemeral=True)])
            ear.wait_for(ROOT, "/me")
            others.wait_for("/me", "/me", "/me")
            assert other.get("/me") == ("/me", b"again", 0)

    def test_another_session_may_take_an_entry_over_in_one_commit(self, open_store: OpenStore) -> None:
        with open_store() as young:
            with open_store() as old:
                old.commit([Put("/office", b"old", ABSENT, ephemeral=True)])
                young.commit([Remove("/office", 0), Put("/office", b"young", ABSENT, ephemeral=True)])
            assert young.get("/office") == ("/office", b"young", 0)

    def test_racing_writers_without_expectation_all_succeed(self, open_store: OpenStore) -> None:
        with open_store() as one, open_store() as other:
            stores, writes = (one, other), 30
            failed: list[BaseException] = []

            def write(store: MetadataStore) -> None:
                try:
                    for n in range(writes):
                        store.commit([Put("/a", b"x"), Put(f"/dir/{n % 3}", b"y"), Remove(f"/dir/{(n + 1) % 3}")])
                except BaseException as error:  # noqa: BLE001 - the test reports it
                    failed.append(error)

            if self.has_threads:
                threads = [threading.Thread(target=write, args=(store,)) for store in stores]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            else:
                for store in stores:
                    write(store)
            assert failed == []
            entry = one.get("/a")
            assert entry is not None
            assert entry.version == 2 * writes - 1

    has_threads = False
