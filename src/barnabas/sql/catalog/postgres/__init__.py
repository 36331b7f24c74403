"""The catalogue that Postgres' clients ask: `pg_catalog` and `information_schema`, made of the tables that the session can name.

The rows are made when a statement names a table of it. `types` has Postgres' types, `shapes` the columns of each table, `contents` the
rows, `functions` the functions that ask it.
"""
