"""Functions of SQL that DuckDB lacks, for queries and for the plans of views."""

from pathlib import Path

MACROS = Path(__file__).with_name("macros.sql").read_text()
