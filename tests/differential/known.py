"""The differences that stand, each with its reason; `docs/compatibility.md` shows this table (a test compares them).

An entry that covers no difference any more fails the test of its scenario: delete it then.
"""

from __future__ import annotations

from tests.differential.compare import Known

KNOWN: list[Known] = []
