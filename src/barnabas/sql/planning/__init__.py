"""From the tree of a statement to what DuckDB runs; no I/O."""
