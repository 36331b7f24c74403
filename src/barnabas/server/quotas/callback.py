"""Quotas by a user's class (`client.quota.callback.class`): it gets the declared quotas, and decides the limit of each client."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.plugins.principals import Principal
from barnabas.plugins.quotas import ClientQuotaCallback, PartitionInfo, QuotaEntity, QuotaType
from barnabas.quota.entities import CLIENT_ID, USER, Entity, Quotas
from barnabas.quota.meters import MeterKey

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage

logger = logging.getLogger(__name__)
CHECK_MS = 1_000
TYPES = {kind.value: kind for kind in QuotaType}
Declared = Mapping[Entity, Quotas]


class ClusterView:
    """The metadata at one moment, as a callback sees it (`barnabas.plugins.Cluster`)."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    @property
    def cluster_id(self) -> str:
        return self._image.cluster_id

    @property
    def controller(self) -> int:
        return self._image.controller_id

    @property
    def brokers(self) -> Sequence[int]:
        return [broker_id for broker_id, broker in self._image.brokers.items() if broker.is_active]

    @property
    def topics(self) -> Sequence[str]:
        return list(self._image.topics)

    def partitions(self, topic: str) -> Sequence[PartitionInfo]:
        found = self._image.topic(topic)
        states = () if found is None else found.partitions
        return [PartitionInfo(topic, index, each.leader, each.replicas, each.isr) for index, each in enumerate(states)]


class CallbackQuotas:
    """Asks one callback. `limit` passes on the errors of the callback; other methods log them, because no request waits there."""

    def __init__(self, callback: ClientQuotaCallback) -> None:
        self._callback = callback
        self._declared: dict[tuple[QuotaEntity, QuotaType], float] = {}
        self._image: MetadataImage | None = None

    def take(self, declared: Declared) -> None:
        """Take over the declared quotas, and tell the callback the differences."""
        after = {
            (found, TYPES[key]): value
            for entity, quotas in declared.items()
            if (found := _entity(entity)) is not None
            for key, value in quotas.items()
            if key in TYPES
        }
        before, self._declared = self._declared, after
        for entity, kind in before.keys() - after.keys():
            _call(partial(self._callback.remove_quota, kind, entity))
        for (entity, kind), value in after.items():
            if before.get((entity, kind)) != value:
                _call(partial(self._callback.update_quota, kind, entity, value))

    def limit(self, key: str, principal: str, client_id: str) -> tuple[MeterKey, float] | None:
        """The key of the clients that share a quota of kind `key`, and its limit; None if there is no limit. Raises ValueError for an
        invalid limit.
        """
        kind, (type_of_principal, _, name) = TYPES[key], principal.partition(":")
        tags = self._callback.quota_metric_tags(kind, Principal(name, type_of_principal), client_id)
        limit = self._callback.quota_limit(kind, tags)
        if limit is None:
            return None
        if not limit > 0:
            raise ValueError(f"{type(self._callback).__name__}.quota_limit gave {limit}; a limit is greater than 0, or None")
        return MeterKey(key, "", json.dumps(dict(tags), sort_keys=True)), float(limit)

    def has_changed(self, image: MetadataImage) -> bool:
        """Tell the callback of new metadata, and ask for other changes. Returns whether all limits must be asked for again."""
        changed = False
        if image is not self._image:
            self._image = image
            changed = bool(_call(partial(self._callback.update_cluster_metadata, ClusterView(image))))
        for kind in QuotaType:
            changed |= bool(_call(partial(self._callback.quota_reset_required, kind)))
        return changed


def _entity(entity: Entity) -> QuotaEntity | None:
    """The entity for the callback; None for addresses and groups, which are no clients."""
    names = {kind: name or "" for kind, name in entity}
    if not names.keys() <= {USER, CLIENT_ID}:
        return None
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID))


def _call(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except Exception:  # user code may raise anything
        logger.exception("event=quota-callback-failed")
        return None
