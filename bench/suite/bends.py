"""Where a line of ours bends, and why: no curve that falls is shown without a sentence.

A line bends where a place has less than `KEPT` of the best place before it. That is found in the results; why it is so was measured once
and is written here, by the name of the case and the measure. A bend without a reason is called one.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.suite.figures import number

KEPT = 0.75
REASONS = {
    "kreps-2014/stored": "Free pages of this machine go back to its host after some two seconds: a plain loop of writes has 5,500 MB/s in "
    "pages that were used just before and 360 MB/s in others, in which the last of the 2 GB come to lie.",
    "growth/size": "A batch costs 10 us, and little more for its bytes: one of 10 kB is a single message, others fill 16 kB. From "
    "100 kB on requests are not taken together with their neighbours any more (64 kB, `MAX_RUN_BYTES`); with 1 MB the work for a byte is "
    "least: 0.4 to 0.6 s of CPU for a GB. With 10 MB it is 0.6 to 0.9 s in memory that was used just before (1,200 to 1,950 MB/s); in "
    "pages that the host of this machine gives first it is 330 to 470 MB/s, and 55 % of the broker's time is the kernel's copy into them.",
    "growth/partitions": "Requests for one partition that arrive together are checked and written at once: 8 us of CPU for a batch. Spread "
    "over 400 partitions each is written by itself: 23 us. A connection knows 64 requests again (`MAX_REPEATED_REQUESTS`): with 100 "
    "partitions for each connection it is 43 us, and would be 30 if it knew 1,024, which is memory that ten thousand connections must not "
    "take. The first batch of a partition opens its file and is learnt, 95 us, and with thousands of partitions many of a second's batches "
    "are first ones.",
    "growth/producers": "A message takes 1.5 us of CPU with 16 connections, and 2.3 us with 1,024.",
    "growth/consumers": "It is not the broker: its CPU for a GB stays between 0.43 and 0.57 s up to 64 consumers. They are threads of one "
    "process here, which shares two cores with the broker.",
}


def first_bend(points: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """The first place that has too little, its share of the best before it, and that of the last place."""
    best = 0.0
    for place, value in points:
        if value < KEPT * best:
            return place, value / best, points[-1][1] / max(each for _, each in points)
        best = max(best, value)
    return None


def sentence(name: str, across: str, points: Sequence[tuple[float, float]]) -> str:
    """What the page says below a line of ours that bends."""
    bend = first_bend(points)
    if bend is None:
        return ""
    place, share, last = bend
    found = (
        f"Our line bends at {number(place)} {across}: {share:.0%} of the best before; at the end it is {last:.0%} of the best."
    )
    return f"{found} {REASONS.get(name, 'Why is not measured yet.')}"
