"""What Spark's own `kafka` connector takes and refuses, recorded, and ours beside it."""
