"""One Spark session for the tests of connectors that work with it."""

from __future__ import annotations

from tests.pipelines.conftest import _pandas_warning as _pandas_warning
from tests.pipelines.conftest import spark as spark
