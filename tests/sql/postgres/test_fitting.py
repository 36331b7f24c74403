"""Types of parameters that fit their values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from barnabas.sql.postgres.fitting import fitted

NUMERIC = pa.decimal128(38, 18)


@pytest.mark.parametrize(
    ("given", "value", "found"),
    [
        (NUMERIC, Decimal("1.5"), NUMERIC),
        (NUMERIC, Decimal("0"), NUMERIC),
        (NUMERIC, Decimal("0." + "1" * 20), pa.decimal128(38, 20)),
        (NUMERIC, Decimal("1" * 25), pa.decimal128(38, 13)),
        (NUMERIC, Decimal("1E+37"), pa.decimal128(38, 0)),
        (NUMERIC, Decimal("1E+60"), pa.decimal128(38, 0)),
        (NUMERIC, Decimal("1E-60"), pa.decimal128(38, 38)),
        (NUMERIC, Decimal("NaN"), NUMERIC),
        (NUMERIC, None, NUMERIC),
        (None, Decimal("1E-60"), None),
        (pa.list_(pa.int32()), [1, 2], pa.list_(pa.int32())),
        (pa.list_(pa.int32()), [], pa.list_(pa.int32())),
        (pa.list_(pa.int32()), [None, [1]], pa.list_(pa.list_(pa.int32()))),
        (pa.list_(pa.int32()), [[[1]]], pa.list_(pa.list_(pa.list_(pa.int32())))),
        (pa.list_(NUMERIC), [[Decimal("0." + "1" * 20)]], pa.list_(pa.list_(pa.decimal128(38, 20)))),
    ],
)
def test_a_type_fits_its_value(given: Any, value: Any, found: Any) -> None:
    assert fitted([given], [value]) == (None if found == given else [found])
    assert fitted([pa.int32(), given, None], [1, value]) == (None if found == given else [pa.int32(), found, None])
