"""Classes that the tests name in configurations, and what they were asked."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import Any, ClassVar

from barnabas.errors import ErrorCode, KafkaError
from barnabas.plugins import (
    AlterConfigMetadata,
    AlterConfigPolicy,
    AuthenticationContext,
    ClientQuotaCallback,
    Cluster,
    CreateTopicMetadata,
    CreateTopicPolicy,
    PolicyViolation,
    Principal,
    PrincipalBuilder,
    QuotaEntity,
    QuotaType,
    SaslContext,
    TlsContext,
)

HERE = "python:tests.plugins.samples:"
ASKED: list[Any] = []  # calls of all classes, in order; tests clear this list
GATE = Event()  # `Topics` waits for this event at topics named slow-*


class Topics(CreateTopicPolicy):
    """Refuses by the first word of a topic's name."""

    def configure(self, configs: Mapping[str, str]) -> None:
        ASKED.append(("configured", configs.get("my.own.key")))

    def close(self) -> None:
        ASKED.append("closed")

    def validate(self, metadata: CreateTopicMetadata) -> None:
        ASKED.append(metadata)
        word = metadata.topic.partition("-")[0]
        if word == "no":
            raise PolicyViolation(f"not {metadata.topic}")
        if word == "bad":
            raise RuntimeError("secret of the policy")
        if word == "api":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"apiboom {metadata.topic}")
        if word == "slow":
            assert GATE.wait(30)


class Settings(AlterConfigPolicy):
    """Refuses by the value of retention.ms."""

    def validate(self, metadata: AlterConfigMetadata) -> None:
        ASKED.append(metadata)
        retention = metadata.configs.get("retention.ms")
        if retention == "1":
            raise PolicyViolation("no 1")
        if retention == "2":
            raise RuntimeError("boom")
        if retention == "3":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "apiboom 3")


class Names(PrincipalBuilder):
    """Names everybody after how he came; refuses who is called mallory."""

    def build(self, context: AuthenticationContext) -> Principal:
        ASKED.append(context)
        if isinstance(context, SaslContext):
            if context.authorization_id == "mallory":
                raise PermissionError("not he")
            return Principal(context.authorization_id.upper(), groups=("staff",))
        if isinstance(context, TlsContext):
            return Principal(context.subject or "nobody", "Host")
        return Principal(f"{context.listener_name}@{context.client_address}", "Host")


class NoNames(PrincipalBuilder):
    def build(self, context: AuthenticationContext) -> Principal:
        raise PermissionError("nobody comes in")


class Quotas(ClientQuotaCallback):
    """All clients whose id begins alike share a limit, which is declared for the user `shared`."""

    instances: ClassVar[list[Quotas]] = []

    def __init__(self) -> None:
        self.limits: dict[QuotaType, float] = {}
        self.reset = False
        self.topics: list[str] = []
        self.fails = False
        Quotas.instances.append(self)

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        if self.fails:
            raise RuntimeError("no tags")
        ASKED.append((quota_type, principal, client_id))
        return {"team": client_id.partition("-")[0]}

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return None if metric_tags["team"] == "free" else self.limits.get(quota_type)

    def update_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity, new_value: float) -> None:
        ASKED.append(("update", quota_type, quota_entity, new_value))
        if quota_entity.user == "shared":
            self.limits[quota_type] = new_value

    def remove_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity) -> None:
        ASKED.append(("remove", quota_type, quota_entity))
        self.limits.pop(quota_type, None)

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        found, self.reset = self.reset, False
        return found

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        self.topics = sorted(cluster.topics)
        return False


class NotConfigured(CreateTopicPolicy):
    def configure(self, configs: Mapping[str, str]) -> None:
        raise ValueError("the key\nmy.own.key is missing")


class Unrelated:
    pass
