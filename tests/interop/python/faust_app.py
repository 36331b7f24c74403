"""A worker of faust that counts words in a table: faust_app.py HOST:PORT NAME RECORDS FOLDER FILE.

It makes its topics (CreateTopics 1), writes RECORDS words unless it finds them counted, and puts the counts into the file once it has them
all. Started again it has the table from its changelog.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import faust

bootstrap, name, wanted, folder, told = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], Path(sys.argv[5])
WORDS = 5
app = faust.App(
    name,
    broker=f"kafka://{bootstrap}",
    store="memory://",
    datadir=folder,
    topic_partitions=2,
    topic_replication_factor=1,
    web_enabled=False,
    broker_commit_every=1,
    stream_wait_empty=False,
)
words = app.topic(f"{name}-words", key_type=str, value_type=str, partitions=2, internal=True)
counts = app.Table(f"{name}-counts", default=int, key_type=str, value_type=int, partitions=2)


async def count(stream: Any) -> None:
    async for key, word in stream.items():
        counts[key] += len(word)


def tell(what: dict[str, Any]) -> None:
    told.write_text(json.dumps(what))


async def send_and_tell() -> None:
    found = dict(counts.items())
    if not found:
        for number in range(wanted):
            await words.send(key=f"word {number % WORDS}", value="x")
    while sum(counts.values()) < wanted:  # noqa: ASYNC110 - a table reports no change
        await asyncio.sleep(0.02)
    await app.commit({words.get_topic_name()})
    tell({"had": sum(found.values()), "counts": dict(counts.items())})
    signal.raise_signal(signal.SIGTERM)  # the normal way to stop a worker


app.agent(words)(count)
app.task(send_and_tell)

if __name__ == "__main__":
    faust.Worker(app, loglevel="warning").execute_from_commandline()
