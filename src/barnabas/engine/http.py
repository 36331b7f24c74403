"""The HTTP interface of the engine: jobs as JSON, what people do with them, logs and metrics.

Rules
  1. A caller needs READ on the topic `_barnabas_jobs` to see jobs, and WRITE to change them. Callers that do not log in may do all.
  2. The topics are read before each answer. Every engine answers. The log of a job is with the engine that runs it: the active one, and for
     a task of a connector perhaps another one, to which a redirection leads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError
from barnabas.client.keyed_topic import KeyedTopicError
from barnabas.digits import is_number
from barnabas.engine import operations, pipeline_unit
from barnabas.engine.folders import job_log
from barnabas.engine.jobs import JOBS, PipelineWork
from barnabas.engine.metrics import page
from barnabas.engine.operations import JobError, JobExists, UnknownJob
from barnabas.engine.report import reports, shown
from barnabas.engine.rotating_log import last_lines
from barnabas.engine.supervisor import EngineSettings, Supervisor
from barnabas.engine.topic_rights import check_topic_right
from barnabas.errors import BarnabasError, KafkaError
from barnabas.pipelines.runs.folders import PipelineError
from barnabas.security.acls import Operation
from barnabas.security.rights import ClusterRights
from barnabas.web.routing import Caller, HttpError, Request, Response, Router

JSON = ((b"content-type", b"application/json"),)
TEXT = ((b"content-type", b"text/plain; charset=utf-8"),)
DEFAULT_LINES = 100
R = TypeVar("R")


class NewPipeline(Struct, forbid_unknown_fields=True):
    """The body of `POST /jobs`."""

    name: str
    target: str
    arguments: list[str] = []
    every_s: float | None = None
    conf: dict[str, str] = {}


_NEW_PIPELINE = msgspec.json.Decoder(NewPipeline)  # made at import, because threads must not make it at once


class Surface:
    """The routes.

    Args:
        rights: None if callers do not log in.
    """

    def __init__(
        self, config: ClientConfig, supervisor: Supervisor, settings: EngineSettings, rights: ClusterRights | None
    ) -> None:
        self._client, self._lock = BlockingClient(config), threading.Lock()
        self._supervisor, self._settings, self._rights = supervisor, settings, rights
        self.router = Router()
        for method, pattern, handler in (
            ("GET", "/jobs", self._list),
            ("POST", "/jobs", self._create),
            ("GET", "/jobs/{}", self._describe),
            ("DELETE", "/jobs/{}", self._delete),
            ("POST", "/jobs/{}/pause", self._pause),
            ("POST", "/jobs/{}/resume", self._resume),
            ("POST", "/jobs/{}/restart", self._restart),
            ("GET", "/jobs/{}/logs", self._logs),
        ):
            self.router.add(method, pattern, handler)

    def close(self) -> None:
        """Release the connections."""
        with self._lock:
            self._client.close()

    async def metrics(self) -> bytes:
        """The jobs in the text format of Prometheus; nothing if the cluster does not answer."""
        try:
            found = await self._run(lambda: self._reports(None))
        except HttpError:
            return b""
        spark = self._supervisor.spark
        return page([] if found is None else found, driver_restarts=0 if spark is None else spark.restarts)

    async def _list(self, request: Request) -> Response:
        await self._check(request.caller, Operation.READ)
        return _json(await self._run(lambda: [shown(each) for each in self._reports(None)]))

    async def _describe(self, request: Request, name: str) -> Response:
        await self._check(request.caller, Operation.READ)
        return _json(await self._run(lambda: shown(self._reports(name)[0])))

    def _reports(self, name: str | None) -> Any:
        it = self._supervisor
        jobs = it.jobs.follow()
        if name is not None and name not in jobs:
            raise UnknownJob(f"there is no job {name}")
        return reports(self._client, jobs, it.states.follow(), it.progress.follow(), None if name is None else [name])

    async def _create(self, request: Request) -> Response:
        await self._may_change(request)
        kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json":
            raise HttpError(415, "the body is application/json")
        try:
            asked = _NEW_PIPELINE.decode(request.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HttpError(400, f"the body is no pipeline: {error}") from None
        job = operations.pipeline(asked.name, asked.target, tuple(asked.arguments), asked.every_s, asked.conf)

        def create() -> str:
            assert isinstance(job.work, PipelineWork)
            pipeline_unit.checked(job.work, job.conf, self._settings.pipelines)
            return operations.create(self._supervisor.jobs, self._client, job).name

        return _json({"name": await self._run(create)}, 201)

    async def _delete(self, request: Request, name: str) -> Response:
        await self._may_change(request)
        await self._run(lambda: operations.delete(self._supervisor.jobs, self._client, name))
        return _json({"name": name})

    async def _pause(self, request: Request, name: str) -> Response:
        return await self._change(request, name, operations.pause)

    async def _resume(self, request: Request, name: str) -> Response:
        return await self._change(request, name, operations.resume)

    async def _restart(self, request: Request, name: str) -> Response:
        rebuild = request.query.get("rebuild", "false").lower()
        if rebuild not in {"true", "false"}:
            raise HttpError(400, "rebuild is true or false")
        return await self._change(request, name, operations.restart, rebuild=rebuild == "true")

    async def _change(self, request: Request, name: str, change: Callable[..., Any], **options: Any) -> Response:
        await self._may_change(request)
        job = await self._run(lambda: change(self._supervisor.jobs, self._client, name, **options))
        return _json({"name": name, "desired": job.desired, "generation": job.generation, "restarts": job.restarts})

    async def _logs(self, request: Request, name: str) -> Response:
        await self._check(request.caller, Operation.READ)
        text = request.query.get("lines", str(DEFAULT_LINES))
        if not is_number(text, limits.MAX_JOB_LOG_LINES):
            raise HttpError(400, f"lines is a number up to {limits.MAX_JOB_LOG_LINES}")

        def read() -> list[str] | str:
            state = self._reports(name)[0].state
            own = self._supervisor.shared.member.url
            if state is not None and state.url not in (None, own):
                return f"{state.url}/jobs/{quote(name, safe='')}/logs?lines={int(text)}"
            return last_lines(job_log(self._settings.folder, name), int(text))

        lines = await self._run(read)
        if isinstance(lines, str):
            return Response(b"", 307, ((b"location", lines.encode()),))
        return Response("".join(f"{line}\n" for line in lines).encode(), 200, TEXT)

    async def _may_change(self, request: Request) -> None:
        """Raises HttpError 401 to 403, see rule 1."""
        await self._check(request.caller, Operation.WRITE)

    async def _check(self, caller: Caller, operation: Operation) -> None:
        await check_topic_right(self._rights, caller, operation, JOBS)

    async def _run(self, work: Callable[[], R]) -> R:
        """The result of work that uses the client, in a thread. Raises HttpError."""

        def guarded() -> R:
            with self._lock:
                return work()

        try:
            return await asyncio.to_thread(guarded)
        except BarnabasError as error:
            raise HttpError(_status(error), str(error)) from None


def _status(error: BarnabasError) -> int:
    statuses: Mapping[type[BarnabasError], int] = {
        UnknownJob: 404, JobExists: 409, JobError: 400, pipeline_unit.NotAllowed: 400, PipelineError: 400, KeyedTopicError: 409,
        ClientError: 503, KafkaError: 503,
    }  # fmt: skip
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 500)


def _json(data: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(data), status, JSON)


def error_response(error: HttpError) -> Response:
    """An error as JSON."""
    return _json({"error": error.code, "message": error.message}, error.status)
