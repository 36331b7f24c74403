"""Tests for every implementation of `storage.files.Files`: subclass `FilesConformance` in a test and give it a `files` fixture.

class TestMyFiles(FilesConformance):
    @pytest.fixture
    def files(self) -> Files: ...
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.storage.files import Files, write_all


class FilesConformance:
    """The tests; pytest's `tmp_path` is the folder they work in."""

    def test_what_is_written_at_a_position_is_read_there(self, files: Files, tmp_path: Path) -> None:
        fileno = files.open(tmp_path / "a", create=True)
        assert files.pwrite(fileno, b"hello", 0) == 5
        assert files.pwritev(fileno, [b"wor", memoryview(b"ld")], 5) == 5
        assert files.pread(fileno, 100, 3) == b"loworld"
        assert files.pread(fileno, 2, 0) == b"he"
        assert files.pread(fileno, 2, 10) == b""
        assert files.size(fileno) == files.file_size(tmp_path / "a") == 10
        files.close(fileno)

    def test_writing_again_replaces(self, files: Files, tmp_path: Path) -> None:
        fileno = files.open(tmp_path / "a", create=True)
        write_all(files, fileno, b"abcdef", 0)
        write_all(files, fileno, b"XY", 2)
        assert files.pread(fileno, 10, 0) == b"abXYef"
        files.truncate(fileno, 3)
        assert files.pread(fileno, 10, 0) == b"abX"
        files.sync(fileno)
        files.close(fileno)

    def test_reserving_changes_neither_size_nor_bytes(self, files: Files, tmp_path: Path) -> None:
        fileno = files.open(tmp_path / "a", create=True)
        write_all(files, fileno, b"abc", 0)
        with suppress(OSError):  # some file systems cannot reserve space
            files.reserve(fileno, 3, 100_000)
        assert files.size(fileno) == files.file_size(tmp_path / "a") == 3
        write_all(files, fileno, b"def", 3)
        files.truncate(fileno, 6)
        assert files.pread(fileno, 10, 0) == b"abcdef"
        files.close(fileno)

    def test_opening_keeps_what_is_there(self, files: Files, tmp_path: Path) -> None:
        files.replace_file(tmp_path / "a", b"kept")
        fileno = files.open(tmp_path / "a", create=True)
        assert files.pread(fileno, 10, 0) == b"kept"
        files.close(fileno)

    def test_a_missing_file_is_an_error(self, files: Files, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            files.open(tmp_path / "none")
        with pytest.raises(FileNotFoundError):
            files.read_file(tmp_path / "none")
        assert not files.exists(tmp_path / "none")

    def test_a_write_changes_when_a_file_was_written_to(self, files: Files, tmp_path: Path) -> None:
        fileno = files.open(tmp_path / "a", create=True)
        made_ms = files.modified_ms(tmp_path / "a")
        write_all(files, fileno, b"abc", 0)
        written_ms = files.modified_ms(tmp_path / "a")
        files.pread(fileno, 3, 0)
        assert made_ms <= written_ms == files.modified_ms(tmp_path / "a")
        files.close(fileno)
        with pytest.raises(FileNotFoundError):
            files.modified_ms(tmp_path / "none")

    def test_replacing_leaves_one_file_with_the_new_bytes(self, files: Files, tmp_path: Path) -> None:
        for data, sync in ((b"old", True), (b"newer", False), (b"", True)):
            files.replace_file(tmp_path / "a", data, sync=sync)
            assert files.read_file(tmp_path / "a") == data
        assert files.list_directory(tmp_path) == ["a"]

    def test_names_come_sorted_and_can_be_moved_and_removed(self, files: Files, tmp_path: Path) -> None:
        for name in ("b", "a", "c"):
            files.replace_file(tmp_path / name, name.encode())
        files.rename(tmp_path / "a", tmp_path / "b")
        assert files.list_directory(tmp_path) == ["b", "c"]
        assert files.read_file(tmp_path / "b") == b"a"
        files.unlink(tmp_path / "c")
        files.unlink(tmp_path / "c")
        assert files.list_directory(tmp_path) == ["b"]
        files.sync_directory(tmp_path)

    def test_folders_are_made_moved_and_removed(self, files: Files, tmp_path: Path) -> None:
        files.make_directory(tmp_path / "x" / "y")
        files.make_directory(tmp_path / "x" / "y")
        files.replace_file(tmp_path / "x" / "y" / "file", b"1")
        files.rename(tmp_path / "x" / "y", tmp_path / "z")
        assert files.read_file(tmp_path / "z" / "file") == b"1"
        assert [files.is_directory(tmp_path / name) for name in ("z", "z/file", "none")] == [True, False, False]
        with pytest.raises(OSError, match="not empty"):
            files.remove_directory(tmp_path / "z")
        files.unlink(tmp_path / "z" / "file")
        files.remove_directory(tmp_path / "z")
        assert files.list_directory(tmp_path) == ["x"]

    def test_a_descriptor_outlives_its_name(self, files: Files, tmp_path: Path) -> None:
        fileno = files.open(tmp_path / "a", create=True)
        files.pwrite(fileno, b"still", 0)
        files.rename(tmp_path / "a", tmp_path / "b")
        files.unlink(tmp_path / "b")
        assert files.pread(fileno, 10, 0) == b"still"
        files.close(fileno)

    def test_a_lock_is_held_by_one_until_closed(self, files: Files, tmp_path: Path) -> None:
        first = files.lock(tmp_path / ".lock")
        assert first is not None
        assert files.lock(tmp_path / ".lock") is None
        files.close(first)
        again = files.lock(tmp_path / ".lock")
        assert again is not None
        files.close(again)
