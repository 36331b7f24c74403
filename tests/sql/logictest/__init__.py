"""Files of the format sqllogictest, run over the Postgres protocol; `parsing` says what is read, `running` what passes."""

from __future__ import annotations

from tests.sql.logictest.parsing import Record, records_of
from tests.sql.logictest.running import Outcome, run

__all__ = ["Outcome", "Record", "records_of", "run"]
