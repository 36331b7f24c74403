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
  (a, b) AS a / __nonzero(b);

-- Functions of Postgres' catalogue whose answers never change here.
CREATE MACRO pg_table_is_visible(a) AS NOT (a > 13000 AND a < 16384); -- information_schema is not
CREATE MACRO pg_type_is_visible(a) AS true;
CREATE MACRO pg_function_is_visible(a) AS true;
CREATE MACRO pg_operator_is_visible(a) AS true;
CREATE MACRO pg_collation_is_visible(a) AS true;
CREATE MACRO pg_opclass_is_visible(a) AS true;
CREATE MACRO pg_ts_config_is_visible(a) AS true;
CREATE MACRO pg_statistics_obj_is_visible(a) AS true;
CREATE MACRO has_table_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_column_privilege(a, b, c) AS true, (a, b, c, d) AS true;
CREATE MACRO has_any_column_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_schema_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_database_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_sequence_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_function_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_tablespace_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_type_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO pg_has_role(a, b) AS true, (a, b, c) AS true;
CREATE MACRO row_security_active(a) AS false;
CREATE MACRO pg_is_in_recovery() AS false;
CREATE MACRO pg_is_other_temp_schema(a) AS false;
CREATE MACRO pg_my_temp_schema() AS 0;
CREATE MACRO pg_relation_is_publishable(a) AS false;
CREATE MACRO pg_relation_size(a) AS 0::BIGINT, (a, b) AS 0::BIGINT;
CREATE MACRO pg_total_relation_size(a) AS 0::BIGINT;
CREATE MACRO pg_table_size(a) AS 0::BIGINT;
CREATE MACRO pg_indexes_size(a) AS 0::BIGINT;
CREATE MACRO pg_database_size(a) AS 0::BIGINT;
CREATE MACRO pg_tablespace_size(a) AS 0::BIGINT;
CREATE MACRO pg_encoding_to_char(a) AS 'UTF8';
CREATE MACRO pg_char_to_encoding(a) AS 6;
CREATE MACRO pg_client_encoding() AS 'UTF8';
CREATE MACRO pg_get_viewdef(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO pg_get_ruledef(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO pg_get_triggerdef(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO pg_get_partkeydef(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_functiondef(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_result(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_arguments(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_identity_arguments(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_statisticsobjdef_columns(a) AS NULL::VARCHAR;
CREATE MACRO pg_tablespace_location(a) AS '';
CREATE MACRO shobj_description(a, b) AS NULL::VARCHAR;
CREATE MACRO pg_stat_get_numscans(a) AS 0::BIGINT;
CREATE MACRO pg_filenode_relation(a, b) AS 0::BIGINT;
CREATE MACRO pg_relation_filenode(a) AS 0::BIGINT;
CREATE MACRO pg_column_is_updatable(a, b, c) AS true;
CREATE MACRO pg_relation_is_updatable(a, b) AS 28;
CREATE MACRO inet_server_addr() AS NULL::VARCHAR;
CREATE MACRO inet_server_port() AS NULL::INTEGER;
CREATE MACRO inet_client_addr() AS NULL::VARCHAR;
CREATE MACRO inet_client_port() AS NULL::INTEGER;
CREATE MACRO pg_advisory_lock(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO pg_advisory_unlock(a) AS true, (a, b) AS true;
CREATE MACRO pg_try_advisory_lock(a) AS true, (a, b) AS true;
CREATE MACRO pg_advisory_unlock_all() AS NULL::VARCHAR;
CREATE MACRO _pg_expandarray(a) AS unnest(list_transform(a, lambda v, i: {'x': v, 'n': i}));
CREATE MACRO quote_ident(a) AS CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_$]*') THEN a ELSE '"' || replace(a, '"', '""') || '"' END;
CREATE MACRO quote_literal(a) AS '''' || replace(a::VARCHAR, '''', '''''') || '''';
CREATE MACRO generate_subscripts(a, b) AS unnest(generate_series(1, len(a)));
CREATE MACRO array_upper(a, b) AS len(a);
CREATE MACRO array_lower(a, b) AS CASE WHEN len(a) > 0 THEN 1 END;
