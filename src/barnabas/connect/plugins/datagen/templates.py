"""The kinds of records that datagen makes up, by the names of Confluent's quickstarts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

Row = Mapping[str, Any]
BEGUN_MS = 1_487_715_775_521  # the least of the times that are made up
SPAN_MS = 32_000_000_000


class Template(NamedTuple):
    """A kind of records.

    Args:
        key: the field that is the key.
        make: a row from chance and its number.
    """

    key: str
    make: Callable[[Random, int], Row]


def _time(chance: Random) -> int:
    return BEGUN_MS + chance.randrange(SPAN_MS)


def _user(chance: Random, _number: int) -> Row:
    return {
        "registertime": _time(chance),
        "userid": f"User_{chance.randint(1, 9)}",
        "regionid": f"Region_{chance.randint(1, 9)}",
        "gender": chance.choice(("MALE", "FEMALE", "OTHER")),
    }


def _pageview(chance: Random, number: int) -> Row:
    return {"viewtime": 1 + 10 * number, "userid": f"User_{chance.randint(1, 9)}", "pageid": f"Page_{chance.randint(10, 99)}"}


def _order(chance: Random, number: int) -> Row:
    address = {
        "city": f"City_{chance.randint(1, 99)}",
        "state": f"State_{chance.randint(1, 99)}",
        "zipcode": chance.randint(10_000, 99_999),
    }
    return {
        "ordertime": _time(chance), "orderid": number, "itemid": f"Item_{chance.randint(1, 999)}",
        "orderunits": round(chance.uniform(0.1, 10.0), 4), "address": address,
    }  # fmt: skip


def _trade(chance: Random, _number: int) -> Row:
    return {
        "side": chance.choice(("BUY", "SELL")), "quantity": chance.randint(1, 5000), "symbol": f"Z{chance.choice('BJTVXWY')}ZT",
        "price": chance.randint(5, 1000), "account": f"{chance.choice('ABCLX')}{chance.choice('BCMYZ')}{chance.randint(100, 999)}",
        "userid": f"User_{chance.randint(1, 9)}",
    }  # fmt: skip


def _stock(chance: Random, number: int) -> Row:
    return {"id": number, "quantity": chance.randint(1, 99), "productid": chance.randint(1, 9)}


def _rating(chance: Random, number: int) -> Row:
    return {
        "rating_id": number + 1, "user_id": chance.randint(0, 19), "stars": chance.randint(1, 5),
        "route_id": chance.randint(1, 9999), "rating_time": 12 * number + 1, "channel": chance.choice(("web", "ios", "android")),
        "message": chance.choice(("worth the price", "late, and nobody said so", "friendly staff", "the seat was small")),
    }  # fmt: skip


TEMPLATES = {
    "users": Template("userid", _user),
    "pageviews": Template("viewtime", _pageview),
    "orders": Template("orderid", _order),
    "stock_trades": Template("symbol", _trade),
    "inventory": Template("id", _stock),
    "ratings": Template("rating_id", _rating),
}
