-- What every instance knows beside DuckDB's own functions. `__nonzero` is the divisor of `/`: division by zero is an error.
CREATE MACRO __nonzero(b) AS CASE WHEN b = 0 THEN error('Division by zero') ELSE b END;

-- `/` as Postgres has it: whole numbers give a whole number.
CREATE MACRO __div(a INTEGER, b INTEGER) AS a // b,
  (a INTEGER, b BIGINT) AS a // b,
  (a INTEGER, b HUGEINT) AS a // b,
  (a BIGINT, b INTEGER) AS a // b,
  (a BIGINT, b BIGINT) AS a // b,
  (a BIGINT, b HUGEINT) AS a // b,
  (a HUGEINT, b INTEGER) AS a // b,
  (a HUGEINT, b BIGINT) AS a // b,
  (a HUGEINT, b HUGEINT) AS a // b,
  (a DOUBLE, b DOUBLE) AS a / __nonzero(b),
  (a DECIMAL, b DECIMAL) AS a / __nonzero(b),
  (a REAL, b REAL) AS a / __nonzero(b),
  (a INTERVAL, b DOUBLE) AS a / __nonzero(b);
