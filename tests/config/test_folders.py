"""Folders of `log.dirs`, and files of settings with their names in them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.config.broker import BrokerConfig
from barnabas.config.folders import why_not
from barnabas.config.properties import MOST_BYTES, format_properties, parse_properties_file, read_properties_file
from barnabas.errors import ConfigError

NAMES = st.text(st.characters(exclude_characters="\0"), max_size=20)


@given(NAMES)
@example("ü 😀")
@example("\\#=:!%$'\"\n ${env:HOME} -x")
def test_log_dirs_is_the_folder_that_was_named(name: str) -> None:
    if why_not(name) is None:
        config, _ = BrokerConfig.from_properties({"log.dirs": name})
        assert config.log_dirs == (name,)
        assert os.fsencode(name).decode() == name


@pytest.mark.parametrize("name", ["", "a,b", " a", "a\n", "\u2003a", "\udcff", "a\ud83d"])
def test_a_folder_that_log_dirs_cannot_name_is_known(name: str) -> None:
    assert why_not(name) is not None


@pytest.mark.parametrize("text", ["", ",", "a,", "a,,b", "a,a", "a,./a"])
def test_log_dirs_that_name_no_folder_or_one_twice_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs"):
        BrokerConfig.from_properties({"log.dirs": text})


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_what_is_written_is_read_back_in_either_encoding(properties: dict[str, str]) -> None:
    text = format_properties(properties)
    assert text.isascii()
    assert parse_properties_file(text) == properties


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1"])
def test_a_file_is_read_as_utf_8_or_else_as_java_does(tmp_path: Path, encoding: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes("log.dirs=/data/ü\nnode.id=1\n".encode(encoding))
    with caplog.at_level(logging.WARNING):
        assert read_properties_file(path) == {"log.dirs": "/data/ü", "node.id": "1"}
    assert ("event=file-read-as-iso-latin" in caplog.text) == (encoding == "iso-8859-1")


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(ConfigError, match=str(MOST_BYTES)):
        read_properties_file("/dev/zero")
