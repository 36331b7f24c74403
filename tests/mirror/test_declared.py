"""Which ACLs and quotas a link declares here, and what it may change and remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import MetadataDelta, MetadataImage
from barnabas.mirror import declared
from barnabas.mirror.declared import MARK, changes, copied_acls, copied_quotas, is_released_acl, mark_key
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType, acl_as_json, acl_key
from tests.mirror.test_topics import COPY, image, link

T, G = ResourceType.TOPIC, ResourceType.GROUP


def acl(name: str, kind: ResourceType = T, pattern: str = "LITERAL", principal: str = "User:a") -> Acl:
    return Acl(kind, name, PatternType[pattern], principal, "*", Operation.READ, Permission.ALLOW)


def with_declared(before: MetadataImage, found: Mapping[tuple[Kind, str], Any]) -> MetadataImage:
    return before.apply(MetadataDelta(declared=found))


@pytest.mark.parametrize(
    ("theirs", "is_copied"),
    [
        (acl("orders"), True),
        (acl("mine"), False),  # a topic of this cluster that is no copy
        (acl("absent"), False),
        (acl("ord", pattern="PREFIXED"), False),
        (acl("orders-", pattern="PREFIXED"), True),
        (acl("*"), False),
        (acl("billing", G), True),
        (acl("console-consumer-1", G), False),
        (acl("orders", ResourceType.TRANSACTIONAL_ID), False),
        (acl("kafka-cluster", ResourceType.CLUSTER), False),
        (acl("orders", principal="User:admin"), False),
    ],
)
def test_acls_of_copies_and_groups_are_copied(theirs: Acl, is_copied: bool) -> None:
    mine = link(topics="orders.*,mine,absent", acls_principals_exclude="User:admin")
    found = copied_acls(mine, [theirs], image(orders=COPY, mine={}))
    assert found == ({acl_key(theirs): acl_as_json(theirs)} if is_copied else {})


def test_a_link_of_all_topics_copies_acls_of_all_topics() -> None:
    assert list(copied_acls(link(), [acl("*")], image())) == [acl_key(acl("*"))]


def test_acls_get_the_prefix_of_the_copies() -> None:
    theirs = [acl("orders"), acl("ord", pattern="PREFIXED"), acl("*"), acl("billing", G)]
    found = copied_acls(link(cluster_link_prefix="b."), theirs, image(**{"b.orders": COPY}))
    named = [acl("b.orders"), acl("b.ord", pattern="PREFIXED"), acl("b.", pattern="PREFIXED"), acl("billing", G)]
    assert list(found.values()) == [acl_as_json(each) for each in named]


def test_what_is_gone_in_the_source_is_removed_here_if_the_link_made_it() -> None:
    before = with_declared(image(), {(Kind.QUOTA, "own"): {"x": 1}})
    added = changes(before, "eu", Kind.QUOTA, {"a": {"x": 5}, "own": {"x": 9}})
    assert added == {(Kind.QUOTA, "a"): {"x": 5}, (Kind.MIRRORED, mark_key("eu", Kind.QUOTA, "a")): MARK}
    then = with_declared(before, added)
    assert changes(then, "eu", Kind.QUOTA, {"a": {"x": 5}}) == {}
    assert changes(then, "eu", Kind.QUOTA, {"a": {"x": 6}}) == {(Kind.QUOTA, "a"): {"x": 6}}
    assert changes(then, "us", Kind.QUOTA, {}) == {}  # another link
    gone = with_declared(then, changes(then, "eu", Kind.QUOTA, {}))
    assert dict(gone.declarations(Kind.QUOTA)) == {"own": {"x": 1}}
    assert dict(gone.declarations(Kind.MIRRORED)) == {}


def test_acls_of_a_promoted_topic_stay() -> None:
    kept, lost = acl("orders"), acl("deleted")
    before = image(orders=COPY, deleted=COPY)
    made = with_declared(before, changes(before, "eu", Kind.ACL, copied_acls(link(), [kept, lost], before)))
    promoted = image(orders={"mirror.producer.id.end": "4"})
    after = promoted.apply(MetadataDelta(declared={(k, n): v for k in Kind for n, v in made.declarations(k).items()}))
    found = changes(after, "eu", Kind.ACL, {}, lambda key: is_released_acl(after, "eu", key))
    then = with_declared(after, found)
    assert list(then.declarations(Kind.ACL)) == [acl_key(kept)]
    assert dict(then.declarations(Kind.MIRRORED)) == {}


def test_a_declaration_and_its_mark_are_in_one_commit() -> None:
    wanted = {f'[["user","u{number}/x"]]': {"x": 1} for number in range(50)}
    found = list(declared.pieces(changes(image(), "eu", Kind.QUOTA, wanted), 10))
    assert len(found) == 10
    for piece in found:
        keys = {key for kind, key in piece if kind is Kind.QUOTA}
        assert {mark_key("eu", Kind.QUOTA, key) for key in keys} == {key for kind, key in piece if kind is Kind.MIRRORED}
    assert {key for piece in found for kind, key in piece if kind is Kind.QUOTA} == set(wanted)


def test_quotas_that_cannot_be_set_here_are_left_out() -> None:
    found = copied_quotas({(("user", "a"),): {"producer_byte_rate": 5.0, "other": 1.0}, (("user", "b"),): {"other": 1.0}})
    assert found == {'[["user","a"]]': {"producer_byte_rate": 5.0}}
