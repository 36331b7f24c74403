"""The statements of ksqlDB's first page, as they stand there, and what else its pages begin with."""

from __future__ import annotations

from tests.sql.engine.asking import Asking

QUICKSTART = (
    "CREATE STREAM riderLocations (profileId VARCHAR, latitude DOUBLE, longitude DOUBLE)"
    " WITH (kafka_topic='locations', value_format='json', partitions=1);",
    "CREATE TABLE currentLocation AS SELECT profileId, LATEST_BY_OFFSET(latitude) AS la, LATEST_BY_OFFSET(longitude) AS lo"
    " FROM riderlocations GROUP BY profileId EMIT CHANGES;",
    "CREATE TABLE ridersNearMountainView AS SELECT ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1) AS distanceInMiles,"
    " COLLECT_LIST(profileId) AS riders, COUNT(*) AS count FROM currentLocation"
    " GROUP BY ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1);",
    "INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('c2309eec', 37.7877, -122.4205);",
    "INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('18f4ea86', 37.3903, -122.0643);",
    "INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4ab5cbad', 37.3952, -122.0813);",
    "INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('8b6eae59', 37.3944, -122.0813);",
    "INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4a7c7b41', 37.4049, -122.0822);",
    "INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4ddad000', 37.7857, -122.4011);",
)


def test_the_quickstart_of_ksqldb(ask: Asking) -> None:
    for statement in QUICKSTART:
        ask(statement.removesuffix(";"))
    ask("flush")
    near = "SELECT * from ridersNearMountainView WHERE distanceInMiles <= 10"
    found = sorted((distance, sorted(riders), count) for distance, riders, count in ask.rows(near))
    assert found == [(0.0, ["4a7c7b41", "4ab5cbad", "8b6eae59"], 3), (10.0, ["18f4ea86"], 1)]
    ask("insert into riderLocations values ('18f4ea86', 37.3952, -122.0813), ('18f4ea86', null, null)")
    ask("flush")
    assert ask.rows("select la from currentLocation where profileId = '18f4ea86'") == [(37.3952,)], "nulls do not count"
    assert [row[2] for row in ask.rows(near)] == [4]
    for name in ("ridersNearMountainView", "currentLocation"):
        ask(f"drop materialized view {name}")
    ask("drop stream riderLocations")


def test_a_column_of_the_key_of_a_stream(ask: Asking) -> None:
    ask("CREATE STREAM keyed (k VARCHAR KEY, key INT, v INT) WITH (kafka_topic='keyed_topic', value_format='json', partitions=2)")
    ask("insert into keyed values ('a', 1, 2), ('a', 3, 4)")
    assert ask.rows("select _key, k, key, v from keyed order by v") == [("a", "a", 1, 2), ("a", "a", 3, 4)]
    assert ask.rows("select earliest_by_offset(v), latest_by_offset(v) from keyed") == [(2, 4)]
    ask("drop stream keyed")


def test_a_table_of_a_query_is_kept_only_with_emit(ask: Asking) -> None:
    ask("create stream noted (k text, v int)")
    ask("insert into noted values ('a', 1)")
    ask("create table kept as select k, count(*) as n from noted group by k emit changes")
    ask("create table once as select k, count(*) as n from noted group by k")
    ask("insert into noted values ('a', 1)")
    ask("flush")
    assert (ask.rows("select n from kept"), ask.rows("select n from once")) == ([(2,)], [(1,)])
    assert ask.error("create table once as select 1 as a emit changes").sqlstate == "42P07"
    ask("drop materialized view kept")
    ask("drop table once")
    ask("drop stream noted")


def test_distances_are_in_kilometres_or_miles(ask: Asking) -> None:
    rome, oslo = "41.9, 12.5", "59.9, 10.75"
    ((km, miles),) = ask.rows(f"select geo_distance({rome}, {oslo}), geo_distance({rome}, {oslo}, 'miles')")
    assert (round(km), round(miles)) == (2005, 1246)
    assert "KM or MILES" in ask.error(f"select geo_distance({rome}, {oslo}, 'feet')").message
