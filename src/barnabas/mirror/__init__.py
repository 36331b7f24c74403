"""Copies of topics of other clusters: decisions without I/O; `server/mirroring/` fetches and writes."""
