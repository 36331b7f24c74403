"""Metadata of a topic on which all brokers agree. Only this agreement shows that a topic, a partition or a leader does not
exist any more.

The metadata in a client is old. The answer of a single broker may be old too, since brokers learn of changes at different
times: one broker may list a topic that the next one does not know, or knows with the id of an earlier, deleted topic.

Rules
  1. A view counts if every broker that an answer names has answered in the same round, and all agree. They must agree on the
     topic's id, its partitions, their leaders and epochs.
  2. In a cluster of several brokers the next round, SETTLED_MS later, must give the same view: the only broker with newer
     metadata may have stopped.
  3. The plan asks brokers that disagree or do not answer again until `default_api_timeout_ms` is over. Then the operation times
     out; this does not prove that a topic is gone.

A broker that dies blocks agreement until the others remove it from the list, at the end of its session.
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
    """The topics of `names` that exist according to all brokers. Afterwards `cluster` has these and none of the others.

    Raises:
        PartitionError: brokers refuse a topic that exists.
        TimedOut: brokers do not agree, or some do not answer.
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
    """Ask every known broker, and each new one that an answer names; raises BrokersDisagree, or the error of a broker that did
    not answer."""
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
        cluster.brokers = listed  # includes brokers that only some responses list, so that they get the request too
        if not views:
            cluster.brokers = {}  # forget the brokers: the bootstrap servers may know others
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
    """The view in one answer."""
    for name in names:
        cluster.forget(name)
    for name, code in cluster.receive_metadata(response, now_ms).items():
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise PartitionError(code, name, None)
    return {name: cluster.topics[name] for name in names if name in cluster.topics}
