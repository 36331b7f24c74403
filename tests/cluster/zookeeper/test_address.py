"""Addresses of ZooKeeper, and what is said of those that are none."""

from __future__ import annotations

import pytest

from barnabas.cluster.zookeeper.address import ZooKeeperAddress, parse_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zookeeper://a:2181", ZooKeeperAddress((("a", 2181),))),
        ("zookeeper://a", ZooKeeperAddress((("a", 2181),))),
        ("zookeeper://a:1,b.c:2/x/y", ZooKeeperAddress((("a", 1), ("b.c", 2)), "/x/y")),
        ("zookeeper://[::1]:2182/", ZooKeeperAddress((("[::1]", 2182),))),
    ],
)
def test_an_address_is_read(text: str, expected: ZooKeeperAddress) -> None:
    assert parse_address(text) == expected
    assert parse_address(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a:2181", "begin with zookeeper://"),
        ("zookeeper://", "'' is not host:port"),
        ("zookeeper://a:2181,,b", "'' is not host:port"),
        ("zookeeper://a:0", "0 is no port"),
        ("zookeeper://a:70000", "70000 is no port"),
        ("zookeeper://a b", "'a b' is not host:port"),
        ("zookeeper://a/..", "'..' cannot be part of a root"),
        ("zookeeper://a/x y", "'x y' cannot be part of a root"),
    ],
)
def test_what_is_no_address_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_address(text)
