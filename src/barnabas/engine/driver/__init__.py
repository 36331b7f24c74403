"""The driver: one Spark session that runs the jobs of an engine."""
