"""Reasons of failures, as a state shows them."""

from __future__ import annotations

import pytest

from barnabas.engine.reasons import MOST_CHARACTERS, one_line, reason_of_view
from barnabas.pipelines.data_loss import DataLoss

SPARK = """[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform latestOffset: \
Traceback (most recent call last):
  File "/usr/lib/pyspark/runner.py", line 281, in main
    latest(reader, infile, outfile)
             ^^^^^^^^^^^^^^^^^^^^^^
{}
 SQLSTATE: 38000
=== Streaming Query ===
Identifier: sold [id = e38856b9]
"""


@pytest.mark.parametrize(
    ("raised", "line"),
    [
        ("barnabas.errors.KafkaError: topic orders: it is unknown", "topic orders: it is unknown"),
        ("ValueError: 7 is too much", "ValueError: 7 is too much"),
        ("duckdb.IOException: no space\\nleft", "IOException: no space left"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        (
            "ValueError: first\\n\\nDuring handling of the above exception, another exception occurred:\\n\\n"
            'Traceback (most recent call last):\\n  File "x.py", line 1, in f\\n    f()\\nOSError: the second',
            "OSError: the second",
        ),
    ],
)
def test_an_error_that_spark_passes_on(raised: str, line: str) -> None:
    assert one_line(RuntimeError(SPARK.format(raised.replace("\\n", "\n")))) == line


def test_other_errors() -> None:
    assert one_line(ValueError("a\n  b")) == "a b"
    assert one_line(ValueError()) == "ValueError"
    assert len(one_line(ValueError("x" * 5_000))) == MOST_CHARACTERS + 1
    assert one_line(ValueError("Traceback (most recent call last):\n")) == "Traceback (most recent call last):"


def test_records_that_are_gone_under_a_view() -> None:
    lost = DataLoss("Topic orders was deleted and created again.")
    for error in (lost, RuntimeError(SPARK.format(f"barnabas.pipelines.data_loss.DataLoss: {lost}"))):
        assert reason_of_view(error, "sold") == (
            "Topic orders was deleted and created again. `barnabas job restart sold --rebuild` computes it again from what is there"
        )
    assert reason_of_view(ValueError("other"), "sold") == "other"
