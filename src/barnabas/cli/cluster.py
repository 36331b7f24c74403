"""`barnabas cluster`: the brokers, and the requests that they support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from barnabas.cli.cluster_start import start
from barnabas.cli.connection import Connection, connection_options, fail
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.migrate import migrate
from barnabas.cli.output import Output, output_option, print_fields
from barnabas.cli.reassign import balance_cluster

BROKER_COLUMNS = {"id": "ID", "host": "HOST", "port": "PORT", "rack": "RACK", "controller": "CONTROLLER", "partitions": "LEADS",
                  "replicas": "REPLICAS", "in_sync": "IN SYNC"}  # fmt: skip
MIN_ISR = "min.insync.replicas"
TOPICS_AT_ONCE = 500
DESCRIBE_TOPIC_PARTITIONS = 75  # the request's API key
API_COLUMNS = {"key": "KEY", "name": "REQUEST", "min": "FIRST", "max": "LAST", "known": "THIS TOOL"}


@click.group(context_settings=HELP_OPTIONS)
def cluster() -> None:
    """Run several brokers on this machine, and describe a cluster and its brokers."""


cluster.add_command(start)
cluster.add_command(balance_cluster)
cluster.add_command(migrate)


@cluster.command("describe")
@connection_options
@output_option
def describe(connection: Connection, output: Output) -> None:
    """Show the cluster's id, its brokers and how many partitions each leads."""
    data = describe_cluster(connection)
    if output.as_json:
        output.json(data)
        return
    counts = {"controller": data["controller_id"], "topics": data["topics"], "partitions": data["partitions"]}
    trouble = {
        "under-replicated": data["under_replicated"],
        "under min.insync.replicas": data["under_min_isr"],
        "without a leader": data["leaderless"],
        "lost, waiting for brokers": [
            f"{name} ({', '.join(map(str, wanted)) or 'none'})" for name, wanted in data["lost"].items()
        ],
        "brokers that are down": data["down"],
    }
    print_fields({"cluster id": data["cluster_id"], **counts, **trouble})
    click.echo()
    output.table(data["brokers"], BROKER_COLUMNS)


def describe_cluster(connection: Connection) -> dict[str, Any]:
    """Cluster id, controller, counts and brokers as plain values."""
    from confluent_kafka import KafkaException

    admin = connection.admin()
    try:
        described = admin.describe_cluster(request_timeout=connection.timeout_s).result(connection.timeout_s + 1)
        metadata = admin.list_topics(timeout=connection.timeout_s)
    except KafkaException as error:
        fail("cannot describe the cluster", error)
    partitions = {f"{name}:{number}": p for name, topic in metadata.topics.items() for number, p in topic.partitions.items()}
    leaders = [partition.leader for partition in partitions.values()]
    controller = described.controller.id if described.controller is not None else None
    brokers = [
        {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack, "controller": node.id == controller,
         "partitions": leaders.count(node.id), "replicas": sum(node.id in p.replicas for p in partitions.values()),
         "in_sync": sum(node.id in p.isrs for p in partitions.values())}
        for node in sorted(described.nodes, key=lambda node: node.id)
    ]  # fmt: skip
    alive = {node.id for node in described.nodes}
    leaderless = sorted(name for name, p in partitions.items() if p.leader < 0)
    least = _least_in_sync(connection, list(metadata.topics))
    return {
        "cluster_id": described.cluster_id,
        "controller_id": controller,
        "topics": len(metadata.topics),
        "partitions": len(leaders),
        "leaderless": leaderless,
        "lost": _lost(connection, leaderless) if leaderless else {},
        "under_replicated": sorted(name for name, p in partitions.items() if len(p.isrs) < len(p.replicas)),
        "under_min_isr": sorted(
            name
            for name, p in partitions.items()
            if len(p.isrs) < min(least[name.rpartition(":")[0]], len(p.replicas))  # these partitions refuse writes with acks=all
        ),
        "down": sorted({broker for p in partitions.values() for broker in p.replicas} - alive),
        "brokers": brokers,
    }


def _lost(connection: Connection, leaderless: Sequence[str]) -> dict[str, list[int]]:
    """The partitions whose in-sync replicas are all down, each with the brokers that make it available again when they return.
    If this list is empty, an operator must choose a leader."""
    from barnabas.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        RequestCursor,
        TopicRequest,
    )

    wanted = [TopicRequest(name=topic) for topic in sorted({name.rpartition(":")[0] for name in leaderless})]
    found: dict[str, list[int]] = {}
    with connection.wire() as wire:
        if DESCRIBE_TOPIC_PARTITIONS not in wire.versions:
            return found
        cursor = None
        while True:
            answer = wire.request(DescribeTopicPartitionsRequest(topics=wanted, cursor=cursor))
            for topic in answer.topics:
                for item in topic.partitions:
                    if item.leader_id < 0 and not item.isr_nodes and not item.eligible_leader_replicas:
                        found[f"{topic.name}:{item.partition_index}"] = list(item.last_known_elr or ())
            if answer.next_cursor is None:
                return found
            cursor = RequestCursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)


def _least_in_sync(connection: Connection, topics: Sequence[str]) -> dict[str, int]:
    """`min.insync.replicas` of each topic."""
    from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
    from barnabas.protocol.values import ResourceType

    least = dict.fromkeys(topics, 1)
    with connection.wire() as wire:
        for start in range(0, len(topics), TOPICS_AT_ONCE):
            wanted = [
                DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=[MIN_ISR])
                for name in topics[start : start + TOPICS_AT_ONCE]
            ]
            for result in wire.request(DescribeConfigsRequest(resources=wanted)).results:
                least.update((result.resource_name, int(config.value)) for config in result.configs if config.name == MIN_ISR)
    return least


@cluster.command("api-versions")
@connection_options
@output_option
def api_versions(connection: Connection, output: Output) -> None:
    """Show the requests that the broker supports, and their versions."""
    from barnabas.protocol.messages import APIS

    with connection.wire() as wire:
        versions, broker = wire.versions, wire.name
    rows = []
    for key, (first, last) in sorted(versions.items()):
        name, known_first, known_last = (APIS[key][1], APIS[key][2], APIS[key][3]) if key in APIS else (f"unknown {key}", 0, -1)
        known = f"{known_first} to {known_last}" if known_last >= known_first else None
        rows.append({"key": key, "name": name, "min": first, "max": last, "known": known})
    if output.as_json:
        output.json({"broker": broker, "apis": rows})
    else:
        output.table(rows, API_COLUMNS, title=f"{broker} supports {len(rows)} requests")
