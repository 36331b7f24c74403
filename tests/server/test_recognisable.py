"""Every field of a Produce and a Fetch request has a treatment by each fast path."""

from __future__ import annotations

from typing import ClassVar

import pytest

from barnabas.protocol.base_message import FieldSpec, Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest
from barnabas.protocol.produce import ProduceHead
from barnabas.server.fastpath.fields import Treatment, Treatments, unconsidered
from barnabas.server.fetching import recognisable as fetching
from barnabas.server.producing import recognisable as producing

FAST_PATHS = [
    pytest.param(ProduceRequest, producing.ONE_PARTITION, id="produce-one-partition"),
    pytest.param(ProduceRequest, producing.SEVERAL_PARTITIONS, id="produce-several-partitions"),
    pytest.param(FetchRequest, fetching.WITHOUT_SESSION, id="fetch-without-session"),
    pytest.param(FetchRequest, fetching.IN_SESSION, id="fetch-in-session"),
]


@pytest.mark.parametrize(("request_class", "treatments"), FAST_PATHS)
def test_each_field_of_the_request_is_considered(request_class: type[Message], treatments: Treatments) -> None:
    assert unconsidered(request_class, treatments) == set()


def test_the_head_of_produce_has_the_fields_of_the_request() -> None:
    names = {"topic_data" if name == "topics" else name for name in ProduceHead._fields}
    assert names == {field.name for field in ProduceRequest.FIELDS}


class _Grown(Message):
    """A request with one more field, at the top and in a message within."""

    class Part(Message):
        FIELDS: ClassVar[tuple[FieldSpec, ...]] = (*PartitionProduceData.FIELDS, FieldSpec("deep", "int8"))

    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("acks", "int16"),
        FieldSpec("more", "int8"),
        FieldSpec("parts", "struct", is_array=True, item=Part),
    )


def test_a_field_that_nobody_considered_is_found_and_so_is_one_that_is_gone() -> None:
    treatments = {
        _Grown: dict.fromkeys(("acks", "parts", "gone"), Treatment.SAME),
        _Grown.Part: dict.fromkeys(("index", "records"), Treatment.READ),
        PartitionProduceData: {},
    }
    assert unconsidered(_Grown, treatments) == {"_Grown.more", "_Grown.gone", "Part.deep", "PartitionProduceData"}
