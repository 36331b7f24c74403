"""The events of the auction house.

Of fifty events in a row the first is a person, the next three are auctions, and the others are bids. Events are numbered, and their time
follows from the number, so that the same numbers are the same events for everybody.

Half of the bids are for the newest hot auction (each hundredth), three of four by a hot bidder, and three of four auctions are of a hot
seller; all others are drawn from what is active. Prices are spread evenly over six decimal orders of magnitude.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

PERSONS, AUCTIONS, BIDS = 1, 3, 46
CYCLE = PERSONS + AUCTIONS + BIDS
FIRST_ID = 1_000  # of persons and of auctions
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PERSONS, AUCTIONS_IN_FLIGHT = 1_000, 100
LEAD = 10  # ids that do not exist yet, and may be named already
HOT_STEP = 100
HOT_SELLERS, HOT_BIDDERS, HOT_AUCTIONS = 4, 4, 2  # all but one of so many are hot
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100  # of an event, on average
FIRST_MS = 1_436_918_400_000  # 2015-07-15T00:00:00Z
EVENTS_PER_S = 10_000
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne")
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Event(NamedTuple):
    """`stream` is person, auction or bid; `at_ms` is the time of the event since 1970."""

    stream: str
    at_ms: int
    row: dict[str, Any]


def events(count: int, seed: int = 1) -> Iterator[Event]:
    """The first events.

    Args:
        seed: of everything that is drawn.
    """
    draw = random.Random(seed)
    for number in range(count):
        at_ms = time_of(number)
        place = number % CYCLE
        if place < PERSONS:
            yield Event("person", at_ms, _person(draw, number, at_ms))
        elif place < PERSONS + AUCTIONS:
            yield Event("auction", at_ms, _auction(draw, number, at_ms))
        else:
            yield Event("bid", at_ms, _bid(draw, number, at_ms))


def time_of(number: int) -> int:
    """The time of an event, in ms since 1970."""
    return FIRST_MS + number * 1_000 // EVENTS_PER_S


def _last_person(number: int) -> int:
    """How many persons there are before or at an event, less one."""
    return number // CYCLE


def _last_auction(number: int) -> int:
    cycle, place = divmod(number, CYCLE)
    if place < PERSONS:
        return cycle * AUCTIONS - 1
    return cycle * AUCTIONS + min(place - PERSONS, AUCTIONS - 1)


def _a_person(draw: random.Random, number: int) -> int:
    """One of the persons that are active, or of those to come."""
    there = _last_person(number) + 1
    active = min(there, ACTIVE_PERSONS)
    return there - active + draw.randrange(active + LEAD)


def _an_auction(draw: random.Random, number: int) -> int:
    last = max(_last_auction(number), 0)
    first = max(last - AUCTIONS_IN_FLIGHT, 0)
    return first + draw.randrange(last - first + 1 + LEAD)


def _is_hot(draw: random.Random, ratio: int) -> bool:
    return draw.randrange(ratio) > 0


def _person(draw: random.Random, number: int, at_ms: int) -> dict[str, Any]:
    row = {
        "id": _last_person(number) + FIRST_ID,
        "name": f"{draw.choice(FIRST_NAMES)} {draw.choice(LAST_NAMES)}",
        "email_address": f"{_text(draw, 7)}@{_text(draw, 5)}.com",
        "credit_card": " ".join(f"{draw.randrange(10_000):04}" for _ in range(4)),
        "city": draw.choice(CITIES),
        "state": draw.choice(STATES),
    }
    return _finished(draw, row, at_ms, PERSON_BYTES)


def _auction(draw: random.Random, number: int, at_ms: int) -> dict[str, Any]:
    seller = _last_person(number) // HOT_STEP * HOT_STEP if _is_hot(draw, HOT_SELLERS) else _a_person(draw, number)
    initial = _price(draw)
    row = {
        "id": _last_auction(number) + FIRST_ID,
        "item_name": _text(draw, 20),
        "description": _text(draw, 100),
        "initial_bid": initial,
        "reserve": initial + _price(draw),
        "expires": _iso(at_ms + _length_ms(draw, number, at_ms)),
        "seller": seller + FIRST_ID,
        "category": FIRST_CATEGORY + draw.randrange(CATEGORIES),
    }
    return _finished(draw, row, at_ms, AUCTION_BYTES)


def _length_ms(draw: random.Random, number: int, at_ms: int) -> int:
    """How long an auction is open: on average, until as many auctions as are in flight have come."""
    ahead_ms = time_of(number + AUCTIONS_IN_FLIGHT * CYCLE // AUCTIONS) - at_ms
    return 1 + draw.randrange(max(ahead_ms * 2, 1))


def _bid(draw: random.Random, number: int, at_ms: int) -> dict[str, Any]:
    is_hot = _is_hot(draw, HOT_AUCTIONS)
    auction = max(_last_auction(number), 0) // HOT_STEP * HOT_STEP if is_hot else _an_auction(draw, number)
    bidder = _last_person(number) // HOT_STEP * HOT_STEP + 1 if _is_hot(draw, HOT_BIDDERS) else _a_person(draw, number)
    channel, url = _channel(draw)
    row = {"auction": auction + FIRST_ID, "bidder": bidder + FIRST_ID, "price": _price(draw), "channel": channel, "url": url}
    return _finished(draw, row, at_ms, BID_BYTES)


def _channel(draw: random.Random) -> tuple[str, str]:
    if _is_hot(draw, 2):
        name = draw.choice(HOT_CHANNELS)
        return name, _url(name, HOT_CHANNELS.index(name))
    number = draw.randrange(CHANNELS)
    return f"channel-{number}", _url(f"channel-{number}", number)


@cache
def _url(channel: str, number: int) -> str:
    """The page of a channel, the same each time; one channel of ten has no id."""
    fixed = random.Random(channel)
    page = f"https://www.nexmark.com/{_text(fixed, 5)}/{_text(fixed, 5)}/{_text(fixed, 5)}/item.htm?query=1"
    return page if fixed.random() < 0.1 else f"{page}&channel_id={number}"


def _price(draw: random.Random) -> int:
    """In cents."""
    return round(10 ** (draw.random() * 6) * 100)


def _finished(draw: random.Random, row: dict[str, Any], at_ms: int, average: int) -> dict[str, Any]:
    """The row with its time, and with as much other text as makes up its average size, more or less a fifth."""
    size = sum(len(each) if isinstance(each, str) else 8 for each in row.values()) + 8
    left = max(average - size, 0)
    around = left // 5
    return {**row, "date_time": _iso(at_ms), "extra": _text(draw, left - around + draw.randrange(2 * around + 1) if left else 0)}


def _text(draw: random.Random, length: int) -> str:
    return "".join(draw.choices(LETTERS, k=length))


def _iso(at_ms: int) -> str:
    """A time in UTC, as records have it."""
    return dt.datetime.fromtimestamp(at_ms / 1_000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1_000:03}"
