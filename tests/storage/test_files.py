"""The real file system against the conformance suite."""

from __future__ import annotations

import pytest

from barnabas.storage.files import Files, OsFiles
from barnabas.testing.conformance_files import FilesConformance


class TestOsFiles(FilesConformance):
    @pytest.fixture
    def files(self) -> Files:
        return OsFiles()
