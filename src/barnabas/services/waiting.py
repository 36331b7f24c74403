"""Waits at the start until a broker of the cluster answers, and prints that it waits."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from barnabas import limits
from barnabas.client.asynchronous import AsyncConnection
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, ConnectionFailed, LoginFailed
from barnabas.web.service import ServiceError


async def wait_for_cluster(client: ClientConfig, timeout_s: float, deadline: float) -> None:
    """Return when a broker has accepted a connection and the log-in.

    Args:
        timeout_s: the setting in seconds, for messages.
        deadline: the end of the wait, by the loop's clock.

    Raises:
        ServiceError: no broker has done so in time, or a broker refuses the log-in.
    """
    loop = asyncio.get_running_loop()
    began, told = loop.time(), False
    while True:
        reason = await _reason(client, deadline - loop.time())
        if reason is None:
            return
        waited_s, left_s = loop.time() - began, deadline - loop.time()
        if left_s <= 0:
            raise ServiceError(f"no broker of the cluster could be reached in {timeout_s:g} s: {reason}")
        if waited_s >= limits.SERVICE_SILENT_S and not told:
            told = True
            print(f"barnabas: {reason}; waiting for the cluster, {timeout_s:g} s at most", file=sys.stderr, flush=True)
        until_line_s = left_s if told else max(0.0, limits.SERVICE_SILENT_S - waited_s)
        await asyncio.sleep(min(limits.SERVICE_CLUSTER_RETRY_S, until_line_s, left_s))


async def _reason(client: ClientConfig, left_s: float) -> str | None:
    """The reason why no broker can be used; None if one can."""
    at_most_s = max(0.05, min(limits.SERVICE_SILENT_S, left_s))  # a broker that does not answer must not delay the log line
    config = replace(client, socket_connection_setup_timeout_ms=int(at_most_s * 1000))
    reason = ""
    for address in client.bootstrap_servers:
        try:
            async with asyncio.timeout(at_most_s):
                connection = await AsyncConnection.open(address, config)
        except LoginFailed as error:
            raise ServiceError(str(error)) from error
        except ConnectionFailed as error:
            reason = reason or f"no connection to {error.address}: {error.reason}"
        except ClientError as error:
            reason = reason or f"no connection to {address[0]}:{address[1]}: {error}"
        except TimeoutError:
            reason = reason or f"no connection to {address[0]}:{address[1]}: no answer in {at_most_s:g} s"
        else:
            connection.close()
            return None
    return reason
