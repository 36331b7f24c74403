"""Writing exactly once: tasks prepare transactions; the driver decides which to commit, and ends them.

Reading order: `state` (the record of a sink), `protocol` (the steps of driver and tasks, without I/O), `executor` (the same
over the wire client). `docs/exactly-once.md` has the guarantees.
"""
