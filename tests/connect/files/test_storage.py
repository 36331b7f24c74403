"""Places with files: a folder, objects in memory, and an S3."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins.files.folder import Folder
from barnabas.connect.plugins.files.objects import Objects
from barnabas.connect.plugins.files.places import opened
from barnabas.connect.plugins.files.storage import Changed, Storage
from tests.connect.files import fake_s3

Places = Callable[[str], Storage]


@pytest.fixture(params=["folder", "memory", "s3"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Makes places of one kind."""
    if request.param == "folder":
        yield lambda name: Folder(str(tmp_path / name))
    elif request.param == "memory":
        store = MemoryStore()
        yield lambda name: Objects(store, name, "memory://")
    else:
        with fake_s3.running() as s3:
            yield lambda name: opened(f"s3://bucket/{name}", s3.options)


def names(place: Storage, *, recursive: bool = True) -> list[str]:
    return sorted(each.name for each in place.entries(recursive=recursive))


def content(place: Storage, name: str) -> bytes:
    (entry,) = [each for each in place.entries(recursive=True) if each.name == name]
    with place.open(entry) as file:
        return file.read()


def test_what_is_written_is_listed_and_read(places: Places) -> None:
    place = places("in")
    for name in ("b", "a", "x/c d+1"):
        place.put(name, name.encode())
    assert (names(place), names(place, recursive=False)) == (["a", "b", "x/c d+1"], ["a", "b"])
    assert content(place, "x/c d+1") == b"x/c d+1"
    place.put("a", b"other")
    assert content(place, "a") == b"other"


def test_a_file_is_read_at_any_position(places: Places) -> None:
    place = places("in")
    place.put("a", b"0123456789")
    (entry,) = place.entries(recursive=False)
    with place.open(entry) as file:
        assert file.seek(7) == 7
        assert (file.read(2), file.tell(), file.read(), file.read(1)) == (b"78", 9, b"9", b"")
        assert (file.seek(-3, 2), file.read(1)) == (7, b"7")


def test_another_content_is_another_version(places: Places) -> None:
    place = places("in")
    place.put("a", b"1")
    (old,) = place.entries(recursive=False)
    place.put("a", b"22")
    (new,) = place.entries(recursive=False)
    assert (old.size, old.version) != (new.size, new.version)


def test_a_file_that_is_gone_is_told(places: Places) -> None:
    place = places("in")
    place.put("a", b"1")
    (entry,) = place.entries(recursive=False)
    place.delete("a")
    place.delete("a")
    with pytest.raises(Changed, match="in/a is gone"):
        place.open(entry).read(1)
    assert names(place) == []


def test_a_file_moves_to_a_name_that_is_free(places: Places) -> None:
    place, target = places("in"), places("done")
    target.put("x/a", b"old")
    place.put("x/a", b"new")
    place.move("x/a", target)
    assert names(place) == []
    assert {each: content(target, each) for each in names(target)} == {"x/a": b"old", "x/a.1": b"new"}


def test_names_with_a_dot_in_front_are_hidden(places: Places) -> None:
    place = places("in")
    place.put("a", b"")
    place.put(".b", b"")
    place.put(".c/d", b"")
    assert names(place) == ["a"]


def test_an_object_that_changes_while_it_is_read_is_told() -> None:
    with fake_s3.running() as s3:
        place = opened("s3://bucket/in", s3.options)
        place.put("a", b"1")
        (entry,) = place.entries(recursive=False)
        place.put("a", b"2")
        with pytest.raises(Changed, match="has changed"):
            place.open(entry).read()


@pytest.mark.parametrize("verb", ["list", "write"])
def test_wrong_credentials_are_told_in_one_line_without_them(verb: str) -> None:
    with fake_s3.running() as s3:
        place = opened("s3://bucket/in", {**s3.options, "store.access_key_id": "nobody"})
        with pytest.raises(ConnectError, match=f"refuses to {verb} s3://bucket/in/") as raised:
            place.put("a", b"") if verb == "write" else list(place.entries(recursive=False))
    assert not isinstance(raised.value, RetriableError)
    assert "\n" not in str(raised.value)
    assert fake_s3.SECRET not in str(raised.value)


@pytest.mark.parametrize("verb", ["list", "write"])
def test_a_bucket_that_is_missing_is_told(verb: str) -> None:
    with fake_s3.running() as s3:
        place = opened("s3://nowhere/in", s3.options)
        with pytest.raises(ConnectError, match=f"the store cannot {verb} s3://nowhere/in/") as raised:
            place.put("a", b"") if verb == "write" else list(place.entries(recursive=False))
    assert not isinstance(raised.value, (Changed, RetriableError))


def test_a_store_that_does_not_answer_may_be_asked_again() -> None:
    with fake_s3.running() as s3:
        options = s3.options
    with pytest.raises(RetriableError, match="the store cannot write s3://bucket/in/a: ") as raised:
        opened("s3://bucket/in", options).put("a", b"")
    assert "\n" not in str(raised.value)


def test_a_folder_has_no_half_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Folder(str(tmp_path))
    place.put("a", b"old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ConnectError, match="a cannot be written: No space left on device"):
        place.put("a", b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"old")]


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, reason in ((tmp_path / "no", "No such file or directory"), (tmp_path / "file", "Not a directory")):
        with pytest.raises(ConnectError, match=f"{path} cannot be read: {reason}"):
            Folder(str(path)).entries(recursive=False)
