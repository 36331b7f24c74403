"""The points where a line of barnabas falls, and the reasons: the page explains each falling curve with a sentence.

A line bends at a place that has less than `KEPT` of the best place before it. The code finds bends in the results. The reasons
were measured once and are texts here, by the name of the case and the measure. They have no figures of the results, since these
are in the table above the sentence. The page says so if a bend has no reason. Lines of other systems have no sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.limits import MAX_RUN_BYTES
from bench.figures import number
from bench.peers.streams import ALL_WINDOWS

KEPT = 0.75
REASONS = {
    "kreps-2014/stored": "Free pages of this machine return to its host after about two seconds. A plain loop of writes reaches "
    "4,500 MB/s in pages that were used just before, and 350 MB/s in others. The last of the 2 GB go to such pages.",
    "kreps-2014/stored-beyond-memory": "A plain loop of writes reaches 4,700 MB/s here in the first 2 GB, 330 to 420 MB/s up to "
    "23 GB, and 1,800 MB/s after that. Until memory is full, the host of this machine has to give pages. Then pages that were"
    " used before come back.",
    "growth/size": "A batch costs little more for more bytes. A message of 10 kB is a batch of its own; others fill 16 kB. "
    f"Requests of more than {MAX_RUN_BYTES // 1024} kB (`MAX_RUN_BYTES`) are handled one by one. With 10 MB it depends on "
    "memory: in pages that the host of this machine gives first, more than half of the broker's time is the kernel's copy "
    "into them.",
    "growth/partitions": "Batches that arrive together for a partition are checked and written at once. The more partitions take "
    "turns, the fewer batches a write has, which is the CPU for a GB. With thousands of logs in turn, the data of each has "
    "left the processor's caches when its turn comes, the kernel's part as well as the interpreter's.",
    "growth/producers": f"All connections together have at most {ALL_WINDOWS:,} requests in flight. With more connections, each "
    "has fewer, and fewer are handled together, which is the CPU for a GB. With 1,024 connections, the client takes a whole "
    "core as well, as long as the broker, whichever system answers it. No system can be much faster there.",
    "growth/delay-size": "A message of 1 MB moves as a whole. A client, a file and a reader with nothing between them take 0.9 ms"
    " for it (3.6 ms at worst), and 0.3 ms for 100 kB.",
    "growth/delay-partitions": "The median is a third longer: requests for partitions that a connection does not recognise are "
    "parsed again. The p99 is that of twenty among two thousand messages, and differs four-fold from run to run.",
    "growth/consumers": "The consumers are threads of one process here, which shares the cores with the broker. The CPU for a GB "
    "is the broker's own.",
}


def first_bend(points: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """The first place with too little, its share of the best place before it, and the share of the last place."""
    best = 0.0
    for place, value in points:
        if value < KEPT * best:
            return place, value / best, points[-1][1] / max(each for _, each in points)
        best = max(best, value)
    return None


def sentence(name: str, across: str, points: Sequence[tuple[float, float]], *, less_is_better: bool = False) -> str:
    """The sentence on the page below a line of barnabas that bends."""
    bend = first_bend([(place, 1 / value) for place, value in points if value] if less_is_better else points)
    if bend is None:
        return ""
    place, share, last = bend
    if less_is_better:
        found, at_the_end = f"rises to {1 / share:.1f} times the least before", f"{1 / last:.1f} times the least"
    else:
        found, at_the_end = f"falls to {share:.0%} of the best before", f"{last:.0%} of the best"
    return f"Our line {found} at {number(place)} {across}. At the end it is {at_the_end}. {_reason(name)}"


def _reason(name: str) -> str:
    """The reason of a bend; for CPU, the reason of the rate if there is no other."""
    if name not in REASONS and name.removesuffix("/cpu") in REASONS:
        return "The reason is the same as for the rate."
    return REASONS.get(name, "The reason is not measured.")
