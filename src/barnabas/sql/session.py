"""A session: one caller, one statement at a time. It prepares statements, keeps those that were checked, and runs them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from barnabas.errors import BarnabasError
from barnabas.sql import states
from barnabas.sql.dialect import split
from barnabas.sql.duck.enums import TypeNumber
from barnabas.sql.interface import Caller, Notice, OneRow, Prepared, Result, SqlError
from barnabas.sql.live.at_once import AtOnce
from barnabas.sql.plans import Plans
from barnabas.sql.shared import Shared
from barnabas.sql.statement_host import StatementHost
from barnabas.sql.statements.families import ready as checked
from barnabas.sql.statements.key_read import RowOfKey
from barnabas.sql.statements.ready import Ready
from barnabas.sql.templates import Seen, Template, template_of

logger = logging.getLogger(__name__)


class SqlSession(StatementHost):
    """A session of a `SqlEngine`. It keeps the seam `Session`.

    Args:
        number: of the session.
        left: called when it is closed.
    """

    def __init__(self, shared: Shared, caller: Caller, number: int, left: Callable[[SqlSession], None]) -> None:
        super().__init__(shared, caller, number)
        self._left = left
        self._plans, self._seen = Plans(), Seen()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def is_fresh(self) -> bool:
        return self._state == "I" and not (
            self._closed or self.prepared or self.buffer or self.temporary or self.views or self.settings.are_changed
        )

    def statements(self, text: str) -> list[str]:
        if text in self._plans:
            return [text]
        template = template_of(text)
        if template is not None and template.text in self._plans:
            return [text.rstrip("; \t\r\n")]
        found = split(text)
        return [text[each.tokens[0].start : each.tokens[-1].end + 1] for each in found]

    def prepare(self, text: str, parameters: Sequence[pa.DataType | None] = ()) -> Prepared:
        prepared: Prepared = self._guarded(self._prepare, text, tuple(parameters))
        return prepared

    def _prepare(self, text: str, given: Sequence[pa.DataType | None]) -> Ready:
        if self._closed:
            raise SqlError(states.ADMIN_SHUTDOWN, "the session is closed")
        made = self._checked(text, given)
        if self._state == "E" and not made.ends_transaction:
            raise SqlError(
                states.IN_FAILED_TRANSACTION, "current transaction is aborted, commands ignored until end of transaction block"
            )
        return made

    def _checked(self, text: str, given: Sequence[pa.DataType | None]) -> Ready:
        """The statement, as it was checked before if nothing has changed."""
        template = None if given else template_of(text)
        if text in self._plans or (template is not None and template.text in self._plans):
            self.definitions.refresh(self.running)
        self.functions.look_once(self.running)
        made = self._plans.get(text, given, self._plans_state()) or self._of_template(text, template)
        if made is None:
            made = checked(self, self._statement(text), [self._known_type(each) for each in given])
            made.given = given
            self._plans.put(text, given, self._plans_state(), made)
            if template is not None:
                self._seen.note(template, is_useful=made.plain is not None)
        return made

    def _known_type(self, kind: pa.DataType | None) -> pa.DataType | None:
        """The type that a client declares by its number. Raises SqlError 42704."""
        return self.access.type_of_number(kind.oid) if isinstance(kind, TypeNumber) else kind

    def _of_template(self, text: str, template: Template | None) -> Ready | None:
        """The statement as one of its template, if that was checked, or came before and gives the same."""
        if template is None:
            return None
        made = self._plans.get(template.text, (), self._plans_state())
        if made is None and self._seen.is_worth(template):
            try:
                made = checked(self, self._statement(template.text), ())
            except SqlError:
                made = None
            if made is None or made.plain is None or not made.lasts or len(made.parameters) != len(template.values):
                self._seen.note(template, is_useful=False)
                return None
            self._plans.put(template.text, (), self._plans_state(), made)
        return None if made is None else made.with_values(text, template.values, lambda: checked(self, self._statement(text), ()))

    def known(self, text: str, parameters: Sequence[pa.DataType | None] = ()) -> Ready | None:
        """The statement as it was checked before; None if it must be prepared. For any thread while no statement runs; it does not wait."""
        if self._closed or self._state == "E" or not (self.definitions.is_fresh and self.functions.is_fresh):
            return None
        made = self._plans.get(text, tuple(parameters), self._plans_state())
        if made is not None or parameters:
            return made
        template = template_of(text)
        if template is None or template.text not in self._plans:
            return None
        return self._of_template(text, template)

    def _plans_state(self) -> object:
        return self.version, self.settings.generation, tuple(self.temporary.items())

    def execute(self, prepared: Prepared, values: Sequence[Any] = ()) -> Result:
        result: Result = self._guarded(lambda: self._current(prepared).run(values))
        return result

    def looks(self) -> AtOnce:
        """For an event loop that answers queries for one row."""
        return AtOnce()

    def one_row(self, prepared: Prepared, values: Sequence[Any]) -> RowOfKey | None:
        """The statement as a query for one row that needs no thread; None if it must run as others do. For any thread while no statement
        runs; it does not wait."""
        if not isinstance(prepared, Ready) or self._closed or self._state == "E":
            return None
        if prepared.version != self.version and prepared.again is not None:
            prepared = prepared.again
        if prepared.version != self.version:
            return None
        if prepared.bound is not None:
            prepared, values = prepared.bound
        if prepared.key_read is None:
            return None
        read = prepared.key_read
        topic = self.client.cluster.topics.get(read.relation.topic)
        if topic is None or not topic.topic_id.int:
            return None
        if read.relation.is_view and self._must_catch_up(read.relation.topic):
            return None
        followed = self._shared.live.followed(read.name(topic.topic_id))
        key = None if followed is None else read.key(values)
        if followed is None or key is None:
            return None
        awaited = self.access.awaited(read.relation.topic, topic.topic_id)
        return RowOfKey(read, key, self.client.config, self._shared.live, followed, topic.topic_id, awaited)

    def saw(self, row: OneRow) -> None:
        """Such a query was answered."""
        assert isinstance(row, RowOfKey)
        self.access.has_seen(row.read.relation.topic)

    def copy_in(self, prepared: Prepared, data: Iterator[bytes]) -> Result:
        made = self._current(prepared)
        if made.copy_from is None:
            raise SqlError(states.WRONG_OBJECT, "the statement takes no data")
        action = made.copy_from
        result: Result = self._guarded(lambda: action(data))
        return result

    def copy_out(self, prepared: Prepared) -> Iterator[bytes]:
        made = self._current(prepared)
        if made.copy_to is None:
            raise SqlError(states.WRONG_OBJECT, "the statement gives no data")
        lines: Iterator[bytes] = self._guarded(made.copy_to)
        return lines

    def _current(self, prepared: Prepared) -> Ready:
        """The statement as it was prepared, or checked again if the tables have changed."""
        assert isinstance(prepared, Ready)
        if self._state == "E" and not prepared.ends_transaction:
            raise SqlError(
                states.IN_FAILED_TRANSACTION, "current transaction is aborted, commands ignored until end of transaction block"
            )
        if prepared.version is None or prepared.version == self.version:
            return prepared
        if prepared.again is not None and prepared.again.version == self.version:
            return prepared.again
        again = self._prepare(prepared.text, prepared.given)
        if again.schema != prepared.schema:
            raise SqlError("0A000", "cached plan must not change result type", hint="prepare the statement again")
        prepared.again = again
        return again

    def _guarded(self, action: Any, *arguments: Any) -> Any:
        """Run a part of a statement; an error fails the transaction."""
        self.running.start(self._seconds())
        try:
            return action(*arguments)
        except SqlError:
            self.fail()
            raise
        except RecursionError:
            self.fail()
            raise SqlError(states.TOO_COMPLEX, "the statement has too many expressions inside of each other") from None
        except BarnabasError as error:
            self.fail()
            raise self.running.error() if self.running.is_cancelled else states.of_failure(error) from error
        except Exception as error:
            self.fail()
            if self.running.is_cancelled:
                raise self.running.error() from error
            logger.exception("event=sql-statement-failed session=%d", self.number)
            raise SqlError(states.INTERNAL, f"an internal error: {type(error).__name__}") from error
        finally:
            self.running.stop()

    def _seconds(self) -> float:
        own = self.settings.milliseconds("statement_timeout") / 1000
        most = self._shared.limits.seconds
        return min(own or most, most or own)

    def fail(self) -> None:
        """A statement failed: within a transaction, nothing but its end is possible."""
        if self._state == "T":
            self._state = "E"
            if not self.buffer.has_savepoints:
                self._locks.release(changed=False)

    def send_notices_to(self, listener: Callable[[Notice], None] | None) -> None:
        """Let `listener` have each notice at once, in the thread of the statement, instead of `take_notices`."""
        self._listener = listener

    def take_notices(self) -> Sequence[Notice]:
        """Those since the last call, the oldest first."""
        found, self._notices = self._notices, []
        return found

    def parameter(self, name: str) -> str | None:
        return self.settings.get(name)

    def cancel(self) -> None:
        self.running.cancel()

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.running.cancel("terminating connection due to administrator command")
        self.running.release_all()
        self._end_spark()
        self.drop_temporary()
        self._locks.release(changed=True)
        self.access.close()
        self.producers.close()
        self.client.close()
        self._left(self)

    def forget(self) -> None:
        """As a session that just began."""
        self._plans.clear()
        self._seen.clear()
        super().forget()
