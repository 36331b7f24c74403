"""Plug-in classes for a broker: topics belong to teams, records are kept for a week at most, and the clients of a team share a
quota.

    PYTHONPATH=. barnabas start --config create.topic.policy.class.name=python:examples.plugins.company:TopicsOfTeams \\
        --config alter.config.policy.class.name=python:examples.plugins.company:AWeekAtMost \\
        --config client.quota.callback.class=python:examples.plugins.company:QuotasOfTeams --config company.teams=orders,billing
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.plugins import (
    AlterConfigMetadata,
    AlterConfigPolicy,
    AuthenticationContext,
    ClientQuotaCallback,
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

WEEK_MS = 7 * 24 * 3_600_000


class TopicsOfTeams(CreateTopicPolicy):
    """A topic is named after its team (`orders.paid`), and has at most 12 partitions."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self.teams = frozenset(configs["company.teams"].split(","))  # the broker does not start without this setting

    def validate(self, metadata: CreateTopicMetadata) -> None:
        if metadata.topic.startswith("__"):
            return  # the broker's internal topics: the broker calls the policy for them too
        team, dot, _ = metadata.topic.partition(".")
        if not dot or team not in self.teams:
            raise PolicyViolation(f"{metadata.topic} does not begin with a team and a dot: {', '.join(sorted(self.teams))}")
        partitions = metadata.num_partitions or len(metadata.replicas_assignments or {})
        if partitions > 12:
            raise PolicyViolation(f"{metadata.topic} has {partitions} partitions, at most 12 are allowed")


class AWeekAtMost(AlterConfigPolicy):
    """Refuses a retention of more than a week, or an unlimited one."""

    def validate(self, metadata: AlterConfigMetadata) -> None:
        retention = metadata.configs.get("retention.ms")
        if metadata.resource_type == "TOPIC" and retention is not None and not 0 <= int(retention) <= WEEK_MS:
            raise PolicyViolation(f"retention.ms={retention} is more than a week")


class NamesByDepartment(PrincipalBuilder):
    """The department in a certificate becomes a group of the user; users that logged in keep their name."""

    def build(self, context: AuthenticationContext) -> Principal:
        if isinstance(context, SaslContext):
            return Principal(context.authorization_id, groups=context.groups)
        if isinstance(context, TlsContext) and context.certificate is not None:
            parts = dict(part.partition("=")[::2] for part in context.subject.split(","))
            # without a CN or an OU this raises KeyError, and the certificate is refused
            return Principal(parts["CN"], groups=(parts["OU"],))
        return Principal("ANONYMOUS")


class QuotasOfTeams(ClientQuotaCallback):
    """All clients of a team share the quota of the user with the team's name; a client id is `team-program`."""

    def __init__(self) -> None:
        self.limits: dict[tuple[QuotaType, str], float] = {}

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        return {"team": client_id.partition("-")[0]}

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return self.limits.get((quota_type, metric_tags["team"]))

    def update_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity, new_value: float) -> None:
        if quota_entity.user is not None and quota_entity.client_id is None:
            self.limits[quota_type, quota_entity.user] = new_value

    def remove_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity) -> None:
        self.limits.pop((quota_type, quota_entity.user or ""), None)
