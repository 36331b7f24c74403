"""Holds back a produce request, and its connection with it, during other work, so that later requests are appended after it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ProtocolError

if TYPE_CHECKING:
    from barnabas.server.connection import Connection
    from barnabas.server.receiver import Receiver
    from barnabas.server.transactions.add_partitions_to_txn import AddPartitionsToTxn

logger = logging.getLogger(__name__)


class HoldingBroker(Protocol):
    """The parts of the broker that this module uses."""

    add_partitions_to_txn: AddPartitionsToTxn
    receiver: Receiver


def hold_back(
    broker: HoldingBroker, connection: Connection, reason: str, size: int, work: Callable[[], Awaitable[Callable[[], None]]]
) -> None:
    """Read nothing more from the connection until `work` is done. Then call its result, unless the connection was closed in the meantime.

    Args:
        reason: the reason to pause the connection.
        size: bytes of the kept request.
    """

    async def done() -> None:
        try:
            go_on = await work()
            if not connection.closed:
                go_on()
        except ProtocolError as error:
            logger.warning("event=connection-closed peer=%s reason=%r", connection.peer, str(error))
            connection.close()
        except Exception:  # a fault of the broker: the client would take later answers for the missing one
            logger.exception("event=connection-closed peer=%s reason='a request failed'", connection.peer)
            connection.close()
        finally:
            broker.receiver.give_back(connection, size)
            connection.resume(reason)

    connection.pause(reason)
    broker.receiver.take(connection, size)
    broker.add_partitions_to_txn.hold(done())
