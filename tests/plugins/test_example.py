"""The example of the documentation does what it says."""

from __future__ import annotations

import pytest

from barnabas.plugins import (
    AlterConfigMetadata,
    CreateTopicMetadata,
    PolicyViolation,
    Principal,
    QuotaEntity,
    QuotaType,
    TlsContext,
)
from examples.plugins.company import AWeekAtMost, NamesByDepartment, QuotasOfTeams, TopicsOfTeams


@pytest.mark.parametrize(
    ("name", "partitions", "is_good"),
    [
        ("orders.paid", 12, True),
        ("__consumer_offsets", 50, True),
        ("orders", 1, False),
        ("sales.x", 1, False),
        ("orders.x", 13, False),
    ],
)
def test_topics_belong_to_teams(name: str, partitions: int, is_good: bool) -> None:
    policy = TopicsOfTeams()
    policy.configure({"company.teams": "orders,billing"})
    metadata = CreateTopicMetadata(name, partitions, 1, None)
    if is_good:
        policy.validate(metadata)
    else:
        with pytest.raises(PolicyViolation):
            policy.validate(metadata)


@pytest.mark.parametrize(("retention", "is_good"), [("604800000", True), (None, True), ("604800001", False), ("-1", False)])
def test_records_are_kept_for_a_week(retention: str | None, is_good: bool) -> None:
    metadata = AlterConfigMetadata("TOPIC", "t", {"retention.ms": retention})
    if is_good:
        AWeekAtMost().validate(metadata)
    else:
        with pytest.raises(PolicyViolation):
            AWeekAtMost().validate(metadata)


def test_a_certificate_names_the_department() -> None:
    context = TlsContext("SSL", "10.0.0.1", "SSL", b"", "CN=alice,OU=Ops,O=Acme", None)
    assert NamesByDepartment().build(context) == Principal("alice", groups=("Ops",))


def test_a_team_shares_a_quota() -> None:
    callback = QuotasOfTeams()
    callback.update_quota(QuotaType.FETCH, QuotaEntity("orders"), 5.0)
    tags = callback.quota_metric_tags(QuotaType.FETCH, Principal("ANONYMOUS"), "orders-report")
    assert callback.quota_limit(QuotaType.FETCH, tags) == 5.0
    callback.remove_quota(QuotaType.FETCH, QuotaEntity("orders"))
    assert callback.quota_limit(QuotaType.FETCH, tags) is None
