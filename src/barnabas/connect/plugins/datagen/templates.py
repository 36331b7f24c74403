"""The kinds of records that datagen makes up, by the names of Confluent's quickstarts: the same fields and types, with values of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from barnabas.connect.plugins.datagen.avro_rows import PROPERTIES, Record, record_of

BEGUN_MS, SPAN_MS = 1_487_715_775_521, 32_000_000_000  # the least of the times that are made up, and how far they go
SHOP_MS = 1_609_459_200_000
Kind = Mapping[str, Any]


class Template(NamedTuple):
    """A kind of records.

    Args:
        key: the field that is the key.
        name: that of the schema.
        fields: their types in Avro.
    """

    key: str
    name: str
    fields: Mapping[str, Kind]


def _made(kind: str, **properties: Any) -> Kind:
    return {"type": kind, PROPERTIES: properties}


def _number(kind: str, least: float, behind: float) -> Kind:
    return _made(kind, range={"min": least, "max": behind})


def _count(kind: str, start: int, step: int = 1) -> Kind:
    return _made(kind, iteration={"start": start, "step": step})


def _text(pattern: str) -> Kind:
    return _made("string", regex=pattern)


def _one_of(*texts: str) -> Kind:
    return _made("string", options=list(texts))


def _record(name: str, /, **fields: Kind) -> Kind:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}


TIME = _number("long", BEGUN_MS, BEGUN_MS + SPAN_MS)
USER, REGION, ADDRESS = _text("User_[1-9]"), _text("Region_[1-9]"), _text("111\\.1[0-9]{2}\\.[1-9][0-9]\\.[1-9]")
FEW = {each: _text(f"{each}-0[0-3][0-9]") for each in ("product", "customer")}  # few, so that streams can be joined
SHOP_TIME = {**_count("long", SHOP_MS, 100_000), "logicalType": "timestamp-millis"}
NAME, SURNAME = _one_of("Ada", "Alan", "Edsger", "Grace", "Ken", "Niklaus"), _one_of("Hill", "Lake", "Marsh", "Ridge", "Vale")
AGENT = _one_of("Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0", "python-requests/2.32")
REQUEST = _one_of(
    "GET /index.html HTTP/1.1", "GET /images/logo.png HTTP/1.1", "GET /site/login.html HTTP/1.1", "GET /site/user_status.html HTTP/1.1"
)  # fmt: skip

TEMPLATES = {
    "users": Template(
        "userid", "ksql.users",
        {"registertime": TIME, "userid": USER, "regionid": REGION, "gender": _one_of("MALE", "FEMALE", "OTHER")},
    ),
    "users_array_map": Template(
        "userid", "ksql.users",
        {
            "registertime": TIME, "userid": USER, "regionid": REGION, "gender": _one_of("MALE", "FEMALE", "OTHER"),
            "interests": {"type": "array", "items": _one_of("Game", "Movies", "News", "Sport", "Travel"), PROPERTIES: {"length": 2}},
            "contactinfo": {
                "type": "map", "values": _text("[0-9]{9}"),
                PROPERTIES: {"length": 2, "keys": {"options": ["city", "phone", "state", "zipcode"]}},
            },
        },
    ),
    "pageviews": Template(
        "viewtime", "ksql.pageviews", {"viewtime": _count("long", 1, 10), "userid": USER, "pageid": _text("Page_[1-9][0-9]")},
    ),
    "orders": Template(
        "orderid", "ksql.orders",
        {
            "ordertime": TIME, "orderid": _count("int", 0), "itemid": _text("Item_[1-9][0-9]{0,2}"),
            "orderunits": _number("double", 0.1, 10.0),
            "address": _record(
                "address", city=_text("City_[1-9][0-9]?"), state=_text("State_[1-9][0-9]?"), zipcode=_number("long", 10_000, 100_000),
            ),
        },
    ),
    "stock_trades": Template(
        "symbol", "ksql.StockTrade",
        {
            "side": _one_of("BUY", "SELL"), "quantity": _number("int", 1, 5001), "symbol": _text("Z[BJTVXWY]ZT"),
            "price": _number("int", 5, 1001), "account": _text("[ABCLX][BCMYZ][1-9][0-9]{2}"), "userid": USER,
        },
    ),
    "inventory": Template(
        "id", "ksql.inventory",
        {"id": _count("long", 0), "quantity": _number("long", 1, 100), "productid": _number("long", 1, 10)},
    ),
    "product": Template(
        "id", "ksql.product",
        {
            "id": _count("long", 0), "name": _one_of("bowl", "cup", "lamp", "plate", "spoon"), "description": _count("string", 0),
            "price": _number("long", 2, 20),
        },
    ),
    "purchases": Template(
        "id", "ksql.purchase",
        {
            "id": _count("long", 0), "quantity": _number("long", 1, 20), "productid": _count("long", 0),
            "total": _number("long", 5, 500),
        },
    ),
    "ratings": Template(
        "rating_id", "ksql.ratings",
        {
            "rating_id": _count("long", 1), "user_id": _number("int", 0, 20), "stars": _number("int", 1, 6),
            "route_id": _number("int", 1, 10_000), "rating_time": _count("long", 1, 12), "channel": _one_of("web", "ios", "android"),
            "message": _one_of("worth the price", "late, and nobody said so", "friendly staff", "the seat was small"),
        },
    ),
    "transactions": Template(
        "transaction_id", "datagen.example.transactions",
        {
            "transaction_id": _count("long", 1), "card_id": _number("long", 1, 24), "user_id": USER, "purchase_id": _count("long", 0),
            "store_id": _number("int", 1, 7),
        },
    ),
    "stores": Template(
        "store_id", "datagen.example.stores",
        {"store_id": _number("int", 1, 8), "city": _text("City_[1-9]"), "country": _one_of("CH", "FR", "IT", "UK", "US")},
    ),
    "credit_cards": Template(
        "card_id", "datagen.example.users",
        {
            "card_id": _number("int", 1, 26), "card_number": _number("long", 4_000_000_000_000_000, 4_000_000_001_000_000),
            "cvv": _number("int", 100, 1000), "expiration_date": _text("(0[1-9]|1[0-2])/3[0-9]"),
        },
    ),
    "clickstream": Template(
        "ip", "clickstream.clickstream",
        {
            "ip": ADDRESS, "userid": _number("int", 1, 40), "remote_user": _one_of("-"), "time": _count("string", 1, 10),
            "_time": _count("long", 1, 10), "request": REQUEST, "status": _one_of("200", "302", "404", "405", "406", "407"),
            "bytes": _one_of("278", "1289", "2048", "4006", "4196", "14096"), "referrer": _one_of("-"), "agent": AGENT,
        },
    ),
    "clickstream_codes": Template(
        "code", "clickstream.codes",
        {
            "code": _made("int", options=[200, 302, 404, 405, 406, 407]),
            "definition": _one_of("Found", "Method not allowed", "Not acceptable", "Page not found", "Redirect", "Successful"),
        },
    ),
    "clickstream_users": Template(
        "user_id", "clickstream.users",
        {
            "user_id": _made("int", iteration={"start": 1, "restart": 40}), "username": _text("[a-z]{6}_[1-9][0-9]"),
            "registered_at": TIME, "first_name": NAME, "last_name": SURNAME, "city": _text("City_[1-9]"),
            "level": _one_of("Gold", "Platinum", "Silver"),
        },
    ),
    "shoes": Template(
        "id", "shoes.shoes",
        {
            "id": FEW["product"], "brand": _one_of("Alder", "Birch", "Cedar"), "name": _text("(Run|Trail|Walk) Max [1-9]{3}"),
            "sale_price": _number("int", 4995, 19_995), "rating": _number("double", 0.0, 5.0),
        },
    ),
    "shoe_customers": Template(
        "id", "shoes.shoe_customers",
        {
            "id": FEW["customer"], "first_name": NAME, "last_name": SURNAME, "email": _text("[a-z]{5}@example\\.(com|net|org)"),
            "phone": _text("555-01[0-9]{2}"), "street_address": _text("[1-9][0-9]? (Church|High|Mill) Street"),
            "state": _text("State_[1-9]"), "zip_code": _text("[1-9][0-9]{4}"), "country": _one_of("United States"),
            "country_code": _one_of("US"),
        },
    ),
    "shoe_orders": Template(
        "order_id", "shoes.shoe_orders",
        {"order_id": _count("int", 1000), "product_id": FEW["product"], "customer_id": FEW["customer"], "ts": SHOP_TIME},
    ),
    "shoe_clickstream": Template(
        "product_id", "shoes.shoe_clickstream",
        {
            "product_id": FEW["product"], "user_id": FEW["customer"], "view_time": _number("int", 10, 120),
            "page_url": _text("https://shop\\.example/product/[a-z]{5}"), "ip": ADDRESS, "ts": SHOP_TIME,
        },
    ),
}  # fmt: skip


@cache
def record(name: str) -> Record:
    """What makes the rows of a kind."""
    template = TEMPLATES[name]
    return record_of(json.dumps(_record(template.name, **template.fields)))
