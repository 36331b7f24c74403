"""SCRAM users follow between clusters of barnabas; nobody but a super user over TLS sees a credential."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from barnabas.cli.connection import Connection
from barnabas.cli.errors import Failure
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.values import USER_CREDENTIALS
from barnabas.testing import Broker
from tests.server.mirroring.clusters import create_link, link
from tests.waiting import wait_until

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
USERS = {"mirror": "m", "carol": "c", "admin": "theirs", "dave": "d"}
SCRAM = "SCRAM-SHA-512"


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    config = {
        **AUTHORIZER,
        "super.users": "User:mirror;User:ANONYMOUS",
        "listeners": "SASL_SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
    }
    with Broker(config, users=USERS, tls=True) as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    config = {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0", "super.users": "User:dave"}
    with Broker(config, users={"admin": "ours"}) as broker:
        yield broker


def login(source: Broker, user: str) -> dict[str, str]:
    """Settings of a link that logs in as a user."""
    return {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": SCRAM,
        "sasl_username": user,
        "sasl_password": USERS[user],
        "ssl_truststore_certificates": source.certificates.authority.ca_file.read_text(),
        "refresh_topics_interval_seconds": "1",
        "sync_users_enabled": "true",
    }


def can_log_in(target: Broker, user: str, password: str) -> bool:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": SCRAM, "sasl.username": user, "sasl.password": password}
    admin = AdminClient({"bootstrap.servers": target.listeners["SASL_PLAINTEXT"], **settings, "log_level": 0})
    try:
        admin.list_topics(timeout=3)
    except KafkaException:
        return False
    return True


def alter(source: Broker, change: UserScramCredentialUpsertion | UserScramCredentialDeletion) -> None:
    settings = {**source.login("mirror", SCRAM), "ssl.ca.location": source.certificates.ca_file}
    admin = AdminClient({"bootstrap.servers": source.listeners["SASL_SSL"], **settings})
    for done in cast(dict[str, Any], admin.alter_user_scram_credentials([change])).values():
        done.result(30)


def password(user: str, text: str) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), text.encode())


def test_users_log_in_at_the_target_with_their_passwords(source: Broker, target: Broker) -> None:
    create_link(target.bootstrap_servers, source.listeners["SASL_SSL"], **login(source, "mirror"))
    wait_until(lambda: can_log_in(target, "carol", "c"), str(link(target.bootstrap_servers)), within_s=30)
    assert can_log_in(target, "admin", "ours")  # a user of the target stays
    assert not can_log_in(target, "admin", "theirs")
    assert not can_log_in(target, "dave", "d")  # the source does not choose the password of a super user here
    alter(source, password("carol", "other"))
    wait_until(lambda: can_log_in(target, "carol", "other"), "the password did not follow", within_s=30)
    assert not can_log_in(target, "carol", "c")
    alter(source, password("erin", "e"))
    wait_until(lambda: can_log_in(target, "erin", "e"), "the user did not follow", within_s=30)
    alter(source, UserScramCredentialDeletion("erin", ScramMechanism.SCRAM_SHA_512))
    wait_until(lambda: not can_log_in(target, "erin", "e"), "the user was not removed", within_s=30)
    assert can_log_in(target, "carol", "other")


def test_a_user_without_all_rights_gets_no_credentials(source: Broker, target: Broker) -> None:
    create_link(target.bootstrap_servers, source.listeners["SASL_SSL"], **login(source, "dave"))
    reason = {"users": "the source answers CLUSTER_AUTHORIZATION_FAILED: only a user of super.users gets credentials"}
    wait_until(lambda: link(target.bootstrap_servers).not_followed == reason, str(link(target.bootstrap_servers)), within_s=30)
    assert not can_log_in(target, "mirror", "m")


@pytest.mark.parametrize(("protocol", "reason"), [("SASL_PLAINTEXT", "TLS only"), ("SSL", "only a user of super.users")])
def test_credentials_need_a_log_in_and_tls(source: Broker, protocol: str, reason: str) -> None:
    settings = {"security.protocol": protocol, "ssl.ca.location": source.certificates.ca_file}
    if protocol.startswith("SASL"):
        settings |= {"sasl.mechanism": "PLAIN", "sasl.username": "mirror", "sasl.password": USERS["mirror"]}
    check_refused(Connection(source.listeners[protocol], settings), reason)


def test_a_broker_without_an_authorizer_shows_no_credentials(target: Broker) -> None:
    check_refused(Connection(target.bootstrap_servers), "without authorizer.class.name")


def check_refused(connection: Connection, reason: str) -> None:
    wanted = DescribeConfigsResource(resource_type=USER_CREDENTIALS, resource_name="", configuration_keys=None)
    with connection.wire() as wire:
        (result,) = wire.request(DescribeConfigsRequest(resources=[wanted])).results
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert reason in (result.error_message or "")
    assert list(result.configs) == []


def test_a_link_without_tls_may_not_copy_users(target: Broker) -> None:
    with pytest.raises(Failure, match=r"sync\.users\.enabled needs security\.protocol"):
        create_link(target.bootstrap_servers, "127.0.0.1:1", sync_users_enabled="true")
