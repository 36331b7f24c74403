"""The host: runs services in this process until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.errors import BarnabasError, ConfigError
from barnabas.services.application import Application
from barnabas.services.listener import Listener, bind, reached_at
from barnabas.services.logins import logins_from
from barnabas.services.metrics import RequestTimes
from barnabas.services.settings import INIT_TIMEOUT, NotedSettings, init_timeout_s, shown
from barnabas.services.table import NotInstalled, check_installed
from barnabas.services.tls import listener_tls, listening_context, peers_context
from barnabas.services.waiting import wait_for_cluster
from barnabas.signals import ending_signals
from barnabas.streams import drop_standard_output
from barnabas.web.service import CannotListen, Service, ServiceContext, ServiceEntry, ServiceError

logger = logging.getLogger(__name__)
HOST_NAME = "host.name"  # the same name as in Confluent's registry
MIN_START_S = 1.0  # minimum time that a service has to start after the cluster has answered
EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


class Place(NamedTuple):
    """A service and its listener.

    Args:
        option: of the command, which sets the listener.
    """

    entry: ServiceEntry
    listener: Listener
    option: str


def run(
    places: Sequence[Place], properties: Mapping[str, str], *, log_level: str = "warning", ends_with_input: bool = False
) -> int:
    """Run services until a signal ends them; returns the exit code.

    Args:
        properties: client settings with `bootstrap.servers`, and the settings of the host and the services.
        ends_with_input: also end at the end of standard input, which comes when the parent process ends.
    """
    from uvloop import new_event_loop

    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, force=True,
        format="%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
    )  # fmt: skip
    try:
        for place in places:
            check_installed(place.entry)
        logger.info("event=services-settings settings=%r", shown(properties))
        settings = NotedSettings(properties)
        client = ClientConfig.from_options(settings)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_serve(places, settings, client, ends_with_input))
    except (ConfigError, CannotListen, NotInstalled) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (ServiceError, BarnabasError, OSError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED


async def _serve(places: Sequence[Place], settings: NotedSettings, client: ClientConfig, ends_with_input: bool) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in ending_signals():
        loop.add_signal_handler(number, stopping.set)
    if ends_with_input:
        loop.add_reader(0, _watch_input, loop, stopping)
    times = RequestTimes()
    async with AsyncExitStack() as stack:
        starting = asyncio.create_task(_start(stack, places, settings, client, times))
        told = asyncio.create_task(stopping.wait())
        await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait((starting,))
            return EXIT_OK
        told.cancel()
        for line in starting.result():
            _say(line)
        for key in settings.unused():
            logger.warning("event=service-setting-unknown key=%s", key)
        await stopping.wait()
        logger.info("event=services-stopping")
    return EXIT_OK


async def _start(
    stack: AsyncExitStack, places: Sequence[Place], properties: Mapping[str, str], client: ClientConfig, times: RequestTimes
) -> list[str]:
    """Start every service; returns the lines with their addresses."""
    from barnabas.services.web_server import WebServer

    lines, timeout_s = [], init_timeout_s(properties)
    deadline: float | None = None  # set after the first service is loaded, because loading its code does not count
    sockets = {each.entry.name: stack.enter_context(bind(*each)) for each in places}
    bound = {entry.name: listener._replace(port=sockets[entry.name].getsockname()[1]) for entry, listener, _ in places}
    reached = {name: str(reached_at(at, properties.get(HOST_NAME))) for name, at in bound.items()}
    for entry, listener, _ in places:
        logins = logins_from(properties, client, listener.scheme)
        tls = listening_context(listener_tls(properties)) if listener.scheme == "https" else None
        listening, at = sockets[entry.name], bound[entry.name]
        peers = None if tls is None else partial(peers_context, properties)
        context = ServiceContext(
            client, reached[entry.name], properties, secured=logins is not None, peers=peers, tls=tls, neighbours=reached
        )
        try:
            service = entry.load(context)
        except ImportError as error:
            raise NotInstalled(entry, [error.name or str(error)]) from error
        stack.push_async_callback(service.close)
        deadline = deadline or asyncio.get_running_loop().time() + timeout_s
        await wait_for_cluster(client, timeout_s, deadline)
        await _ready(entry, service, timeout_s, deadline)
        application = Application(
            entry.name, service, times, logins, timeout_s=entry.timeout_s, follows_clients=entry.follows_clients
        )
        server = WebServer(application, listening, tls)
        stack.push_async_callback(server.close)
        await server.start()
        lines.append(f"barnabas {entry.title} accepts connections on {at}")
        lines += service.ready_lines
    return lines


async def _ready(entry: ServiceEntry, service: Service, timeout_s: float, deadline: float) -> None:
    """Start a service; raises ServiceError if it is not ready in time."""
    try:
        async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time() + MIN_START_S)):
            await service.start()
    except TimeoutError:
        raise ServiceError(f"the {entry.title} is not ready after {timeout_s:g} s; {INIT_TIMEOUT} allows more") from None


def _watch_input(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    if os.read(0, 1024) == b"":
        loop.remove_reader(0)
        loop.call_later(limits.SERVICE_STOP_TIMEOUT_S, os.kill, os.getpid(), signal.SIGKILL)
        stopping.set()


def _say(line: str) -> None:
    """Print a line on standard output; the services continue if nobody reads it."""
    try:
        print(line, flush=True)
    except OSError as error:
        drop_standard_output()
        logger.warning("event=ready-line-not-written error=%r", error.strerror)
