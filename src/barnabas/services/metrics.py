"""The counters of HTTP services, for Prometheus: requests and seconds by service, method and status."""

from __future__ import annotations

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
REQUESTS = "barnabas_http_request_seconds"


class RequestTimes:
    """Counts requests; all unknown methods share one series."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str, int], list[float]] = {}  # counts by bucket, count above the last bucket, sum of seconds

    def observe(self, service: str, method: str, status: int, seconds: float) -> None:
        """One request was answered."""
        key = (service, method if method in METHODS else "other", status)
        counts = self._times.get(key)
        if counts is None:
            counts = self._times[key] = [0.0] * (len(BUCKETS_S) + 2)
        at = 0
        for bound in BUCKETS_S:
            if seconds <= bound:
                break
            at += 1
        counts[at] += 1
        counts[-1] += seconds

    def page(self) -> bytes:
        """The counters in the text format of Prometheus."""
        lines = [
            f"# HELP {REQUESTS} Time from the head of a request to its answer, to the end of a streamed one.",
            f"# TYPE {REQUESTS} histogram",
        ]
        for (service, method, status), counts in sorted(self._times.items()):
            labels = f'service="{service}",method="{method}",status="{status}"'
            total = 0.0
            for bound, count in zip((*map(repr, BUCKETS_S), "+Inf"), counts[:-1], strict=True):
                total += count
                lines.append(f'{REQUESTS}_bucket{{{labels},le="{bound}"}} {total}')
            lines.append(f"{REQUESTS}_count{{{labels}}} {total}")
            lines.append(f"{REQUESTS}_sum{{{labels}}} {counts[-1]}")
        return ("\n".join(lines) + "\n").encode()
