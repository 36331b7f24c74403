"""The parts of SQLAlchemy's suite for dialects that are asked: those that its dialect of PostgreSQL has, but for what needs an engine."""

from __future__ import annotations

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

ASKED = """
array_type autocommit binary_literals check_constraint_reflection comment_reflection ctes
ctes_on_dml ctes_with_update_delete ctes_with_values cross_schema_fk_reflection date_implicit_bound datetime_interval datetime_literals
datetime_timezone delete_from delete_returning except_ expressions_against_unbounded_text fetch_first fetch_null_with_offset
fk_constraint_option_reflection_ondelete_noaction fk_constraint_option_reflection_ondelete_restrict
foreign_key_constraint_option_reflection_ondelete foreign_key_constraint_option_reflection_onupdate group_by_complex_expression
identity_columns identity_columns_standard independent_isolation index_reflection inline_check_constraint_reflection insert_returning
insertmanyvalues intersect json_type multivalues_inserts nullsordering order_by_col_from_union
parens_in_union_contained_select_w_limit_offset parens_in_union_contained_select_wo_limit_offset
precision_numerics_enotation_large precision_numerics_many_significant_digits precision_numerics_retains_significant_digits
reflects_pk_names regexp_match regexp_replace returning savepoints schemas sequences sequences_optional sql_expression_limit_offset
standalone_null_binds_whereclause supports_distinct_on table_value_constructor timestamp_microseconds tuple_in unicode_ddl
unique_constraint_reflection update_from update_returning update_where_target_in_subquery uuid_data_type views window_functions
""".split()  # noqa: SIM905 - as a list they take a page


class Requirements(SuiteRequirements):
    """All of them are open."""


for name in ASKED:
    setattr(Requirements, name, property(lambda _: exclusions.open()))  # type: ignore[no-untyped-call]  # it has no types
