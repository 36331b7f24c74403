"""The tables and the queries of Nexmark."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TABLES = {
    "person": "id bigint, name text, email_address text, credit_card text, city text, state text, date_time timestamp, extra text",
    "auction": "id bigint, item_name text, description text, initial_bid bigint, reserve bigint, expires timestamp, seller bigint,"
    " category bigint, date_time timestamp, extra text",
    "bid": "auction bigint, bidder bigint, price bigint, channel text, url text, date_time timestamp, extra text",
}
_QUERY = re.compile(r"^-- (q\d+)\n(.*?);$", re.MULTILINE | re.DOTALL)


@cache
def queries() -> dict[str, str]:
    """By name, in their order."""
    return dict(_QUERY.findall(Path(__file__).with_name("queries.sql").read_text()))
