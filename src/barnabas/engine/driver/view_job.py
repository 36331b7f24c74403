"""The job of a view or an insert: takes micro-batches in a thread of its own, and changes the view, or appends rows.

Rules
  1. A job that is far behind the ends of its topics has a query of its own. When a micro-batch has brought it to the ends, it shares a
     query with other jobs (`shared_query.py`): its own one if there is no other.
  2. A job that has missed micro-batches of its query reads their records in the driver. If they are many, it leaves the query, and is far
     behind.
  3. An error ends the job; it starts again from its state.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.engine.driver.appended import Appended
from barnabas.engine.driver.kept_view import KeptView
from barnabas.engine.driver.mailbox import Mailbox, Offer
from barnabas.engine.driver.position import StreamOffset
from barnabas.engine.driver.shared_query import POOL, SharedQueries, SharedQuery
from barnabas.engine.driver.small_batches import SmallBatches, count, is_small
from barnabas.engine.driver.topics import Topics
from barnabas.engine.job_logs import close_log
from barnabas.engine.reasons import reason_of_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ViewJob:
    """Runs one view or insert.

    Args:
        settings: of the client, with `bootstrap.servers`.
    """

    def __init__(
        self, spark: SparkSession, view: KeptView | Appended, settings: Mapping[str, str], queries: SharedQueries, log: logging.Logger
    ) -> None:  # fmt: skip
        self._spark, self._view, self._settings, self._queries, self._log = spark, view, settings, queries, log
        self._name = view.job.name
        self._topics = Topics(tuple(view.topics), view.uses_headers, view.work.most_rows, view.job.pool)
        self._reader: SmallBatches | None = None
        self._query: SharedQuery | None = None
        self._offers = Mailbox()
        self._thread = threading.Thread(target=self._run, name=f"taking-{self._name}", daemon=True)
        self._error: BaseException | None = None
        self._has_settled = False

    def start(self) -> None:
        """Begin, or go on. Raises what `KeptView.begin` does."""
        view = self._view
        view.begin()
        self._reader = SmallBatches(self._topics.reader_options(self._settings, view.starting_offsets))
        if view.position.offsets is None:
            view.position.begin(self._reader.initial())
        self._thread.start()

    def has_settled(self) -> bool:
        """Whether it has taken a micro-batch since its start, or found nothing to take."""
        return self._has_settled

    def failure(self) -> str | None:
        """Why it has ended, in one line; None while it runs."""
        error = self._error or (self._query.error if self._query is not None else None)
        return None if error is None else reason_of_view(error, self._name)

    def cancel(self) -> None:
        """Its start ends by itself."""

    def stop(self) -> None:
        """End after the running step, and release the state."""
        self._offers.close()
        if self._thread.is_alive():
            self._spark.sparkContext.cancelJobGroup(self._group)
            self._thread.join()
        if self._reader is not None:
            self._reader.close()
        self._view.close()
        close_log(self._log)

    @property
    def _group(self) -> str:
        """Spark's group of the jobs that read for this job alone, and their pool if the job names none."""
        return f"job-{self._name}"

    def offer(self, offer: Offer) -> None:
        """See `shared_query.Member`."""
        self._offers.put(offer)

    def _run(self) -> None:
        try:
            context = self._spark.sparkContext
            context.setJobGroup(self._group, f"reads for {self._name}", interruptOnCancel=True)
            context.setLocalProperty(POOL, self._topics.pool or self._group)
            while not self._offers.is_closed:
                self._follow()
        except BaseException as error:  # noqa: BLE001 - `failure` tells of it, whatever it is
            if not self._offers.is_closed:
                self._log.error("event=job-failed error=%r", reason_of_view(error, self._name))
            self._error = error

    def _follow(self) -> None:
        """Take what a query offers, until the job ends, or another query is the right one."""
        self._take_again()
        end = self._next_end()
        is_alone = end is not None and not is_small(self._here, end)
        self._offers.open()
        self._query = query = self._queries.join(self, self._topics, self._here, pool_alone=self._group if is_alone else None)
        try:
            if is_alone:
                self._follow_alone(query)
            else:
                end = self._next_end()
                if end is None or self._take_small(end):  # records that came before the query knew the job
                    self._follow_with_others()
        finally:
            self._offers.shut()
            self._query = None  # its end is no failure of this job
            self._queries.leave(self, self._topics, query)

    def _follow_alone(self, query: SharedQuery) -> None:
        """Take micro-batches until one was not full; then share the query, if the others have none."""
        while (offer := self._offers.wait()) is not None:
            try:
                has_it = self._take_offer(offer)
            finally:
                offer.taken.set_result(None)
            if has_it and count(offer.start, offer.end) < self._topics.most_rows:
                if self._queries.share(self._topics, query):
                    self._follow_with_others()
                return

    def _follow_with_others(self) -> None:
        has_it = True
        while has_it and (offer := self._offers.wait()) is not None:
            try:
                has_it = self._take_offer(offer)
            finally:
                offer.taken.set_result(None)

    def _take_again(self) -> None:
        """Take the step that the topic has already, with the same records."""
        end = self._view.position.repeats
        if end is not None and not self._take_small(end):
            self._take(self._topics.part(self._spark, self._settings, self._here, end), end)

    @property
    def _here(self) -> StreamOffset:
        assert self._view.position.offsets is not None
        return self._view.position.offsets

    def _next_end(self) -> StreamOffset | None:
        """Where the next step ends by what is there; None if there is nothing to take."""
        assert self._reader is not None
        end = self._view.position.ahead(self._reader.latest(self._here, self._topics.most_rows))
        self._has_settled |= end is None
        return end

    def _take_offer(self, offer: Offer) -> bool:
        """Whether the job has the records of a micro-batch."""
        position = self._view.position
        end = position.ahead(offer.end)
        if end is None:
            return True
        if not position.is_at(offer.start):
            return self._take_small(end)
        self._take(offer.records, end)
        return True

    def _take_small(self, end: StreamOffset) -> bool:
        """Whether the records up to an end are few, and were taken."""
        assert self._reader is not None
        records = self._reader.read(self._here, end)
        if records is not None:
            self._take(records, end)
        return records is not None

    def _take(self, records: pa.Table, end: StreamOffset) -> None:
        self._view.take(records, end)
        self._has_settled = True
