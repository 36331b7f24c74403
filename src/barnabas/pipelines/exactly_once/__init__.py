"""Writing exactly once: tasks prepare transactions; the driver decides which of them to commit, and ends them.

Reading order: `state` (the record of a sink), `protocol` (the steps of driver and tasks, without I/O), `executor` (executes the
steps with the wire client). `docs/exactly-once.md` has the guarantees.
"""
