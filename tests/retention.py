"""Settings for brokers that several tests share and that get records with fixed timestamps, years ago.

The first check of retention, 30 s after the start, removes such records. Whether a test is still reading them then depends on the load and
on the random order of the tests.
"""

from __future__ import annotations

DAY_MS = "86400000"
NO_RETENTION_CHECKS = {"log.initial.task.delay.ms": DAY_MS, "log.retention.check.interval.ms": DAY_MS}
