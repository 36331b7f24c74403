"""The controller's part of a link: it makes the topics of the source here, adds their partitions and follows their settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.client import operations
from barnabas.client.plans import Call
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.topics import MorePartitions, NewTopic
from barnabas.config.mirror_settings import COMPARING, INSPECTING, MIRROR_LINK, MIRROR_STATE
from barnabas.errors import ErrorCode
from barnabas.mirror import topics as planning
from barnabas.mirror.topics import SourceTopic
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.values import ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from barnabas.client.asynchronous import AsyncClient
    from barnabas.mirror.link import Link
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
OF_TOPIC = 1  # a source of settings: the topic itself
TOPICS_AT_ONCE = 200  # of one request to the source or to the controller


async def sync_topics(services: Services, link: Link, client: AsyncClient) -> dict[str, str]:
    """Make the topics here equal to those of the source; returns the reasons why some cannot be copied.

    Raises:
        ClientError: the source does not answer.
        KafkaError: this broker is no longer the controller, or the store is not available.
    """
    found = await client.run(operations.all_topics(client.config, client.cluster))
    source = {
        link.local_name(name): SourceTopic(link.local_name(name), planning.id_text(topic.topic_id), len(topic.partitions), name)
        for name, topic in found.items()
        if not topic.is_internal and topic.partitions
    }
    changes = planning.plan(link, source, services.metadata)
    refused = dict(changes.refused)
    refused.update(await _adopt(services, client, changes.adopt))
    for start in range(0, len(changes.taken), TOPICS_AT_ONCE):
        refused.update(await _loops(services, client, changes.taken[start : start + TOPICS_AT_ONCE]))
    for start in range(0, len(changes.create), TOPICS_AT_ONCE):
        refused.update(await _create(services, link, client, changes.create[start : start + TOPICS_AT_ONCE]))
    if changes.grow:
        wanted = [MorePartitions(topic.name, topic.partitions) for topic in changes.grow]
        for outcome in await services.controller.create_partitions(wanted):
            if outcome.error is not None:
                refused[outcome.name] = f"its partitions cannot be added: {outcome.error}"
    if link.values["sync.topic.configs.enabled"]:
        await _follow_settings(services, link, client, source)
    return refused


async def _adopt(services: Services, client: AsyncClient, topics: tuple[SourceTopic, ...]) -> dict[str, str]:
    """Tie topics in a failback to those of the source; returns the reasons why some cannot be."""
    refused: dict[str, str] = {}
    changes = []
    for start in range(0, len(topics), TOPICS_AT_ONCE):
        some = topics[start : start + TOPICS_AT_ONCE]
        theirs = await _settings(client, some)
        for topic in some:
            found = planning.adoption(topic, theirs.get(topic.name, {}), services.metadata, client.cluster.cluster_id or "")
            if isinstance(found, str):
                refused[topic.name] = found
            else:
                sets = [(key, AlterOperation.SET, value) for key, value in found.items()]
                changes.append(ResourceChange(ResourceType.TOPIC, topic.name, sets, by_link=True))
    if changes:
        for change, error in zip(changes, await services.controller.alter_configs(changes), strict=True):
            if error is not None:
                refused[change.name] = str(error)
    return refused


async def _loops(services: Services, client: AsyncClient, topics: tuple[SourceTopic, ...]) -> dict[str, str]:
    """The reasons for topics whose name is taken here because they are copies of the topics here."""
    found = {
        name: planning.loop(theirs, services.metadata.cluster_id) for name, theirs in (await _settings(client, topics)).items()
    }
    return {name: reason for name, reason in found.items() if reason is not None}


async def _create(services: Services, link: Link, client: AsyncClient, topics: tuple[SourceTopic, ...]) -> dict[str, str]:
    theirs = await _settings(client, topics)
    wanted, refused = [], {}
    for topic in topics:
        found = theirs.get(topic.name)
        if found is None:  # the topic might be a copy of one here
            refused[topic.name] = "its settings cannot be read: the user of the link needs DescribeConfigs on the topic"
            continue
        if (reason := planning.loop(found, services.metadata.cluster_id)) is not None:
            refused[topic.name] = reason
            continue
        settings = {
            **planning.settings_for_copy(found),
            **planning.provenance(topic, found, client.cluster.cluster_id or ""),
            MIRROR_LINK: link.name,
        }
        wanted.append(NewTopic(topic.name, topic.partitions, link.values["replication.factor"], configs=list(settings.items())))
    for outcome in await services.controller.create_topics(wanted):
        if outcome.error is None:
            logger.info("event=mirror-topic-created topic=%s link=%s", outcome.name, link.name)
        elif outcome.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # the next look tells why that one exists
            refused[outcome.name] = f"it cannot be created here: {outcome.error}"
    return refused


async def _follow_settings(services: Services, link: Link, client: AsyncClient, source: Mapping[str, SourceTopic]) -> None:
    image = services.metadata
    copies = [name for name in source if image.topic_config(name).get(MIRROR_LINK) == link.name
              and image.topic_config(name).get(MIRROR_STATE) not in {INSPECTING, COMPARING}]  # fmt: skip
    changes = []
    for start in range(0, len(copies), TOPICS_AT_ONCE):
        theirs = await _settings(client, [source[name] for name in copies[start : start + TOPICS_AT_ONCE]])
        for name, settings in theirs.items():
            differing = planning.changed_settings(image.topic_config(name), planning.settings_for_copy(settings))
            if differing:
                operations_ = [
                    (key, AlterOperation.DELETE if value is None else AlterOperation.SET, value) for key, value in differing
                ]
                changes.append(ResourceChange(ResourceType.TOPIC, name, operations_))
    if not changes:
        return
    for change, error in zip(changes, await services.controller.alter_configs(changes), strict=True):
        if error is not None:
            logger.warning("event=mirror-settings-not-followed topic=%s link=%s error=%r", change.name, link.name, str(error))


async def _settings(client: AsyncClient, topics: Iterable[SourceTopic]) -> dict[str, dict[str, str | None]]:
    """The settings that topics of the source have of their own, by the names of their copies.

    Those that may not be described are left out.
    """
    names = {topic.theirs: topic.name for topic in topics}
    resources = [
        DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=None) for name in names
    ]
    if not resources:
        return {}
    answer = await client.request(Call(DescribeConfigsRequest(resources=resources)))
    return {
        names[result.resource_name]: {item.name: item.value for item in result.configs if item.config_source == OF_TOPIC}
        for result in answer.results
        if not result.error_code
    }
