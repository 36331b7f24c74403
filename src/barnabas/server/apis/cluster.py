"""DescribeCluster: the brokers of the cluster and its controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.server.apis.operations import ALL_ON_CLUSTER, NOT_ASKED
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.server.requests import RequestContext

BROKER_ENDPOINT, CONTROLLER_ENDPOINT = 1, 2


class ClusterBroker(Protocol):
    """The parts of the broker that this module uses."""

    @property
    def metadata(self) -> MetadataImage: ...


def handle_describe_cluster(
    broker: ClusterBroker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """DescribeCluster (api 60)."""
    if request.endpoint_type == CONTROLLER_ENDPOINT:
        reason = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=reason)
    if request.endpoint_type != BROKER_ENDPOINT:
        reason = f"Unsupported endpoint type {request.endpoint_type}"
        return DescribeClusterResponse(error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=reason)
    metadata = broker.metadata
    brokers = []
    for registration in metadata.brokers.values():
        endpoint = registration.endpoint(context.listener)
        if endpoint is not None:
            brokers.append(
                DescribeClusterBroker(
                    broker_id=registration.broker_id, host=endpoint.host, port=endpoint.port, rack=registration.rack
                )
            )
    return DescribeClusterResponse(
        error_message=None,
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        brokers=brokers,
        cluster_authorized_operations=ALL_ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED,
    )


HANDLERS: dict[int, Handler[ClusterBroker]] = {
    ApiKey.DESCRIBE_CLUSTER: takes(DescribeClusterRequest, handle_describe_cluster),
}
