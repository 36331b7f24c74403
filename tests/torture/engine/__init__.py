"""Kills of the engine of jobs, of its driver and of the broker, while jobs change."""
