"""SQL over topics, without Spark: statements, sessions, and the ways to reach them (HTTP, the Postgres protocol, a shell).

The rooms: `interface` is the seam between a session and the ways to reach it.
"""
