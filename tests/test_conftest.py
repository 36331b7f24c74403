"""The rules of `conftest.py` for files of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import uses_kafka_python


@pytest.mark.parametrize(
    ("line", "is_used"),
    [
        ("from kafka import KafkaProducer", True),
        ("from kafka.admin import NewTopic", True),
        ("import kafka", True),
        ("import kafka.errors as errors", True),
        ("def test() -> None:\n    from kafka import errors", True),
        ("from kafkaesque import Trial", False),
        ("from confluent_kafka import Producer", False),
        ("from tools.kafka import java", False),
        ("# import kafka", False),
    ],
)
def test_every_import_of_kafka_python_is_found(line: str, is_used: bool, tmp_path: Path) -> None:
    path = tmp_path / "test_file.py"
    path.write_text(f'"""A file."""\n\n{line}\n')
    assert uses_kafka_python(path) is is_used
