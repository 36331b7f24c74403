"""All figures of one size of a cluster."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bench.scale.cell import LOST, Cell
from bench.scale.memory import resident_bytes


def measure(brokers: int, partitions: int, per_topic: int) -> dict[str, Any]:
    """All figures of one size."""
    cell = Cell(brokers)
    works = {"create": asdict(cell.measured(lambda: cell.create(partitions // per_topic, per_topic)))}
    before = resident_bytes()
    fresh, seconds = cell.take_over()
    image_bytes = resident_bytes() - before
    works["lost"] = asdict(cell.measured(lambda: cell.go(LOST)))
    works["came"] = asdict(cell.measured(lambda: cell.come(LOST)))
    works["rejoined"] = asdict(cell.measured(lambda: cell.rejoin(LOST)))
    assert len(fresh.image.topics) == partitions // per_topic
    return {
        "brokers": brokers,
        "partitions": partitions,
        "per_topic": per_topic,
        "stored": cell.stored(),
        "take_over_s": seconds,
        "image_bytes": image_bytes,
        "idle_look_s": cell.idle_look(),
        "metadata_bytes": cell.metadata_answer_bytes(),
        "works": works,
    }
