"""Writing exactly once: tasks prepare transactions, the driver decides about them and ends them.

Reading order: `state` (what is recorded of a sink), `protocol` (who does what in which order, without I/O), `executor` (the same over the
wire client). `docs/exactly-once.md` says what is promised.
"""
