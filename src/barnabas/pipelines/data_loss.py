"""The reaction of a query, in the driver and in tasks, if records are gone before it has read them: fail, or log it and
continue."""

from __future__ import annotations

import logging

from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)

LOSS = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by Kafka or the topic "
    "may have been deleted before all the data in the topic was processed. "
)
LOSS_FAILS = LOSS + "If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false."
LOSS_WARNS = LOSS + "If you want your streaming query to fail on such cases, set the source option failOnDataLoss to true."


class DataLoss(BarnabasError):
    """Records that the query should have read are gone."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} {LOSS_FAILS}"


def report_data_loss(reason: str, *, fail: bool) -> None:
    """Raise DataLoss, or log it."""
    if fail:
        raise DataLoss(reason)
    logger.warning("event=data-lost reason=%r hint=%r", reason, LOSS_WARNS)
