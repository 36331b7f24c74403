"""ACLs and client quotas of the source follow here; those of this cluster stay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewTopic, ResourceType

from barnabas.testing import Broker
from tests.server.mirroring.acls import AUTHORIZED, acls, admin, allow, binding, forbid
from tests.server.mirroring.clusters import create_link, delete_link, link, promote, wait_equal
from tests.server.mirroring.user_quotas import limit, quotas
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    with Broker(AUTHORIZED) as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker(AUTHORIZED) as broker:
        yield broker


def create(servers: str, name: str) -> None:
    client = admin(servers)
    client.create_topics([NewTopic(name, 1)])[name].result(30)


def test_acls_follow_the_source(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "orders")
    create(ours, "mine")
    allow(theirs, binding("orders"), binding("mine"), binding("billing", kind=ResourceType.GROUP))
    allow(ours, binding("orders", "User:local"), binding("mine", "User:local"))
    own = {("orders", "User:local"), ("mine", "User:local")}
    create_link(ours, theirs, topics="orders|mine", groups="billing", refresh_topics_interval_seconds="1")
    wait_equal(theirs, ours, "orders")
    assert acls(ours) == own  # they are not copied unless the link says so
    create_link(ours, theirs, sync_topic_acls_enabled="true")
    copied = {("orders", "User:alice"), ("billing", "User:alice")}
    wait_until(lambda: acls(ours) == own | copied, "the ACLs were not copied", within_s=30)
    forbid(theirs, "billing")
    allow(theirs, binding("orders", "User:bob"))
    copied = {("orders", "User:alice"), ("orders", "User:bob")}
    wait_until(lambda: acls(ours) == own | copied, "the ACLs did not follow", within_s=30)
    target.restart()
    forbid(theirs, "orders")
    wait_until(lambda: acls(ours) == own, "an ACL that is gone in the source stayed after a restart", within_s=30)
    allow(theirs, binding("orders", "User:carol"))
    wait_until(lambda: acls(ours) == own | {("orders", "User:carol")}, within_s=30)
    promote(ours, ["orders"])
    delete_link(ours)
    assert acls(ours) == own | {("orders", "User:carol")}
    forbid(theirs, "orders")
    forbid(theirs, "mine")


def test_a_source_without_an_authorizer_is_told(target: Broker) -> None:
    with Broker() as source:
        theirs, ours = source.bootstrap_servers, target.bootstrap_servers
        create_link(ours, theirs, sync_topic_acls_enabled="true")
        reason = {"acls": "the source answers SECURITY_DISABLED"}
        wait_until(lambda: link(ours).not_followed == reason, str(link(ours)), within_s=30)
        assert link(ours).not_followed == reason


def test_brokers_without_an_authorizer_are_told(source: Broker) -> None:
    with Broker() as target:
        create_link(target.bootstrap_servers, source.bootstrap_servers, sync_topic_acls_enabled="true")
        reason = {"acls": "the brokers here have no authorizer.class.name"}
        wait_until(lambda: link(target.bootstrap_servers).not_followed == reason, within_s=30)
        assert link(target.bootstrap_servers).not_followed == reason


def test_quotas_follow_the_source(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    limit(theirs, "alice", 1000)
    limit(theirs, "bob", 1000)
    limit(ours, "bob", 7)
    create_link(ours, theirs, sync_client_quotas_enabled="true", refresh_topics_interval_seconds="1")
    wait_until(lambda: quotas(ours) == {"alice": 1000, "bob": 7}, "the quota was not copied", within_s=30)
    limit(theirs, "alice", 2000)
    wait_until(lambda: quotas(ours) == {"alice": 2000, "bob": 7}, "the quota did not follow", within_s=30)
    limit(theirs, "alice", None)
    wait_until(lambda: quotas(ours) == {"bob": 7}, "the quota was not removed", within_s=30)
    assert quotas(theirs) == {"bob": 1000}
