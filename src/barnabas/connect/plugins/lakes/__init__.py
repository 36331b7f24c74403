"""What the sinks of lake tables have in common: rows of records, gathered for commits of a table, each of them once."""
