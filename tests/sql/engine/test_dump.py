"""A dump of `pg_dump` makes the same tables here: keys and constraints come after the rows, and sequences lie in schemas."""

from __future__ import annotations

import pytest

from tests.sql.engine.asking import Asking

BEFORE = """
CREATE SCHEMA shop;
ALTER SCHEMA shop OWNER TO postgres;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE shop.customers (id integer NOT NULL, name character varying(100) NOT NULL, email text);
ALTER TABLE shop.customers OWNER TO postgres;
CREATE SEQUENCE shop.customers_id_seq AS integer START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;
ALTER TABLE shop.customers_id_seq OWNER TO postgres;
ALTER SEQUENCE shop.customers_id_seq OWNED BY shop.customers.id;
CREATE TABLE shop.orders (id bigint, customer_id integer NOT NULL, total numeric(10,2),
    CONSTRAINT orders_total_check CHECK ((total >= (0)::numeric)));
ALTER TABLE ONLY shop.customers ALTER COLUMN id SET DEFAULT nextval('shop.customers_id_seq'::regclass)
"""
AFTER = """
SELECT pg_catalog.setval('shop.customers_id_seq', 3, true);
ALTER TABLE ONLY shop.customers ADD CONSTRAINT customers_email_key UNIQUE (email);
ALTER TABLE ONLY shop.customers ADD CONSTRAINT customers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY shop.orders ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
CREATE INDEX orders_customer ON shop.orders USING btree (customer_id);
ALTER TABLE ONLY shop.orders ADD CONSTRAINT orders_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES shop.customers(id)
"""


def test_a_dump_is_restored(ask: Asking) -> None:
    for each in BEFORE.split(";"):
        ask(each.strip())
    assert ask.copy_in("COPY shop.customers (id, name, email) FROM stdin", b"1\tAnn\ta@x\n2\tBob\tb@x\n3\tCy\t\\N\n") == "COPY 3"
    assert ask.copy_in("COPY shop.orders (id, customer_id, total) FROM stdin", b"10\t1\t1.50\n11\t2\t2.50\n") == "COPY 2"
    for each in AFTER.split(";"):
        ask(each.strip())
    assert [each.message for each in ask.session.take_notices()][-1] == "foreign keys are not enforced"
    assert ask.rows("insert into shop.customers (name) values ('Di') returning id") == [(4,)]
    error = ask.error("insert into shop.customers (id, name) values (2, 'Ed')")
    assert (error.sqlstate, error.constraint) == ("23505", "customers_pkey")
    assert ask.error("insert into shop.orders values (null, 1, 1)").sqlstate == "23502"
    assert ask.tag("update shop.orders set total = total * 2 where id = 11") == "UPDATE 1"
    assert ask.rows(
        "select c.name, o.total from shop.orders o join shop.customers c on c.id = o.customer_id where o.id = 11"
    ) == [("Bob", pytest.approx(5))]
    assert ask.rows(
        "select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'shop.orders'::regclass order by 1"
    ) == [
        ("orders_customer_id_fkey", "f", "FOREIGN KEY (customer_id) REFERENCES shop.customers(id)"),
        ("orders_pkey", "p", "PRIMARY KEY (id)"),
        ("orders_total_check", "c", "CHECK ((total >= CAST((0) AS DECIMAL)))"),
    ]
    assert ask.error("drop sequence shop.customers_id_seq").sqlstate == "2BP01"
    ask("drop table shop.orders, shop.customers")
    assert ask.error("select * from shop.customers_id_seq").sqlstate == "42P01"
    ask("drop schema shop")


def test_a_key_that_rows_do_not_have(ask: Asking) -> None:
    ask("create table loose (a int, b text)")
    ask("insert into loose values (1, 'x'), (1, 'y')")
    error = ask.error("alter table loose add primary key (a)")
    assert (error.sqlstate, error.message) == ("23505", 'could not create unique index "loose_pkey"')
    ask("update loose set a = null where b = 'y'")
    error = ask.error("alter table loose add primary key (a)")
    assert (error.sqlstate, error.message) == ("23502", 'column "a" of relation "loose" contains null values')
    ask("delete from loose where b = 'y'")
    ask("alter table loose add primary key (a)")
    error = ask.error("alter table loose add constraint other primary key (b)")
    assert (error.sqlstate, error.message) == ("42P16", 'multiple primary keys for table "loose" are not allowed')
    assert ask.error("alter table loose alter column a drop not null").sqlstate == "42P16"
    assert ask.tag("insert into loose values (1, 'z') on conflict (a) do update set b = excluded.b") == "INSERT 0 1"
    assert ask.rows("select b from loose where a = 1") == [("z",)]
    ask("alter table loose drop constraint loose_pkey")
    ask("insert into loose values (1, 'again')")
    assert ask.rows("select b from loose where a = 1 order by b") == [("again",), ("z",)]
    ask("create table keyed (a int primary key, b int)")
    assert ask.error("alter table keyed add primary key (b)").sqlstate == "42P16"


def test_one_row_by_its_unique_values(ask: Asking) -> None:
    ask("create table people (id int primary key, email text unique, team int, place int, unique (team, place))")
    ask("insert into people select g, 'p' || g, g div 10, g % 10 from generate_series(1, 199) r(g)")
    assert ask.rows("select id from people where email = 'p77'") == [(77,)]
    assert ask.rows("select id from people where place = 3 and team = 4 and id > 5") == [(43,)]
    assert ask.rows("select id from people where place = 3 and team = 4 and id > 50") == []
    assert ask.rows("select count(*) from people where email = $1", "none") == [(0,)]
    ask("begin")
    ask("update people set email = 'moved' where email = 'p5'")
    assert ask.rows("select id from people where email = 'moved'") == [(5,)]
    assert ask.rows("select id from people where email = 'p5'") == []
    ask("commit")
    assert ask.rows("select id, place from people where email = 'moved'") == [(5, 5)]
    assert ask.tag("delete from people where email = 'moved'") == "DELETE 1"
    assert ask.rows("select id from people where email = 'moved'") == []


def test_sequences_lie_in_schemas(ask: Asking) -> None:
    ask("create schema yard")
    ask("create sequence yard.numbers start 5")
    ask("create table counted (n bigint default nextval('yard.numbers'))")
    ask("insert into counted default values")
    assert ask.rows("select n from counted") == [(5,)]
    for text in (
        "select schemaname, sequencename from pg_sequences where sequencename like 'numb%'",
        "select sequence_schema, sequence_name from information_schema.sequences where sequence_name like 'numb%'",
        "select nspname, relname from pg_class c join pg_namespace n on n.oid = relnamespace where relkind = 'S' and relname like 'numb%'",
    ):
        assert ask.rows(text) == [("yard", "numbers")]
    error = ask.error("drop schema yard")
    assert (error.sqlstate, error.detail) == ("2BP01", "it has yard.numbers")
    ask("drop schema yard cascade")
    assert ask.error("select nextval('yard.numbers')").sqlstate == "42P01"
    assert ask.tag("insert into counted (n) values (6)") == "INSERT 0 1"
    ask("create sequence numbers")
    assert ask.error("create sequence nowhere.numbers").sqlstate == "3F000"
    assert ask.rows("select nextval('numbers')") == [(1,)]
