"""Short runs of the fuzz targets, and the one property of framing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import campaign
from tests.fuzz.fuzz_frames import MAX_FRAME_BYTES, SIZE, expected, received, run_seeded
from tests.fuzz.requests import frames

SECONDS = 1.5


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


bodies = st.one_of(st.binary(max_size=300), st.binary(min_size=2, max_size=2).map(lambda unit: unit * 20_000))
framed = st.lists(bodies, max_size=8).map(lambda items: b"".join(SIZE.pack(len(item)) + item for item in items))
endings = st.one_of(st.binary(max_size=12), st.sampled_from([SIZE.pack(-1), SIZE.pack(MAX_FRAME_BYTES + 1), SIZE.pack(0)]))


@given(whole=framed, ending=endings, data=st.data())
def test_however_a_stream_is_cut_the_frames_are_the_same(
    loop: asyncio.AbstractEventLoop, whole: bytes, ending: bytes, data: st.DataObject
) -> None:
    stream = whole + ending
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    found, closed, held = received(stream, cuts, loop)
    assert (found, closed) == expected(stream)
    assert held <= len(stream) + 2**20


def test_an_unfinished_frame_holds_no_more_than_arrived_and_the_growth_allowed(loop: asyncio.AbstractEventLoop) -> None:
    stream = SIZE.pack(MAX_FRAME_BYTES) + b"x" * 10
    _, closed, held = received(stream, [5], loop)
    assert not closed
    assert held <= MAX_FRAME_BYTES + SIZE.size


def test_every_served_api_has_a_frame_to_damage() -> None:
    assert len(frames()) > 300


def test_damaged_requests_are_read_or_refused() -> None:
    assert run_seeded(SECONDS, seed=11) > 100


@pytest.mark.parametrize("guarded", [False, True])
def test_a_real_broker_survives_nonsense(guarded: bool) -> None:
    outcome = campaign.run(6_000, seed=11, guarded=guarded)
    assert outcome.answers > 200  # on a busy machine most answers come after the client has left
