"""Starts and stops a broker as a process."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import resource
import signal
import sys
from collections.abc import Callable, Mapping

from barnabas.cluster.controller.registration import BrokerIdInUse
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint
from barnabas.config.providers import fill_placeholders
from barnabas.digits import is_number
from barnabas.errors import ConfigError, CorruptLog, StorageError
from barnabas.server.allocator import keep_large_buffers
from barnabas.server.broker import Broker
from barnabas.server.os_scheduler import ask_for_short_turns
from barnabas.signals import ending_signals
from barnabas.streams import drop_standard_output

logger = logging.getLogger(__name__)
# after a system call, the loop may wait this long for a thread to release the GIL; Python's default is 0.005
SWITCH_INTERVAL_S = 0.0005
EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def run(
    properties: Mapping[str, str],
    *,
    metrics_listener: str | None = None,
    log_level: str = "info",
    on_ready: Callable[[str], None] | None = None,
    on_stopping: Callable[[], None] | None = None,
) -> int:
    """Run a broker until a signal ends it. Returns the exit code.

    Args:
        properties: Kafka's configuration keys and their text.
        metrics_listener: `host:port` for /metrics, /healthz and /readyz; None for none.
        log_level: debug, info, warning or error.
        on_ready: gets `host:port` of the first listener when the broker accepts connections; must not block.
        on_stopping: called in a thread when a signal has come, while the broker still serves; it ends clients of this broker.
    """
    logging.basicConfig(
        level=log_level.upper(),
        stream=sys.stderr,
        format="%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
        force=True,
    )
    try:
        config, warnings = BrokerConfig.from_properties(fill_placeholders(properties))
        metrics_address = parse_address(metrics_listener)
    except ConfigError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    for warning in warnings:
        logger.warning("event=configuration-warning text=%r", warning)
    keep_large_buffers()
    allow_open_files()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    ask_for_short_turns()
    if sys.__stderr__ is not None:
        faulthandler.register(signal.SIGQUIT, sys.__stderr__)  # `kill -QUIT` prints the stack of every thread, as with a JVM
    runner = asyncio.Runner(loop_factory=_loop_factory())
    try:
        with runner:
            return runner.run(_serve(config, metrics_address, on_ready, on_stopping))
    except (StorageError, StoreUnavailable, BrokerIdInUse, OSError) as error:
        hint = "; `barnabas doctor check` says what is wrong and can be put right" if isinstance(error, CorruptLog) else ""
        print(f"barnabas: {error}{hint}", file=sys.stderr)
        return EXIT_FAILED
    except ConfigError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of uvloop; None, for plain asyncio, on platforms without it."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


def allow_open_files() -> None:
    """Raise the limit of descriptors as far as the system allows. A partition and a connection need one each, and a shell's usual limit is
    1024.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError) as error:  # some systems do not grant "unlimited"
        logger.warning("event=open-files-limit-stays error=%r", str(error))


def parse_address(text: str | None) -> tuple[str, int] | None:
    """Parse `host:port`.

    Raises:
        ConfigError: the text has another form.
    """
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not is_number(port, 65535):
        raise ConfigError("--metrics-listener", text, "host:port, for example 127.0.0.1:9404")
    return host.strip("[]"), int(port)


async def _serve(
    config: BrokerConfig, metrics_address: tuple[str, int] | None, on_ready: Callable[[str], None] | None = None,
    on_stopping: Callable[[], None] | None = None,
) -> int:  # fmt: skip
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in ending_signals():
        loop.add_signal_handler(number, stopping.set)
    broker = Broker(config, loop)
    gc.disable()  # start-up creates many objects and drops few
    broker.failure.add_done_callback(lambda _: stopping.set())
    try:
        if not await _start(broker, metrics_address, stopping):
            return EXIT_OK
        # Objects of the start-up live until the process ends; a full collection need not visit them.
        gc.collect()
        gc.freeze()
        gc.enable()
        _say_ready(broker)
        if on_ready is not None:
            on_ready(_address_of(broker.endpoints[0]))
        await stopping.wait()
        logger.info("event=broker-stopping broker=%d", config.broker_id)
        if broker.failure.done():
            raise broker.failure.result()
        if on_stopping is not None:
            await asyncio.to_thread(on_stopping)
    finally:
        gc.enable()
        await broker.stop()
    return EXIT_OK


async def _start(broker: Broker, metrics_address: tuple[str, int] | None, stopping: asyncio.Event) -> bool:
    """Start the broker. Returns whether it has started: a signal ends the start, because the read of the logs after a crash may take
    minutes.
    """
    starting, told = asyncio.create_task(broker.start(metrics_address)), asyncio.create_task(stopping.wait())
    await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not starting.done():
        logger.info("event=start-given-up broker=%d", broker.config.node_id)
        starting.cancel()
    try:
        await starting
    except asyncio.CancelledError:
        if broker.failure.done():
            raise broker.failure.result() from None
        return False
    return True


def _say_ready(broker: Broker) -> None:
    """Print the line of a ready broker to standard output. The broker continues if standard output is closed."""
    try:
        print(_ready_line(broker), flush=True)
    except OSError as error:
        drop_standard_output()
        logger.warning("event=ready-line-not-written error=%r", error.strerror)


def _address_of(endpoint: Endpoint) -> str:
    return f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"


def _ready_line(broker: Broker) -> str:
    addresses = " ".join(f"{endpoint.listener}://{_address_of(endpoint)}" for endpoint in broker.endpoints)
    metrics = f" metrics=http://{broker.http.address[0]}:{broker.http.address[1]}/metrics" if broker.http is not None else ""
    return f"barnabas broker {broker.config.broker_id} accepts connections on {addresses}{metrics}"
