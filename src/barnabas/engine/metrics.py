"""Jobs as metrics, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.engine.jobs import State
from barnabas.engine.report import Report


def _progress(field: str, unit: float = 1.0) -> Callable[[Report], float | None]:
    return lambda each: None if each.progress is None else getattr(each.progress, field) * unit


FAMILIES: tuple[tuple[str, str, str, Callable[[Report], float | None]], ...] = (
    ("barnabas_job_lag_records", "gauge", "Records that a job is behind its topics.", lambda each: each.lag),
    ("barnabas_job_rows_in", "counter", "Rows that a job has read since its generation began.", _progress("total_in")),
    ("barnabas_job_rows_out", "counter", "Changes that a job has written since its generation began.", _progress("total_out")),
    ("barnabas_job_batch_seconds", "gauge", "Time of a job's last micro-batch.", _progress("took_ms", 0.001)),
    ("barnabas_job_state_rows", "gauge", "Rows that a job keeps.", _progress("state_rows")),
    ("barnabas_job_state_bytes", "gauge", "Bytes that a job keeps.", _progress("state_bytes")),
    (
        "barnabas_job_failures",
        "gauge",
        "Failures of a job in a row.",
        lambda each: None if each.state is None else each.state.tries,
    ),
)
STATE, DRIVER_RESTARTS = "barnabas_job_state", "barnabas_engine_driver_restarts"
NAMES = frozenset({STATE, DRIVER_RESTARTS, *(family[0] for family in FAMILIES)})


def page(reports: Sequence[Report], *, driver_restarts: int) -> bytes:
    """The page of all jobs."""
    lines = [f"# HELP {STATE} 1 for the state in which a job is, 0 for the others.", f"# TYPE {STATE} gauge"]
    for each in reports:
        for state in State:
            is_it = each.state is not None and each.state.state is state
            lines.append(f'{STATE}{{job="{_escaped(each.job.name)}",state="{state}"}} {int(is_it)}')
    for name, kind, help_text, value_of in FAMILIES:
        suffix = "_total" if kind == "counter" else ""
        lines += [f"# HELP {name}{suffix} {help_text}", f"# TYPE {name}{suffix} {kind}"]
        for each in reports:
            value = value_of(each)
            if value is not None:
                lines.append(f'{name}{suffix}{{job="{_escaped(each.job.name)}"}} {float(value)}')
    lines += [f"# HELP {DRIVER_RESTARTS}_total Starts of Spark after a failure.", f"# TYPE {DRIVER_RESTARTS}_total counter"]
    lines.append(f"{DRIVER_RESTARTS}_total {driver_restarts}")
    return ("\n".join(lines) + "\n").encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
