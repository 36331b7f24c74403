"""Declarations about principals: written as planned, the same on every broker, told to who follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.declared import MAX_KEY_BYTES, Changes, Declarations, Kind
from barnabas.cluster.metadata.image import MetadataDelta, MetadataImage
from barnabas.cluster.metadata.observation import observe
from barnabas.cluster.planning.instructions import UpdateDeclared
from barnabas.cluster.store.interface import ABSENT, ROOT, Put, Remove
from barnabas.cluster.store.memory import MemoryStore
from barnabas.errors import ErrorCode, KafkaError
from barnabas.server.declarations import DeclarationFollowers
from tests.cluster.harness import FakeBroker
from tests.cluster.members import Members

ALICE, BOB = (Kind.USER, "alice"), (Kind.USER, "bob/ä%")


def declaring(changes: Changes) -> Any:
    return lambda image: (len(image.declarations(Kind.USER)), changes)


@pytest.mark.parametrize("key", ["a", "User:ä", "a/b%", "../..", "."])
def test_a_key_comes_back_from_its_path(key: str) -> None:
    path = store_entries.declaration_path(Kind.QUOTA, key)
    assert path.count("/") == 2
    assert store_entries.declaration_of_path(path) == (Kind.QUOTA, key)


@pytest.mark.parametrize("path", ["/", "/acls", "/acls/", "/topics/t", "/configs/topic/t", "/others/a"])
def test_other_paths_declare_nothing(path: str) -> None:
    assert store_entries.declaration_of_path(path) is None


def test_only_the_kind_that_changed_is_another_object() -> None:
    before = MetadataImage("").apply(MetadataDelta(declared={ALICE: {"a": 1}, (Kind.TOKEN, "r"): 1}))
    after = before.apply(MetadataDelta(declared={BOB: {"b": 2}}))
    assert after.declarations(Kind.USER) == {"alice": {"a": 1}, "bob/ä%": {"b": 2}}
    assert after.declarations(Kind.TOKEN) is before.declarations(Kind.TOKEN)
    assert after.apply(MetadataDelta(declared={ALICE: None})).declarations(Kind.USER) == {"bob/ä%": {"b": 2}}


@pytest.mark.parametrize("told", [{ROOT}, {"/users", "/users/alice", "/users/bob%2F%C3%A4%25"}])
def test_what_others_wrote_is_read(told: set[str]) -> None:
    store, path = MemoryStore(), store_entries.declaration_path(*BOB)
    store.commit([Put(path, store_entries.encode({"b": 2}), ABSENT)])
    image = MetadataImage("").apply(MetadataDelta(declared={ALICE: {"a": 1}}))
    found = observe(store, image, told)
    assert found.delta.declared == {BOB: {"b": 2}, ALICE: None}
    image = image.apply(found.delta)
    assert observe(store, image, told).delta.declared == {}
    store.commit([Remove(path)])
    assert observe(store, image, told).delta.declared == {BOB: None}


async def test_a_broker_alone_writes_what_is_planned_and_answers() -> None:
    async with FakeBroker() as broker:
        controller = broker.controller
        assert await controller.declare(declaring({ALICE: {"a": 1}, BOB: [2]})) == 0
        assert broker.instructions == [UpdateDeclared(frozenset({Kind.USER}))]
        assert await controller.declare(declaring({ALICE: None}), validate_only=True) == 2
        assert await controller.declare(declaring({ALICE: {"a": 1}, BOB: [2]})) == 2
        assert len(broker.instructions) == 1, "nothing changed"
        assert await controller.declare(declaring({ALICE: None})) == 2
        assert controller.image.declarations(Kind.USER) == {"bob/ä%": [2]}


@pytest.mark.parametrize("key", ["", "x" * (MAX_KEY_BYTES + 1)])
async def test_a_key_that_the_store_does_not_take_is_refused(key: str) -> None:
    async with FakeBroker() as broker:
        with pytest.raises(KafkaError) as refused:
            await broker.controller.declare(declaring({(Kind.USER, key): 1}))
        assert refused.value.code is ErrorCode.INVALID_REQUEST
        assert broker.controller.image.declarations(Kind.USER) == {}


async def test_every_broker_of_a_cluster_hears_of_it(cluster: Members) -> None:
    await cluster.controller.member.declare(declaring({ALICE: {"a": 1}}))
    await cluster.until(cluster.is_settled)
    for node in cluster.live:
        assert node.image.declarations(Kind.USER) == {"alice": {"a": 1}}
        assert node.heard.count(UpdateDeclared(frozenset({Kind.USER}))) == 1


def test_followers_are_told_at_once_and_of_their_kind_only() -> None:
    now: dict[Kind, Mapping[str, Any]] = {Kind.USER: {"alice": 1}}
    heard: list[Declarations] = []
    followers = DeclarationFollowers(lambda: MetadataImage("", declared=now))
    followers.follow(Kind.USER, heard.append)
    followers.tell([Kind.ACL])
    now[Kind.USER] = {"bob": 2}
    followers.tell([Kind.USER, Kind.ACL])
    assert heard == [{"alice": 1}, {"bob": 2}]
