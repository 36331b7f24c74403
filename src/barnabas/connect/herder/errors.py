"""The refusals of the REST interface, with Kafka Connect's texts."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.web.routing import HttpError

MUST_BE_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified connector by "
    "issuing a 'PUT' request to the '/connectors/{}/stop' endpoint"
)
NOTHING_TO_ALTER = "Partitions / offsets need to be provided for an alter offsets request"


def bad(message: str) -> HttpError:
    """400."""
    return HttpError(400, message)


def unusable(message: str) -> HttpError:
    """500: Kafka Connect's answer to bodies that it cannot read."""
    return HttpError(500, message)


def not_found(name: str) -> HttpError:
    """There is no such connector; so say requests that read it."""
    return HttpError(404, f"Connector {name} not found")


def unknown(name: str, *, colon: bool = False) -> HttpError:
    """There is no such connector; so say requests that change its state."""
    return HttpError(404, f"Unknown connector{':' if colon else ''} {name}")


def exists(name: str) -> HttpError:
    """There is such a connector already."""
    return HttpError(409, f"Connector {name} already exists")


def no_status(what: str) -> HttpError:
    """A connector or a task has no status yet."""
    return HttpError(404, f"No status found for {what}")


def invalid_config(errors: Sequence[str]) -> HttpError:
    """A config that has errors."""
    listed = "".join(f"\n{each}" for each in errors)
    return bad(
        f"Connector configuration is invalid and contains the following {len(errors)} error(s):{listed}\n"
        "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
    )


def must_be_stopped(name: str) -> HttpError:
    """Offsets change only while the connector is stopped."""
    return bad(MUST_BE_STOPPED.format(name))


def still_runs(name: str, what: str) -> HttpError:
    """The offsets of a sink cannot be changed, because its group has members."""
    return unusable(
        f"Failed to {what} consumer group offsets for connector {name} either because its tasks haven't stopped completely yet or the "
        f"connector was resumed before the request to {what} its offsets could be successfully completed. If the connector is in a "
        "stopped state, this operation can be safely retried. If it doesn't eventually succeed, the Connect cluster may need to be "
        "restarted to get rid of the zombie sink tasks."
    )
