"""The pages for operators at `metrics_listener`: numbers, health, and whether the broker is ready."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from barnabas.server.http import Page
from barnabas.server.scraping import ScrapedBroker, render_in_turns

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.server.services import Services


class ReadyBroker(Protocol):
    """The parts of the broker that decide whether it is ready."""

    services: Services
    member: Member | None


class PagedBroker(ScrapedBroker, ReadyBroker, Protocol):
    """The parts of the broker that the pages use."""


def pages_of(broker: PagedBroker) -> dict[str, Page]:
    """The pages by path."""
    return {"/metrics": partial(_metrics_page, broker), "/healthz": _health_page, "/readyz": partial(ready_page, broker)}


async def _metrics_page(broker: ScrapedBroker) -> tuple[int, list[bytes]]:
    return 200, await render_in_turns(broker)


def _health_page() -> tuple[int, bytes]:
    return 200, b"ok\n"


def ready_page(broker: ReadyBroker) -> tuple[int, bytes]:
    """200 if the broker serves clients, 503 with the reason otherwise."""
    if broker.services.is_ready and broker.member is not None and broker.member.is_down:
        return 503, b"not ready: stood down, for its session with the metadata store is lost or in doubt\n"
    return (200, b"ready\n") if broker.services.is_ready else (503, b"not ready\n")
