"""Decides which engine runs each task of a connector. The active engine decides. No I/O.

Rules
  1. A job stays where it is, unless that engine is gone, or has two jobs more than another one.
  2. A job that moves is taken away first: it has no assignment until its engine has ended it, or is gone. So no two engines run it, if all
     of them answer in time. Otherwise its task fences the earlier one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.engine.jobs import Assignment, Job, JobState


def assignment_changes(
    jobs: Mapping[str, Job], known: Mapping[str, Assignment], states: Mapping[str, JobState], members: Collection[str]
) -> dict[str, Assignment | None]:
    """The assignments that change; None takes a job away.

    Args:
        jobs: of the cluster; those that are not shared get no assignment.
        members: ids of the engines.
    """
    shared = sorted(name for name, job in jobs.items() if job.is_shared)
    changes: dict[str, Assignment | None] = {name: None for name in known if name not in jobs or not jobs[name].is_shared}
    if not members:
        return changes
    owned: dict[str, list[str]] = {each: [] for each in sorted(members)}
    free, leaving = [], 0
    for name in shared:
        owner = known[name].worker if name in known else None
        state = states.get(name)
        if owner in owned:
            owned[owner].append(name)
        elif owner is None and state is not None and state.worker in owned:
            leaving += 1
        else:
            free.append(name)
    counts = {each: len(names) for each, names in owned.items()}
    for name in free:
        least = _least(counts)
        counts[least] += 1
        changes[name] = Assignment(name, least)
    for _ in range(leaving):  # they come to these as soon as they have ended
        counts[_least(counts)] += 1
    while (most := _most(counts)) and counts[most] - counts[_least(counts)] > 1 and owned[most]:
        changes[owned[most].pop()] = None
        counts[_least(counts)] += 1
        counts[most] -= 1
    return changes


def _least(counts: Mapping[str, int]) -> str:
    return min(counts, key=lambda each: (counts[each], each))


def _most(counts: Mapping[str, int]) -> str:
    return max(counts, key=lambda each: (counts[each], each))
