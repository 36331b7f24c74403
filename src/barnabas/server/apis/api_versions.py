"""ApiVersions: what this broker serves, and nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from barnabas.server.broker import Broker
    from barnabas.server.requests import RequestContext

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")  # KIP-511
PRODUCE, API_VERSIONS = 0, 18
# librdkafka takes Produce 0 for the sign that gzip, snappy and lz4 are known, and sends uncompressed without it; Kafka 4 says 0 for
# the same reason (KAFKA-18659) and serves 3 and above.
ANNOUNCED_FROM = {PRODUCE: 0}
FIRST_VERSION_WITH_SOFTWARE = 3


def describe(broker: Broker, error: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    """What is served; beside an error only the versions of ApiVersions itself, enough to ask again (KIP-511)."""
    served = sorted(broker.served_apis) if error == ErrorCode.NONE else [API_VERSIONS]
    keys = [
        ApiVersion(api_key=key, min_version=ANNOUNCED_FROM.get(key, APIS[key][2]), max_version=APIS[key][3]) for key in served
    ]
    return ApiVersionsResponse(error_code=error, api_keys=keys, finalized_features_epoch=0)


def handle_api_versions(broker: Broker, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return describe(broker)


HANDLERS = {API_VERSIONS: handle_api_versions}
