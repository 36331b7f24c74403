"""The routes of SQL over HTTP.

`POST /sql` runs statements: the body is the text, or JSON with `statement` and `parameters`. Several statements run one after the other,
and the answer has the rows of the last one. `GET /subscribe/NAME` gives the changes of a table or a view as server-sent events. Each
request has a session to itself; see `idle.py` for what becomes of it.

Rules
  1. A statement's rows are made as the client takes them, in a thread. A client that goes away cancels its statement.
  2. Rows that come as time goes on have threads of their own: they wait there most of the time, and would hold back other statements.
  3. Errors before the first rows have a status by their SQLSTATE; later ones stand in the stream, or break it off (`formats.py`).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from barnabas import limits
from barnabas.sql.http.errors import error_body
from barnabas.sql.http.idle import IdleSessions
from barnabas.sql.http.quick import QuickAnswers
from barnabas.sql.interface import Caller, Engine, Result, Session, SqlError
from barnabas.web.routing import HttpError, Request, Response, Router

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.sql.http.formats import RowWriter

JSON = ((b"content-type", b"application/json"),)
STATUSES = {  # by SQLSTATE, or by its first two characters
    "42501": 403, "28": 401, "57014": 408, "57P01": 503, "53": 503, "08": 503, "22": 400, "23": 409, "25": 400, "0A": 400, "42": 400,
    "3F": 400, "3D": 400, "34": 400, "26": 400, "40": 409, "54": 400, "21": 400,
}  # fmt: skip
STATES = {
    401: "28000",
    403: "42501",
    408: "57014",
    429: "53300",
    500: "XX000",
    503: "57P03",
}  # of the host's own refusals, by status
END = object()
CANCEL_AGAIN_S = 0.05
FEW_ROWS = 500  # are written before the answer begins


class Statement(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON body of a request."""

    statement: str
    parameters: list[Any] = []


_STATEMENT = msgspec.json.Decoder(Statement)  # made at import, because threads must not make it at once


class Failed(HttpError):
    """A statement that failed before its first rows."""

    def __init__(self, error: SqlError) -> None:
        status = STATUSES.get(error.sqlstate) or STATUSES.get(error.sqlstate[:2]) or 500
        super().__init__(status, error.message)
        self.error = error


class Surface:
    """The routes over an engine.

    Args:
        engine: None while the service starts; `start` sets it.
        secured: whether callers log in.
        mechanism: of SASL, by which callers with a password reach the cluster.
        settings: of TLS and the security protocol of the cluster.
    """

    def __init__(self, *, secured: bool = False, mechanism: str = "PLAIN", settings: Mapping[str, str] | None = None) -> None:
        self.engine: Engine | None = None
        self._secured, self._mechanism, self._settings = secured, mechanism, dict(settings or {})
        self._idle, self._quick = IdleSessions(), QuickAnswers()
        self._live = ThreadPoolExecutor(limits.MAX_SQL_SESSIONS, "sql-live")  # a thread is made when none is free
        self.router = Router()
        self.router.add("POST", "/sql", self._sql)
        self.router.add("GET", "/sql", self._sql)
        self.router.add("GET", "/subscribe/{}", self._subscribe)

    def error(self, error: HttpError) -> Response:
        """An error as JSON: `sqlstate` and `message`, and what else there is to say."""
        found = error.error if isinstance(error, Failed) else SqlError(STATES.get(error.status, "08P01"), error.message)
        return Response(msgspec.json.encode(error_body(found)), error.status, JSON)

    async def _sql(self, request: Request) -> Response:
        from barnabas.sql.http.formats import WRITERS, chosen  # it loads pyarrow, so only a service that is used has it

        name = chosen(request.query.get("format"), request.headers.get("accept", ""))
        if name is None:
            raise HttpError(406, f"the formats are {', '.join(WRITERS)}; name one by ?format= or by the header Accept")
        return await self._answer(request, _statement(request), name)

    async def _subscribe(self, request: Request, name: str) -> Response:
        """The changes of a table or a view as server-sent events; a client that comes again goes on behind its last event."""
        quoted = '"' + name.replace('"', '""') + '"'
        at = request.headers.get("last-event-id") or request.query.get("from")
        if at is not None:
            text = at.replace("'", "''")
            return await self._answer(request, Statement(f"SUBSCRIBE TO {quoted} WITH (FROM = '{text}')"), "sse")
        snapshot = request.query.get("snapshot", "on")
        if snapshot not in ("on", "off"):
            raise HttpError(400, "snapshot is on or off")
        return await self._answer(request, Statement(f"SUBSCRIBE TO {quoted} WITH (SNAPSHOT = {snapshot})"), "sse")

    async def _answer(self, request: Request, asked: Statement, name: str) -> Response:
        from barnabas.sql.http.formats import WRITERS

        caller = self._caller(request)
        if self.engine is None:
            raise HttpError(503, "SQL is not ready")
        session = self._idle.take(caller)
        found = await self._at_once(session, caller, asked) if name == "json" and session is not None else None
        if found is not None:
            return found
        session = session or await self._new_session(self.engine, caller)
        running = _Running(session, lambda: self._idle.give(caller, session), self._live)
        try:
            return await running.answer(asked, WRITERS[name]())
        except SqlError as error:
            await running.close()
            raise Failed(error) from None
        except BaseException:
            await running.close()
            raise

    async def _at_once(self, session: Session, caller: Caller, asked: Statement) -> Response | None:
        """The answer in the event loop, if it can be had there."""
        try:
            body = await self._quick.json(session, asked.statement, asked.parameters)
        except BaseException:
            self._idle.give(caller, session)
            raise
        if body is None:
            return None
        self._idle.give(caller, session)
        return Response(body, 200, JSON)

    async def _new_session(self, engine: Engine, caller: Caller) -> Session:
        """A session. Loading the engine can take a minute: if the request ends before, the session waits for the next one."""

        def keep(made: asyncio.Future[Session]) -> None:
            if not made.cancelled() and made.exception() is None:
                self._idle.give(caller, made.result())

        making = asyncio.ensure_future(asyncio.to_thread(_guarded, engine.session, caller))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(keep)
            raise

    async def close(self) -> None:
        """Close the sessions that wait for requests."""
        await self._quick.close()
        await self._idle.close()
        self._live.shutdown(wait=False)

    def _caller(self, request: Request) -> Caller:
        user = request.caller.principal.removeprefix("User:")
        if not self._secured:
            return Caller("anonymous")
        own = _credentials(request.headers.get("authorization", ""), self._mechanism)
        return Caller(user, settings={**self._settings, **own})


class _Running:
    """One session with the statement that it runs.

    Args:
        give_back: called in the loop after a request that ended well.
        live: where the rows are taken of a result that does not end by itself.
    """

    def __init__(self, session: Session, give_back: Callable[[], None], live: Executor) -> None:
        self._session, self._give_back, self._live = session, give_back, live
        self._result: Result | None = None

    async def close(self) -> None:
        """End the statement and the session, also in the middle of a statement."""
        self._session.cancel()
        await asyncio.shield(asyncio.to_thread(self._closed))

    def _closed(self) -> None:
        if self._result is not None:
            self._result.close()
        self._session.close()

    async def answer(self, asked: Statement, writer: RowWriter) -> Response:
        body, batch, batches = await self._in_thread(self._begin, asked, writer)
        content = ((b"content-type", writer.content_type),)
        if batch is END:
            self._give_back()
            return Response(body, 200, content)
        stream = self._rows(writer, body, batch, batches)
        return Response(await anext(stream), 200, content, stream)

    def _begin(self, asked: Statement, writer: RowWriter) -> tuple[bytes, Any, Iterator[pa.RecordBatch]]:
        """Run the statements. The whole answer and END, or its begin and the batches that follow."""
        texts = self._session.statements(asked.statement)
        if not texts:
            raise SqlError("42601", "there is no statement")
        if len(texts) > 1 and asked.parameters:
            raise SqlError("42601", "parameters belong to one statement; there are several")
        for text in texts[:-1]:
            result = self._session.execute(self._session.prepare(text))
            for _ in result.batches() if result.schema is not None else ():
                pass
            result.close()
        result = self._result = self._session.execute(self._session.prepare(texts[-1]), asked.parameters)
        batches = result.batches() if result.schema is not None else iter(())
        batch: Any = next(batches, END)
        body = writer.begin(result.schema)
        is_live = getattr(result, "is_live", False)  # its next batch may come late
        if not is_live and (
            batch is END or batch.num_rows <= FEW_ROWS
        ):  # a batch with fewer rows than the engine collects is the last one
            after: Any = END if batch is END else next(batches, END)
            if after is END:
                rows = 0 if batch is END else batch.num_rows
                body += (writer.rows(batch) if rows else b"") + writer.end(_tag(result.tag, rows))
                result.close()
                return body, END, batches
            batches = itertools.chain([after], batches)
        return body, batch, batches

    async def _rows(
        self, writer: RowWriter, begin: bytes, first: pa.RecordBatch, batches: Iterator[pa.RecordBatch]
    ) -> AsyncGenerator[bytes, None]:
        count, batch, ended = 0, first, False
        result = self._result
        assert result is not None
        executor = self._live if getattr(result, "is_live", False) else None
        try:
            yield begin
            while batch is not END:
                count += batch.num_rows
                if data := await self._in_thread(writer.rows, batch):
                    yield data
                batch = await self._in_thread(next, batches, END, executor=executor)
            await self._in_thread(result.close)
            ended = True
            yield writer.end(_tag(result.tag, count))
        except SqlError as error:
            told = writer.failed(error)
            if told is None:
                raise Failed(error) from None  # the host ends the connection without the end of the answer
            yield told
        finally:
            if ended:
                self._give_back()
            else:
                await self.close()

    async def _in_thread(self, function: Any, *arguments: Any, executor: Executor | None = None) -> Any:
        """The function's result. If the request ends first, the statement is cancelled, and the thread has ended afterwards."""
        task = asyncio.get_running_loop().run_in_executor(executor, function, *arguments)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():  # a cancellation that comes before the statement runs has no effect
                self._session.cancel()
                await asyncio.wait((task,), timeout=CANCEL_AGAIN_S)
            with contextlib.suppress(Exception):
                task.result()
            raise


def _tag(tag: str, rows: int) -> str:
    return f"{tag} {rows}" if " " not in tag and tag == "SELECT" else tag


def _guarded(function: Callable[[Caller], Session], caller: Caller) -> Session:
    try:
        return function(caller)
    except SqlError as error:
        raise Failed(error) from None


def _statement(request: Request) -> Statement:
    """The statement of a request. Raises HttpError 400 or 415."""
    if request.method != "POST":
        text = request.query.get("statement")
        if text is None:
            raise HttpError(400, "GET /sql needs the parameter statement")
        return Statement(text)
    kind = request.headers.get("content-type", "text/plain").split(";")[0].strip().lower()
    try:
        if kind == "application/json":
            return _STATEMENT.decode(request.body)
        if kind in {"text/plain", "application/sql", "application/x-www-form-urlencoded"}:
            return Statement(request.body.decode())
    except UnicodeDecodeError:
        raise HttpError(400, "the statement is no UTF-8") from None
    except msgspec.MsgspecError as error:
        raise HttpError(400, f'the body is no {{"statement": …, "parameters": […]}}: {error}') from None
    raise HttpError(415, f"the body is text/plain or application/json, not {kind[:60]}")


def _credentials(header: str, mechanism: str) -> Mapping[str, str]:
    """The client settings of a caller who logged in; the host has checked them. Raises HttpError 401 for a certificate alone."""
    word, _, rest = header.partition(" ")
    if word.lower() == "basic":
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            user, _, password = base64.b64decode(rest).decode().partition(":")
            return {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
    if word.lower() == "bearer":
        return {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token": rest.strip()}
    raise HttpError(
        401, "SQL acts with the rights of its caller, so that it needs a password or a token; a certificate is not enough"
    )
