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
CREATE MACRO __size_pretty(a) AS CASE WHEN abs(a) < 10240 THEN a::BIGINT || ' bytes' WHEN abs(a) < 10485248 THEN round(a / 1024)::BIGINT || ' kB'
  WHEN abs(a) < 10736893952 THEN round(a / 1048576)::BIGINT || ' MB' WHEN abs(a) < 10994579406848 THEN round(a / 1073741824)::BIGINT || ' GB'
  ELSE round(a / 1099511627776)::BIGINT || ' TB' END;
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
CREATE MACRO pg_advisory_unlock_all() AS NULL::VARCHAR;
CREATE MACRO _pg_expandarray(a) AS unnest(list_transform(a, lambda v, i: {'x': v, 'n': i}));
CREATE MACRO quote_ident(a) AS CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_$]*') THEN a ELSE '"' || replace(a, '"', '""') || '"' END;
CREATE MACRO quote_literal(a) AS CASE WHEN contains(a::VARCHAR, '\') THEN 'E''' ELSE '''' END
  || replace(replace(a::VARCHAR, '\', '\\'), '''', '''''') || '''';
CREATE MACRO generate_subscripts(a, b) AS unnest(generate_series(1, len(a)));
CREATE MACRO array_upper(a, b) AS nullif(len(a), 0);
CREATE MACRO array_lower(a, b) AS CASE WHEN len(a) > 0 THEN 1 END;

-- JSON as Postgres has it.
CREATE MACRO __pointer(a) AS array_to_string(list_transform(a, lambda s: '/' || replace(replace(s, '~', '~0'), '/', '~1')), '');
CREATE MACRO __json_contained(a, b) AS json_contains(b, a);
CREATE MACRO __json_list(a) AS CASE WHEN json_type(a) = 'ARRAY' THEN a::JSON[] ELSE [a] END;
CREATE MACRO __json_concat(a, b) AS CASE
  WHEN json_type(a) = 'OBJECT' AND json_type(b) = 'OBJECT' THEN to_json(map_concat(a::MAP(VARCHAR, JSON), b::MAP(VARCHAR, JSON)))
  ELSE to_json(list_concat(__json_list(a), __json_list(b))) END;
CREATE MACRO __json_without(a, b VARCHAR) AS CASE
  WHEN json_type(a) = 'OBJECT' THEN to_json(map_from_entries(list_filter(map_entries(a::MAP(VARCHAR, JSON)), lambda e: e.key <> b)))
  ELSE to_json(list_filter(a::JSON[], lambda e: (e ->> '$') IS DISTINCT FROM b)) END,
  (a, b BIGINT) AS to_json(list_filter(a::JSON[], lambda e, i: i <> CASE WHEN b < 0 THEN json_array_length(a)::BIGINT + b + 1 ELSE b + 1 END)),
  (a, b VARCHAR[]) AS to_json(map_from_entries(list_filter(map_entries(a::MAP(VARCHAR, JSON)), lambda e: NOT list_contains(b, e.key))));
CREATE MACRO __json_object(a) AS
  ('{' || array_to_string(list_transform(a, lambda e: to_json(e.k) || ':' || coalesce(e.v, 'null')), ',') || '}')::JSON;
CREATE MACRO __json_items(a) AS unnest(list_transform(a::JSON::JSON[], lambda e: coalesce(e, 'null'::JSON)));
CREATE MACRO __json_texts(a) AS unnest(list_transform(a::JSON::JSON[], lambda e: e ->> '$'));
CREATE MACRO __json_keys(a) AS unnest(CASE WHEN a IS NULL OR json_type(a::JSON) = 'OBJECT' THEN json_keys(a::JSON)
  ELSE error('cannot call jsonb_object_keys on ' || CASE json_type(a::JSON) WHEN 'ARRAY' THEN 'an array' ELSE 'a scalar' END) END);
CREATE MACRO __json_values(a) AS unnest(list_transform(map_values(a::JSON::MAP(VARCHAR, JSON)), lambda e: coalesce(e, 'null'::JSON)));
CREATE MACRO __json_value_texts(a) AS unnest(list_transform(map_values(a::JSON::MAP(VARCHAR, JSON)), lambda e: e ->> '$'));
CREATE MACRO json_typeof(a) AS CASE json_type(a::JSON) WHEN 'VARCHAR' THEN 'string' WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array'
  WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' WHEN json_type(a::JSON) THEN 'number' END;
CREATE MACRO jsonb_typeof(a) AS json_typeof(a);
CREATE MACRO jsonb_array_length(a) AS CASE WHEN json_type(a::JSON) = 'ARRAY' THEN json_array_length(a::JSON)::INTEGER
  WHEN a IS NULL THEN NULL WHEN json_type(a::JSON) = 'OBJECT' THEN error('cannot get array length of a non-array')
  ELSE error('cannot get array length of a scalar') END;
CREATE MACRO jsonb_pretty(a) AS json_pretty(a::JSON);
CREATE MACRO jsonb_contains(a, b) AS json_contains(a::JSON, b::JSON);
CREATE MACRO jsonb_contained(a, b) AS json_contains(b::JSON, a::JSON);
CREATE MACRO __json_keep(a) AS coalesce(a, 'null'::JSON);
CREATE MACRO __json_put(a, k, v) AS CASE WHEN json_type(a) = 'ARRAY'
  THEN to_json(list_transform(a::JSON[], lambda e, i: CASE WHEN i = k::BIGINT + CASE WHEN k::BIGINT < 0 THEN json_array_length(a)::BIGINT + 1 ELSE 1 END
    THEN __json_keep(v) ELSE __json_keep(e) END))
  ELSE to_json(map_concat(a::MAP(VARCHAR, JSON), MAP {k: v})) END;
CREATE MACRO jsonb_exists(a, b) AS CASE json_type(a::JSON) WHEN 'OBJECT' THEN list_contains(json_keys(a::JSON), b)
  WHEN 'ARRAY' THEN list_contains(a::JSON::JSON[], to_json(b)) WHEN 'VARCHAR' THEN (a::JSON ->> '$') = b ELSE false END;
CREATE MACRO __json_names(a) AS CASE json_type(a::JSON) WHEN 'OBJECT' THEN json_keys(a::JSON)
  WHEN 'ARRAY' THEN list_transform(list_filter(a::JSON::JSON[], lambda e: json_type(e) = 'VARCHAR'), lambda e: e ->> '$')
  WHEN 'VARCHAR' THEN [a::JSON ->> '$'] ELSE [] END;
CREATE MACRO __json_spaced(a) AS CASE WHEN len(a) > 0 THEN '[' || array_to_string(list_transform(a, lambda e: coalesce(e::VARCHAR, 'null')), ', ') || ']' END::JSON;
CREATE MACRO __json_pairs(k, v) AS __json_object(list_transform(list_zip(k, v), lambda e: {'k': e[1], 'v': to_json(e[2])})),
  (a) AS __json_object(list_transform(range(1, len(a), 2), lambda i: {'k': a[i], 'v': to_json(a[i + 1])}));
CREATE MACRO __json_placed(a, k, v) AS CASE WHEN json_type(a) = 'ARRAY'
  THEN to_json(list_concat(list_concat((a::JSON[])[:CASE WHEN k::BIGINT < 0 THEN greatest(json_array_length(a)::BIGINT + k::BIGINT, 0) ELSE k::BIGINT END], [v]),
    (a::JSON[])[CASE WHEN k::BIGINT < 0 THEN greatest(json_array_length(a)::BIGINT + k::BIGINT, 0) ELSE k::BIGINT END + 1:]))
  WHEN list_contains(json_keys(a), k) THEN error('cannot replace existing key')
  ELSE to_json(map_concat(a::MAP(VARCHAR, JSON), MAP {k: v})) END;
CREATE MACRO __json_left_out(a, k) AS CASE WHEN json_type(a) = 'ARRAY' THEN CASE WHEN regexp_full_match(k, '-?\d+')
    THEN __json_without(a, k::BIGINT) ELSE error('path element is not an integer: "' || k || '"') END
  ELSE to_json(map_from_entries(list_filter(map_entries(a::MAP(VARCHAR, JSON)), lambda e: e.key <> k))) END;

-- Functions of Postgres that DuckDB lacks.
CREATE MACRO __pg_type(t) AS CASE t WHEN 'VARCHAR' THEN 'text' WHEN 'DOUBLE' THEN 'double precision' WHEN 'FLOAT' THEN 'real'
  WHEN 'BLOB' THEN 'bytea' WHEN 'TIMESTAMP' THEN 'timestamp without time zone' WHEN 'TIME' THEN 'time without time zone'
  WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'timestamp with time zone' WHEN 'HUGEINT' THEN 'bigint' WHEN '"NULL"' THEN 'unknown'
  ELSE CASE WHEN t LIKE 'DECIMAL%' THEN 'numeric' WHEN t LIKE 'STRUCT%' OR t LIKE 'TUPLE%' THEN 'record' ELSE lower(t) END END;
CREATE MACRO __pg_typeof(a) AS CASE WHEN typeof(a) LIKE '%[]' THEN __pg_type(rtrim(typeof(a), '[]')) || '[]' ELSE __pg_type(typeof(a)) END;
CREATE MACRO scale(a) AS CASE WHEN contains(a::VARCHAR, '.') THEN length(split_part(a::VARCHAR, '.', 2))::INTEGER ELSE 0 END;
CREATE MACRO min_scale(a) AS CASE WHEN contains(a::VARCHAR, '.') THEN length(rtrim(split_part(a::VARCHAR, '.', 2), '0'))::INTEGER ELSE 0 END;
CREATE MACRO width_bucket(a, bounds) AS len(list_filter(bounds, lambda e: e <= a))::INTEGER, (a, low, high, count) AS CASE
  WHEN count <= 0 THEN error('count must be greater than zero') WHEN low = high THEN error('lower bound cannot equal upper bound')
  WHEN low < high THEN CASE WHEN a < low THEN 0 WHEN a >= high THEN count + 1 ELSE floor((a - low) * count / (high - low))::INTEGER + 1 END
  ELSE CASE WHEN a > low THEN 0 WHEN a <= high THEN count + 1 ELSE floor((low - a) * count / (low - high))::INTEGER + 1 END END;
CREATE MACRO array_remove(a, b) AS CASE WHEN b IS NULL THEN list_filter(a, lambda e: e IS NOT NULL) ELSE list_filter(a, lambda e: e IS DISTINCT FROM b) END;
CREATE MACRO array_replace(a, b, c) AS list_transform(a, lambda e: CASE WHEN e IS NOT DISTINCT FROM b THEN c ELSE e END);
CREATE MACRO array_positions(a, b) AS list_filter(list_transform(a, lambda e, i: CASE WHEN e IS NOT DISTINCT FROM b THEN i END), lambda i: i IS NOT NULL);
CREATE MACRO array_ndims(a) AS CASE WHEN a IS NULL OR len(a) = 0 THEN NULL ELSE (length(typeof(a)) - length(rtrim(typeof(a), '[]'))) // 2 END;
CREATE MACRO trim_array(a, b) AS a[:len(a) - b];
CREATE MACRO array_fill(a, b) AS list_transform(range(b[1]), lambda i: a);
CREATE MACRO array_dims(a) AS CASE WHEN len(a) > 0 THEN '[1:' || len(a) || ']' END;
CREATE MACRO __split(a, b) AS CASE WHEN a = '' THEN [] WHEN b IS NULL THEN string_split(a, '') WHEN b = '' THEN [a] ELSE string_split(a, b) END,
  (a, b, c) AS list_transform(
    CASE WHEN a = '' THEN [] WHEN b IS NULL THEN string_split(a, '') WHEN b = '' THEN [a] ELSE string_split(a, b) END, lambda e: nullif(e, c));
CREATE MACRO regexp_split_to_table(a, b) AS unnest(regexp_split_to_array(a, b));
CREATE MACRO string_to_table(a, b) AS unnest(__split(a, b)), (a, b, c) AS unnest(__split(a, b, c));
CREATE MACRO regexp_count(a, b) AS len(regexp_extract_all(a, b)), (a, b, c) AS len(regexp_extract_all(substr(a, c), b));
CREATE MACRO regexp_substr(a, b) AS CASE WHEN regexp_matches(a, b) THEN regexp_extract(a, b) END,
  (a, b, c) AS CASE WHEN regexp_matches(substr(a, c), b) THEN regexp_extract(substr(a, c), b) END,
  (a, b, c, d) AS regexp_extract_all(substr(a, c), b)[d];
CREATE MACRO regexp_instr(a, b) AS CASE WHEN regexp_matches(a, b) THEN instr(a, regexp_extract(a, b)) ELSE 0 END;
CREATE MACRO quote_nullable(a) AS coalesce(quote_literal(a), 'NULL');
CREATE MACRO __quotient(a, b) AS trunc(a // __nonzero(b));
CREATE MACRO sind(a) AS sin(radians(a));
CREATE MACRO cosd(a) AS cos(radians(a));
CREATE MACRO tand(a) AS tan(radians(a));
CREATE MACRO cotd(a) AS 1 / tan(radians(a));
CREATE MACRO asind(a) AS degrees(asin(a));
CREATE MACRO acosd(a) AS degrees(acos(a));
CREATE MACRO atand(a) AS degrees(atan(a));
CREATE MACRO atan2d(a, b) AS degrees(atan2(a, b));
CREATE MACRO isfinite(a) AS a NOT IN ('infinity', '-infinity');
CREATE MACRO num_nulls(a) AS (a IS NULL)::INTEGER, (a, b) AS (a IS NULL)::INTEGER + (b IS NULL)::INTEGER,
  (a, b, c) AS (a IS NULL)::INTEGER + (b IS NULL)::INTEGER + (c IS NULL)::INTEGER,
  (a, b, c, d) AS (a IS NULL)::INTEGER + (b IS NULL)::INTEGER + (c IS NULL)::INTEGER + (d IS NULL)::INTEGER;
CREATE MACRO num_nonnulls(a) AS 1 - num_nulls(a), (a, b) AS 2 - num_nulls(a, b), (a, b, c) AS 3 - num_nulls(a, b, c),
  (a, b, c, d) AS 4 - num_nulls(a, b, c, d);
CREATE MACRO __bytes_text(a) AS '\x' || lower(hex(a));
CREATE MACRO __array_text(a) AS '{' || array_to_string(list_transform(a, lambda e: CASE WHEN e IS NULL THEN 'NULL'
  WHEN typeof(a) NOT LIKE '%[][]' AND regexp_matches(e::VARCHAR, '^$|^(?i:null)$|[{}",\\\s]')
    THEN '"' || replace(replace(e::VARCHAR, '\', '\\'), '"', '\"') || '"'
  ELSE translate(e::VARCHAR, '[] ', '{}') END), ',') || '}';
CREATE MACRO __months_of(a) AS date_part('year', a) * 12 + date_part('month', a);
CREATE MACRO __days_of(a) AS date_part('day', a);
CREATE MACRO __microseconds_of(a) AS (date_part('hour', a) * 60 + date_part('minute', a)) * 60000000 + date_part('microsecond', a);
CREATE MACRO justify_days(a) AS to_months((date_part('year', a) * 12 + date_part('month', a) + date_part('day', a) // 30)::INTEGER)
  + to_days((date_part('day', a) % 30)::INTEGER) + to_microseconds(__microseconds_of(a));
CREATE MACRO justify_hours(a) AS to_months(__months_of(a)::INTEGER) + to_days((__days_of(a) + __microseconds_of(a) // 86400000000)::INTEGER)
  + to_microseconds(__microseconds_of(a) % 86400000000);
CREATE MACRO __justified(us) AS to_months((us // 2592000000000)::INTEGER) + to_days((us % 2592000000000 // 86400000000)::INTEGER)
  + to_microseconds(us % 86400000000);
CREATE MACRO justify_interval(a) AS __justified((__months_of(a) * 30 + __days_of(a)) * 86400000000 + __microseconds_of(a));
CREATE MACRO __similar(a, b) AS regexp_full_match(a, replace(replace(b, '%', '.*'), '_', '.'), 's');
CREATE MACRO mz_now() AS epoch_ms(now());
CREATE MACRO uuid_generate_v4() AS uuid();
CREATE MACRO pg_column_size(a) AS octet_length(encode(a::VARCHAR))::INTEGER;
CREATE MACRO __make_date(y, m, d) AS CASE WHEN y = 0 THEN error('date field value out of range: 0-' || m || '-' || d)
  WHEN y < 0 THEN make_date(y + 1, m, d) ELSE make_date(y, m, d) END;
CREATE MACRO __to_number(a) AS replace(replace(trim(a), ',', ''), '$', '')::DECIMAL(38,9);
CREATE MACRO __in_text(a) AS CASE typeof(a) WHEN 'BOOLEAN' THEN left(a::VARCHAR, 1)
  WHEN 'DECIMAL(38,9)' THEN trim_scale(a) WHEN 'FLOAT' THEN regexp_replace(a::VARCHAR, '\.0$', '')
  WHEN 'DOUBLE' THEN regexp_replace(a::VARCHAR, '\.0$', '') ELSE a::VARCHAR END;
CREATE MACRO jsonb_strip_nulls(a) AS json_strip_nulls(a);
CREATE MACRO booleq(a, b) AS a = b;
CREATE MACRO boolne(a, b) AS a <> b;
CREATE MACRO __hex(a) AS lower(hex(a));
CREATE MACRO __octets(a VARCHAR) AS strlen(a), (a BLOB) AS octet_length(a);
CREATE MACRO __present(a) AS unnest(CASE WHEN a IS NULL THEN [] ELSE [a] END);
CREATE MACRO __each(a) AS unnest(list_transform(a, lambda e: [e]));
CREATE MACRO trim_scale(a) AS CASE WHEN contains(a::VARCHAR, '.') THEN rtrim(rtrim(a::VARCHAR, '0'), '.') ELSE a::VARCHAR END;

CREATE MACRO __concat(a, b) AS CASE WHEN a IS NULL AND b IS NULL THEN NULL ELSE list_concat(a, b) END;
CREATE MACRO __sqrt(a) AS CASE WHEN a < 0 THEN error('cannot take square root of a negative number') ELSE sqrt(a) END;
CREATE MACRO __ln(a) AS CASE WHEN a = 0 THEN error('cannot take logarithm of zero') WHEN a < 0 THEN error('cannot take logarithm of a negative number')
  ELSE ln(a) END;
CREATE MACRO __split_part(a, b, n) AS CASE WHEN n = 0 THEN error('field position must not be zero')
  WHEN b = '' THEN CASE WHEN abs(n) = 1 THEN a ELSE '' END ELSE split_part(a, b, n) END;
CREATE MACRO __part(a, s) AS substring(a, greatest(s, 1)), (a, s, n) AS CASE WHEN n < 0 THEN error('negative substring length not allowed')
  ELSE substring(a, greatest(s, 1), greatest(s + n - greatest(s, 1), 0)) END;
CREATE MACRO __bytes_part(a, s) AS unhex(substring(hex(a), 2 * greatest(s, 1) - 1)),
  (a, s, n) AS unhex(substring(hex(a), 2 * greatest(s, 1) - 1, 2 * greatest(s + n - greatest(s, 1), 0)));
CREATE MACRO __hex32(a) AS lower(hex(CASE WHEN a < 0 THEN a::BIGINT + 4294967296 ELSE a::BIGINT END));
CREATE MACRO __digest(a VARCHAR, n) AS __sha(encode(a), n), (a BLOB, n) AS __sha(a, n);
CREATE MACRO digest(a, b) AS CASE lower(b) WHEN 'md5' THEN unhex(md5(a)) WHEN 'sha1' THEN unhex(sha1(a)) WHEN 'sha224' THEN __digest(a, 224)
  WHEN 'sha256' THEN __digest(a, 256) WHEN 'sha384' THEN __digest(a, 384) WHEN 'sha512' THEN __digest(a, 512)
  ELSE error('Cannot use "' || b || '": No such hash algorithm') END;
CREATE MACRO get_byte(a, n) AS CASE WHEN n < 0 OR n >= octet_length(a) THEN error('index ' || n || ' out of valid range, 0..' || (octet_length(a) - 1))
  ELSE ('0x' || substring(hex(a), 2 * n + 1, 2))::INTEGER END;
CREATE MACRO set_byte(a, n, v) AS CASE WHEN n < 0 OR n >= octet_length(a) THEN error('index ' || n || ' out of valid range, 0..' || (octet_length(a) - 1))
  ELSE unhex(substring(hex(a), 1, 2 * n) || right('0' || hex(v & 255), 2) || substring(hex(a), 2 * n + 3)) END;
CREATE MACRO get_bit(a, n) AS (get_byte(a, n // 8) >> (n % 8)) & 1;
CREATE MACRO set_bit(a, n, v) AS set_byte(a, n // 8, CASE WHEN v = 0 THEN get_byte(a, n // 8) & (255 - (1 << (n % 8))) ELSE get_byte(a, n // 8) | (1 << (n % 8)) END);
CREATE MACRO convert_from(a, b) AS CASE WHEN upper(b) IN ('UTF8', 'UTF-8', 'UNICODE', 'SQL_ASCII') THEN decode(a) ELSE error('the encoding ' || b || ' is not supported') END;
CREATE MACRO convert_to(a, b) AS CASE WHEN upper(b) IN ('UTF8', 'UTF-8', 'UNICODE', 'SQL_ASCII') THEN encode(a) ELSE error('the encoding ' || b || ' is not supported') END;
CREATE MACRO __to_char(a, f) AS __shown(typeof(a), a::VARCHAR, f, current_setting('TimeZone'));
CREATE MACRO timeofday() AS __to_char(now(), 'Dy Mon DD HH24:MI:SS.US YYYY TZ');
CREATE MACRO __position_from(a, b, s) AS list_position(a[s:], b) + s - 1;
CREATE MACRO __distinct(a) AS list_filter(a, lambda e, i: CASE WHEN e IS NULL THEN len(list_filter(a[:i - 1], lambda x: x IS NULL)) = 0
  ELSE list_position(a, e) = i END);

-- ksqlDB's distance of two places on the earth, by the haversine formula; in kilometres, or in miles.
CREATE MACRO __arc(a, b, c, d) AS 2 * asin(sqrt(
  sin(radians(c - a) / 2) ** 2 + cos(radians(a)) * cos(radians(c)) * sin(radians(d - b) / 2) ** 2));
CREATE MACRO geo_distance(a, b, c, d) AS 6371 * __arc(a, b, c, d),
  (a, b, c, d, unit) AS CASE upper(unit) WHEN 'KM' THEN 6371 WHEN 'MILES' THEN 3959
    ELSE error('the unit of geo_distance is KM or MILES') END * __arc(a, b, c, d);

-- Functions of Spark SQL. A text is a date or a time where one is wanted.
CREATE MACRO __date_add(a, n INTEGER) AS a::DATE + n, (a, n BIGINT) AS a::DATE + n::INTEGER, (a, n INTERVAL) AS a + n;
CREATE MACRO __date_sub(a, n INTEGER) AS a::DATE - n, (a, n BIGINT) AS a::DATE - n::INTEGER, (a, n INTERVAL) AS a - n,
  (unit, a, b) AS date_sub(unit, a, b);
CREATE MACRO add_months(a, n) AS (a::DATE + to_months(n::INTEGER))::DATE;
CREATE MACRO __last_day(a) AS last_day(a::DATE);
CREATE MACRO months_between(a, b) AS CASE
  WHEN day(a::TIMESTAMP) = day(b::TIMESTAMP) OR (a::DATE = last_day(a::DATE) AND b::DATE = last_day(b::DATE))
    THEN ((year(a::DATE) - year(b::DATE)) * 12 + month(a::DATE) - month(b::DATE))::DOUBLE
  ELSE round((year(a::DATE) - year(b::DATE)) * 12 + month(a::DATE) - month(b::DATE) + ((day(a::DATE) - day(b::DATE)) * 86400
    + epoch(a::TIMESTAMP - a::DATE::TIMESTAMP) - epoch(b::TIMESTAMP - b::DATE::TIMESTAMP)) / 2678400.0, 8) END;
CREATE MACRO date_from_unix_date(n) AS DATE '1970-01-01' + n::INTEGER;
CREATE MACRO timestamp_seconds(n) AS to_timestamp(n);
CREATE MACRO timestamp_millis(n) AS to_timestamp(n / 1000.0);
CREATE MACRO timestamp_micros(n) AS make_timestamptz(n);
CREATE MACRO __sequence(a INTEGER, b INTEGER) AS CASE WHEN a <= b THEN generate_series(a, b) ELSE generate_series(a, b, -1) END::INTEGER[],
  (a BIGINT, b BIGINT) AS CASE WHEN a <= b THEN generate_series(a, b) ELSE generate_series(a, b, -1) END,
  (a DATE, b DATE) AS generate_series(a, b, CASE WHEN a <= b THEN INTERVAL '1 day' ELSE INTERVAL '-1 day' END)::DATE[],
  (a INTEGER, b INTEGER, s INTEGER) AS generate_series(a, b, s)::INTEGER[], (a BIGINT, b BIGINT, s BIGINT) AS generate_series(a, b, s),
  (a DATE, b DATE, s INTERVAL) AS generate_series(a, b, s)::DATE[], (a TIMESTAMP, b TIMESTAMP, s INTERVAL) AS generate_series(a, b, s),
  (a TIMESTAMPTZ, b TIMESTAMPTZ, s INTERVAL) AS generate_series(a, b, s);
CREATE MACRO array_repeat(a, n) AS list_transform(range(n), lambda i: a);
CREATE MACRO array_insert(a, p, v) AS CASE WHEN p > 0 THEN list_concat(list_concat(a[:p - 1], [v]), a[p:])
  WHEN p < 0 THEN list_concat(list_concat(a[:len(a) + p + 1], [v]), a[len(a) + p + 2:]) ELSE error('the place 0 is not one of an array') END;
CREATE MACRO __union(a, b) AS __distinct(list_concat(a, b));
CREATE MACRO __split_most(a, b, n) AS CASE WHEN len(string_split(a, b)) <= n THEN string_split(a, b)
  ELSE list_append(string_split(a, b)[:n - 1], array_to_string(string_split(a, b)[n:], b)) END;
CREATE MACRO __str_to_map(a, b, c) AS
  map_from_entries(list_transform(string_split(a, b), lambda e: row(split_part(e, c, 1), CASE WHEN contains(e, c) THEN substr(e, instr(e, c) + length(c)) END)));
CREATE MACRO get(a, i) AS a[i + 1];
CREATE MACRO isnotnull(a) AS a IS NOT NULL;
CREATE MACRO nanvl(a, b) AS CASE WHEN isnan(a) THEN b ELSE a END;
CREATE MACRO zeroifnull(a) AS coalesce(a, 0);
CREATE MACRO nullifzero(a) AS nullif(a, 0);
CREATE MACRO substring_index(a, b, n) AS CASE WHEN n > 0 THEN array_to_string(string_split(a, b)[:n], b)
  WHEN n < 0 THEN array_to_string(string_split(a, b)[greatest(len(string_split(a, b)) + n + 1, 1):], b) WHEN n = 0 THEN '' END;
CREATE MACRO find_in_set(a, b) AS CASE WHEN contains(a, ',') THEN 0 ELSE coalesce(list_position(string_split(b, ','), a), 0) END::INTEGER;
CREATE MACRO format_number(a, n) AS format('{:,.' || n || 'f}', a::DOUBLE);
CREATE MACRO mask(a) AS regexp_replace(regexp_replace(regexp_replace(a, '[A-Z]', 'X', 'g'), '[a-z]', 'x', 'g'), '[0-9]', 'n', 'g');
CREATE MACRO parse_url(a, part) AS nullif(CASE upper(part) WHEN 'PROTOCOL' THEN regexp_extract(a, '^([^:/]+)://', 1)
  WHEN 'HOST' THEN regexp_extract(a, '^[^:/]+://(?:[^/@]*@)?([^/:?#]+)', 1) WHEN 'PATH' THEN regexp_extract(a, '^[^:/]+://[^/?#]*([^?#]*)', 1)
  WHEN 'QUERY' THEN regexp_extract(a, '\?([^#]*)', 1) WHEN 'REF' THEN regexp_extract(a, '#(.*)', 1)
  WHEN 'AUTHORITY' THEN regexp_extract(a, '^[^:/]+://([^/?#]+)', 1) WHEN 'FILE' THEN regexp_extract(a, '^[^:/]+://[^/?#]*([^#]*)', 1)
  WHEN 'USERINFO' THEN regexp_extract(a, '^[^:/]+://([^/@]+)@', 1) ELSE '' END, ''),
  (a, part, k) AS CASE WHEN upper(part) = 'QUERY' THEN nullif(regexp_extract(a, '[?&]' || regexp_escape(k) || '=([^&#]*)', 1), '') END;
CREATE MACRO e() AS exp(1);
CREATE MACRO expm1(a) AS exp(a) - 1;
CREATE MACRO log1p(a) AS ln(1 + a);
CREATE MACRO hypot(a, b) AS sqrt(a * a + b * b);
CREATE MACRO pmod(a, b) AS ((a % __nonzero(b)) + b) % b;
CREATE MACRO try_add(a, b) AS TRY(a + b);
CREATE MACRO try_subtract(a, b) AS TRY(a - b);
CREATE MACRO try_multiply(a, b) AS TRY(a * b);

-- Windows of time, from the epoch on. Those of months begin with a month; DuckDB's other ones begin at 2000-01-03. A date is its midnight.
CREATE MACRO __bucket(size, t) AS time_bucket(size, t + INTERVAL '0 seconds',
  CASE WHEN extract('year' FROM size) = 0 AND extract('month' FROM size) = 0 THEN INTERVAL '-10959 days' ELSE INTERVAL '0 days' END);
CREATE MACRO __window(size, t) AS {'start': __bucket(size, t), 'end': __bucket(size, t) + size};
CREATE MACRO __session(a, b) AS {'start': a, 'end': b};
CREATE MACRO __hop_count(size, slide) AS CASE
  WHEN size <= INTERVAL '0 seconds' OR slide <= INTERVAL '0 seconds' THEN error('the size and the slide of a window must be greater than zero')
  WHEN epoch(size) / epoch(slide) > 10000 THEN error('a row is in more than MAX_SQL_HOPS (10,000) windows')
  ELSE ceil(epoch(size) / epoch(slide))::BIGINT END;
CREATE MACRO __hops(size, slide, t) AS list_transform(list_filter(list_transform(
  range(__hop_count(size, slide)), lambda k: __bucket(slide, t) - slide * k), lambda s: s + size > t),
  lambda s: {'start': s, 'end': s + size});

-- Times in another zone than UTC. `__elapsed` is the time that went by; `__moved` adds months and days by the clock, and then the rest.
CREATE MACRO __elapsed(a, b) AS timezone('UTC', a::TIMESTAMPTZ) - timezone('UTC', b::TIMESTAMPTZ);
CREATE MACRO __moved(t, i) AS CASE WHEN __months_of(i) = 0 AND __days_of(i) = 0 THEN t
  ELSE (t::TIMESTAMP + to_months(__months_of(i)::INTEGER) + to_days(__days_of(i)::INTEGER))::TIMESTAMPTZ END + to_microseconds(__microseconds_of(i));
CREATE MACRO __minus(a TIMESTAMPTZ, b TIMESTAMPTZ) AS __elapsed(a, b), (a TIMESTAMPTZ, b TIMESTAMP) AS __elapsed(a, b),
  (a TIMESTAMP, b TIMESTAMPTZ) AS __elapsed(a, b), (a TIMESTAMPTZ, b DATE) AS __elapsed(a, b), (a DATE, b TIMESTAMPTZ) AS __elapsed(a, b),
  (a TIMESTAMPTZ, b INTERVAL) AS __moved(a, -b), (a TIMESTAMP, b TIMESTAMP) AS a - b, (a DATE, b DATE) AS a - b, (a TIMESTAMP, b DATE) AS a - b,
  (a DATE, b TIMESTAMP) AS a - b, (a TIMESTAMP, b INTERVAL) AS a - b, (a DATE, b INTERVAL) AS a - b, (a, b) AS a - b;
CREATE MACRO __plus(a TIMESTAMPTZ, b INTERVAL) AS __moved(a, b), (a INTERVAL, b TIMESTAMPTZ) AS __moved(b, a), (a TIMESTAMP, b INTERVAL) AS a + b,
  (a INTERVAL, b TIMESTAMP) AS a + b, (a DATE, b INTERVAL) AS a + b, (a INTERVAL, b DATE) AS a + b, (a, b) AS a + b;
CREATE MACRO __later(t TIMESTAMPTZ, i INTERVAL) AS timezone('UTC', timezone('UTC', t) + i), (t TIMESTAMP, i INTERVAL) AS t + i, (t, i) AS t + i;
CREATE MACRO __earlier(t TIMESTAMPTZ, i INTERVAL) AS timezone('UTC', timezone('UTC', t) - i), (t TIMESTAMP, i INTERVAL) AS t - i, (t, i) AS t - i;
CREATE MACRO __hour_of(t TIMESTAMPTZ) AS t - (t::TIMESTAMP - date_trunc('hour', t::TIMESTAMP)), (t TIMESTAMP) AS date_trunc('hour', t),
  (t DATE) AS date_trunc('hour', t), (t) AS date_trunc('hour', t);
CREATE MACRO __time_of(t TIMESTAMPTZ) AS t::TIMESTAMP::TIME, (t TIMESTAMP) AS t::TIME, (t DATE) AS t::TIMESTAMP::TIME, (t) AS t::TIME;
CREATE MACRO __zoned_window(size, t TIMESTAMPTZ) AS {'start': timezone('UTC', __bucket(size, timezone('UTC', t))),
    'end': timezone('UTC', __bucket(size, timezone('UTC', t)) + size)},
  (size, t TIMESTAMP) AS __window(size, t), (size, t DATE) AS __window(size, t);
CREATE MACRO __zoned_hops(size, slide, t TIMESTAMPTZ) AS list_transform(__hops(size, slide, timezone('UTC', t)),
    lambda w: {'start': timezone('UTC', w['start']), 'end': timezone('UTC', w['end'])}),
  (size, slide, t TIMESTAMP) AS __hops(size, slide, t), (size, slide, t DATE) AS __hops(size, slide, t);
