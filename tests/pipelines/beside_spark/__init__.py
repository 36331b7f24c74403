"""Options that Spark's own `kafka` connector accepts and refuses, as recorded, compared with ours."""
