"""Requests about what connectors and tasks do, and about their offsets and topics."""

from __future__ import annotations

from barnabas.connect.herder.offsets import items_of
from barnabas.connect.herder.records import Target
from barnabas.connect.http.exchange import answer, body_of, flag, nothing
from barnabas.connect.http.surface import Surface, task_number
from barnabas.web.routing import Request, Response


async def status(surface: Surface, _request: Request, name: str) -> Response:
    """GET /connectors/{}/status"""
    return answer(await surface.run(lambda: surface.worker.status(name)))


async def pause(surface: Surface, _request: Request, name: str) -> Response:
    """PUT /connectors/{}/pause"""
    await surface.run(lambda: surface.worker.set_target(name, Target.PAUSED))
    return nothing(202)


async def resume(surface: Surface, _request: Request, name: str) -> Response:
    """PUT /connectors/{}/resume"""
    await surface.run(lambda: surface.worker.set_target(name, Target.STARTED))
    return nothing(202)


async def stop(surface: Surface, _request: Request, name: str) -> Response:
    """PUT /connectors/{}/stop"""
    await surface.run(lambda: surface.worker.set_target(name, Target.STOPPED))
    return nothing(204)


async def restart(surface: Surface, request: Request, name: str) -> Response:
    """POST /connectors/{}/restart"""
    include = flag(request.query, "includeTasks", default=False)
    failed = flag(request.query, "onlyFailed", default=False)
    found = await surface.run(lambda: surface.worker.restart(name, include_tasks=include, only_failed=failed))
    return nothing(204) if found is None else answer(found, 202)


async def tasks(surface: Surface, _request: Request, name: str) -> Response:
    """GET /connectors/{}/tasks"""
    return answer(await surface.run(lambda: surface.worker.tasks(name)))


async def task_status(surface: Surface, _request: Request, name: str, task: str) -> Response:
    """GET /connectors/{}/tasks/{}/status"""
    number = task_number(task)
    return answer(await surface.run(lambda: surface.worker.task_status(name, number)))


async def restart_task(surface: Surface, _request: Request, name: str, task: str) -> Response:
    """POST /connectors/{}/tasks/{}/restart"""
    number = task_number(task)
    await surface.run(lambda: surface.worker.restart_task(name, number))
    return nothing(204)


async def topics(surface: Surface, _request: Request, name: str) -> Response:
    """GET /connectors/{}/topics"""
    return answer(await surface.run(lambda: surface.worker.topics(name)))


async def reset_topics(surface: Surface, _request: Request, name: str) -> Response:
    """PUT /connectors/{}/topics/reset"""
    await surface.run(lambda: surface.worker.reset_topics(name))
    return nothing(202)


async def offsets(surface: Surface, _request: Request, name: str) -> Response:
    """GET /connectors/{}/offsets"""
    return answer(await surface.run(lambda: surface.worker.offsets(name)))


async def alter_offsets(surface: Surface, request: Request, name: str) -> Response:
    """PATCH /connectors/{}/offsets"""
    items = items_of(body_of(request))
    return answer(await surface.run(lambda: surface.worker.alter_offsets(name, items)))


async def reset_offsets(surface: Surface, _request: Request, name: str) -> Response:
    """DELETE /connectors/{}/offsets"""
    return answer(await surface.run(lambda: surface.worker.reset_offsets(name)))
