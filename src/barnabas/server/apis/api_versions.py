"""ApiVersions: the APIs and versions that this broker serves, and nothing else.

This broker serves the versions that Kafka 4 dropped (KIP-896) as Kafka 3.9 served them, unless `api.versions.oldest` is kafka-4. Then a
request of such a version closes the connection, like a request of a version that never existed.

Two details are for the sake of older clients.
- Old librdkafka refuses a broker whose Produce begins above version 2, though it never sends those versions. So the broker always
  announces version 0, as Kafka 4 does.
- Java clients before 3.9, which ask with version 3, close a connection whose supported features begin at level 0. So answers name these
  features only from version 4 on, as in Kafka (KAFKA-17011).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import APIS, FIRST_VERSIONS_OF_KAFKA_4
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.requests import RequestContext

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")  # KIP-511
MAX_SOFTWARE_LENGTH = 1_000  # characters; the connection keeps the text
KNOWN_SOFTWARE = 256  # cached checks of names and versions: many clients use the same software
FIRST_VERSION_WITH_SOFTWARE = 3
FIRST_VERSION_WITH_LEVEL_0 = 4
FEATURES = {  # name -> level, the highest that exists
    "group.version": 1,  # tells clients that the consumer protocol is served (KIP-848)
    "transaction.version": 2,  # tells clients that transactions version 2 is served (KIP-890)
}
# Made once, because every client asks for them on every connection
SUPPORTED = tuple(SupportedFeatureKey(name=name, min_version=0, max_version=level) for name, level in FEATURES.items())
FINALIZED = tuple(
    FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level) for name, level in FEATURES.items()
)
KAFKA_3, KAFKA_4 = "kafka-3", "kafka-4"  # values of `api.versions.oldest`
ANNOUNCED_FROM: dict[int, int] = {ApiKey.PRODUCE: 0}


class ApiVersionsBroker(Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig
    served_apis: frozenset[int]


def served_versions(api_key: int, oldest: str = KAFKA_3) -> tuple[int, int]:
    """First and last version of an API that this broker answers."""
    first, last = APIS[api_key][2:4]
    if oldest == KAFKA_4:
        first = FIRST_VERSIONS_OF_KAFKA_4.get(api_key, first)
    return first, last


def announced_versions(api_key: int, oldest: str = KAFKA_3) -> tuple[int, int]:
    """First and last version of an API that this broker announces to clients."""
    first, last = served_versions(api_key, oldest)
    return ANNOUNCED_FROM.get(api_key, first), last


def refuse_version() -> ApiVersionsResponse:
    """The answer, always in version 0, to an ApiVersions request of an unknown version: the known versions (KIP-511)."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_entry(ApiKey.API_VERSIONS, KAFKA_3)])


@cache
def _entries(served: frozenset[int], oldest: str) -> tuple[ApiVersion, ...]:
    return tuple(_entry(key, oldest) for key in sorted(served))


def _entry(api_key: int, oldest: str) -> ApiVersion:
    first, last = announced_versions(api_key, oldest)
    return ApiVersion(api_key=api_key, min_version=first, max_version=last)


def client_software(request: ApiVersionsRequest) -> tuple[str, str] | None:
    """Name and version of the client's software; None if the client gives none or the text is not allowed (KIP-511)."""
    said = request.client_software_name, request.client_software_version
    is_short = len(said[0]) <= MAX_SOFTWARE_LENGTH and len(said[1]) <= MAX_SOFTWARE_LENGTH
    return said if is_short and _is_software(*said) else None


@lru_cache(KNOWN_SOFTWARE)
def _is_software(name: str, version: str) -> bool:
    return _SOFTWARE.fullmatch(name) is not None and _SOFTWARE.fullmatch(version) is not None


def handle_api_versions(broker: ApiVersionsBroker, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE and client_software(request) is None:
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=_entries(broker.served_apis, broker.config.api_versions_oldest),
        supported_features=SUPPORTED if context.api_version >= FIRST_VERSION_WITH_LEVEL_0 else (),
        finalized_features=FINALIZED,
        finalized_features_epoch=0,
    )


HANDLERS: dict[int, Handler[ApiVersionsBroker]] = {
    ApiKey.API_VERSIONS: takes(ApiVersionsRequest, handle_api_versions),
}
