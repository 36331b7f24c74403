-- What every instance knows beside DuckDB's own functions.
CREATE MACRO num_nonnulls(a) AS CASE WHEN a IS NULL THEN 0 ELSE 1 END;
