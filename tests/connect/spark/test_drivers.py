"""Which class of a driver a url of JDBC needs."""

from __future__ import annotations

import pytest

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.spark.jdbc import raise_if_driver_is_missing, with_driver


def test_the_driver_follows_from_the_url() -> None:
    url = "jdbc:postgresql://db/shop"
    assert with_driver("JDBC", {"url": url}) == {"url": url, "driver": "org.postgresql.Driver"}
    assert with_driver("jdbc", {"url": url, "Driver": "own.Driver"}) == {"url": url, "Driver": "own.Driver"}
    assert with_driver("jdbc", {"url": "jdbc:unknown:x"}) == {"url": "jdbc:unknown:x"}
    assert with_driver("csv", {"url": url}) == {"url": url}


def test_mariadb_gets_the_dialect_of_mysql() -> None:
    for url, made in (("//db/shop", "//db/shop?"), ("//db/shop?a=b", "//db/shop?a=b&")):
        found = with_driver("jdbc", {"URL": f"jdbc:mariadb:{url}"})
        assert found == {"URL": f"jdbc:mysql:{made}permitMysqlScheme=true", "driver": "org.mariadb.jdbc.Driver"}


def test_a_missing_driver_is_told_without_the_parameters_of_the_url() -> None:
    error = ValueError("java.lang.ClassNotFoundException: org.postgresql.Driver")
    with pytest.raises(
        ConnectError, match=r"no JDBC driver for jdbc:postgresql://db/shop; an engine setting such as spark\.jars"
    ) as told:
        raise_if_driver_is_missing(error, "jdbc", {"url": "jdbc:postgresql://db/shop?password=secret"})
    assert "secret" not in str(told.value)
    raise_if_driver_is_missing(ValueError("no such table"), "jdbc", {})
