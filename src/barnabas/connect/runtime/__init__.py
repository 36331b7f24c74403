"""Runs the tasks of connectors in the engine's driver."""
