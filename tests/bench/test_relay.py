"""The minimal programs beside delays and starts: a loop that only passes on, and an interpreter that only listens."""

from __future__ import annotations

import socket

import pytest
from bench.interpreter import Interpreter
from bench.peers.kafka_protocol import end_to_end
from bench.peers.peer import Message, Pace
from bench.peers.process import resident_mb
from bench.relay import Relay
from bench.suite.kreps import relayed


@pytest.mark.parametrize(("topics", "partitions"), [(["only"], 1), (["one", "two"], 3)])
def test_a_consumer_gets_every_message_once_and_in_order(topics: list[str], partitions: int) -> None:
    with Relay() as loop:
        found = end_to_end(loop.address, topics, Message(100, 1, 1), Pace(2_000, 0.1, 0.05), partitions=partitions)
    assert len(found.consumed) == 200
    assert 0 < found.consumed[0] <= found.consumed[-1]


def test_what_is_relayed_has_the_figures_of_a_system() -> None:
    figures = relayed(["topic"], Message(1_000, 1, 1), Pace(1_000, 0.1))
    assert figures["messages"] == 100
    assert 0 < figures["p50"] <= figures["p99"] == figures["value"] <= figures["max"]
    assert figures["peak_mb"] > 1


def test_an_interpreter_says_when_it_listens_and_repeats() -> None:
    with Interpreter() as least:
        assert least.ready_after_s > 0
        assert resident_mb([least.pid]) > 1
        with socket.create_connection(least.address) as line:
            line.sendall(b"again")
            assert line.recv(5) == b"again"
