"""What every broker of a cluster says of a topic. Nothing else shows that a topic, a partition or a leader is gone.

What a client remembers is old. What one broker says may be old too, since each learns of changes in its own time: a topic that is listed by
one may not be known to the next, or be known by the id that it had before it was deleted and made again.

Rules
  1. A view counts when all brokers that any answer lists have answered in the same round, and said the same: the topic's id, its
     partitions, their leaders and epochs.
  2. In a cluster of several brokers the next round, SETTLED_MS later, has to say it too: the only broker that knew more may have left.
  3. Brokers that disagree or do not answer are asked again until `default_api_timeout_ms` is over. Then the operation has timed out, which
     shows nothing to be gone.

A broker that dies is in the way until the others have taken it off the list, at the end of its session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.client.cluster import Broker, Cluster, Topic
from barnabas.client.config import ClientConfig
from barnabas.client.errors import BrokersDisagree, ClientError, PartitionError
from barnabas.client.plans import ANY_BROKER, Call, Now, Pause, Plan, retrying
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

SETTLED_MS = 500


def agreed_topics(config: ClientConfig, cluster: Cluster, names: Iterable[str]) -> Plan[dict[str, Topic]]:
    """Those of `names` that exist, as every broker says; `cluster` knows them so afterwards, and the others no more.

    Raises:
        PartitionError: brokers refuse a topic for another reason than that it is not there.
        TimedOut: they do not agree, or some do not answer.
    """
    wanted = sorted(set(names))

    def attempt() -> Plan[dict[str, Topic]]:
        found = yield from _round(cluster, wanted)
        if len(cluster.brokers) > 1:
            yield Pause(SETTLED_MS)
            if (yield from _round(cluster, wanted)) != found:
                raise BrokersDisagree(wanted)
        return found

    return (yield from retrying(config, f"agreement of the brokers on {', '.join(wanted)}", attempt))


def _round(cluster: Cluster, names: Sequence[str]) -> Plan[dict[str, Topic]]:
    """Ask every broker that is known, and those that become known; raises BrokersDisagree, or what kept one from answering."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False)
    answers: dict[int, Any] = {}
    listed: dict[int, Broker] = dict(cluster.brokers)
    views: list[dict[str, Topic]] = []
    while missing := [node_id for node_id in listed or (ANY_BROKER,) if node_id not in answers]:
        came = yield [Call(request, node_id) for node_id in missing]
        now_ms = yield Now()
        answers.update(zip(missing, came, strict=True))
        for answer in came:
            if not isinstance(answer, ClientError):
                views.append(_view(cluster, answer, names, now_ms))
                listed.update(cluster.brokers)
        cluster.brokers = listed  # so that those can be asked that only some have listed
        if not views:
            cluster.brokers = {}  # others may be there by now: the bootstrap servers know
            raise came[0]
    told = [answer for answer in answers.values() if not isinstance(answer, ClientError)]
    alive = {broker.node_id for answer in told for broker in answer.brokers}
    cluster.brokers = {node_id: broker for node_id, broker in listed.items() if node_id in alive}
    for node_id in alive:
        if isinstance(answers[node_id], ClientError):
            raise answers[node_id]
    if any(view != views[0] for view in views):
        raise BrokersDisagree(names)
    return views[0]


def _view(cluster: Cluster, response: Any, names: Sequence[str], now_ms: float) -> dict[str, Topic]:
    """What one answer says."""
    for name in names:
        cluster.forget(name)
    for name, code in cluster.receive_metadata(response, now_ms).items():
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise PartitionError(code, name, None)
    return {name: cluster.topics[name] for name in names if name in cluster.topics}
