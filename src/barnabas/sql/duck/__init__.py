"""DuckDB: its instances, its types, the run of a query. Only here: duckdb's connections."""
