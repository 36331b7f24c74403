"""Stories: what several clients and the coordinator say to each other, as text that can be read from top to bottom.

A line that begins with `>` is something that happens; the lines below it are what follows. With REWRITE_STORIES=1 in the
environment the files are written anew, and the difference is for the reader to judge.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.join_group import JoinGroupResponse
from tests.coordination.driver import Driver
from tests.coordination.support import Config, subscription

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


class Teller:
    """Plays the lines of a story. Clients are named; their member ids are written as the name and a number."""

    def __init__(self) -> None:
        self.driver = Driver(Config(group_initial_rebalance_delay_ms=3_000))
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.notes_told = 0

    def play(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        try:
            said = getattr(self, verb)(*names, **options)
        except KafkaError as error:
            said = error.code.name
        told = [*([said] if said else []), *self.answers(), *(f"({note})" for note in self.new_notes())]
        return [self.readable(text) for text in told]

    def readable(self, text: str) -> str:
        for name, member_id in self.ids.items():
            text = re.sub(rf"\b{re.escape(member_id)}\b", name, text)
        return text

    def new_notes(self) -> list[str]:
        notes, self.notes_told = self.driver.notes[self.notes_told :], len(self.driver.notes)
        return notes

    def answers(self) -> list[str]:
        answers, self.driver.answers = self.driver.answers, {}
        return [self.answer(token, response) for token, response in answers.items()]

    def answer(self, token: str, response: Any) -> str:
        name = token.removesuffix("/sync")
        if response.error_code and response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            return f"{name}: {ErrorCode(response.error_code).name}"
        if not isinstance(response, JoinGroupResponse):
            return f"{name} is assigned {response.assignment.decode() or 'nothing'}"
        self.ids[name] = response.member_id
        if response.error_code:
            return f"{name} is told its id"
        self.generations[name] = response.generation_id
        leads = f" and leads {len(response.members)}" if response.members else ""
        spared = ", nothing to assign" if response.skip_assignment else ""
        return f"{name} is in generation {response.generation_id}{leads}{spared}"

    # -- verbs ----------------------------------------------------------------------------------------------------------

    def join(self, name: str, topics: str = "t", instance: str | None = None, version: str = "9", new: str = "") -> None:
        protocols = {"range": subscription(topics.split(","))}
        member_id = "" if new else self.ids.get(name, "")
        self.driver.send_join(name, member_id, instance_id=instance, protocols=protocols, version=int(version))

    def sync(self, name: str, instance: str | None = None, **shares: str) -> None:
        assignments = {self.ids[client]: share.encode() for client, share in shares.items()}
        self.driver.send_sync(name, self.ids[name], self.generations[name], assignments, instance_id=instance)

    def heartbeat(self, name: str, instance: str | None = None) -> str:
        return self.driver.heartbeat(self.ids[name], self.generations[name], instance).name

    def commit(self, name: str, offset: str, topic: str = "t") -> str:
        return self.driver.commit(int(offset), self.ids.get(name, ""), self.generations.get(name, -1), topic=topic).name

    def leave(self, name: str) -> str:
        return self.driver.leave(self.ids[name])[0].name

    def wait(self, seconds: str) -> None:
        self.driver.advance(int(float(seconds) * 1_000))

    def restart(self) -> None:
        self.driver = self.driver.restarted()

    def state(self) -> str:
        group = self.driver.group()
        offsets = {t: o[0].offset for t, o in self.driver.shard.offsets.of_group("g").items()}
        return f"{group.state_name}, generation {group.generation}, members {list(group.members)}, offsets {offsets}"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    teller, told = Teller(), []
    text = path.read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("> "):
            told += [line, *(f"    {said}" for said in teller.play(line[2:]))]
        elif not line.startswith("    "):
            told.append(line)
    retold = "\n".join(told) + "\n"
    if os.environ.get("REWRITE_STORIES"):
        path.write_text(retold, encoding="utf-8")
    assert retold == text
