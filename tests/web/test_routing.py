"""Routes are found by the segments of a path, which are decoded one by one."""

from __future__ import annotations

import pytest

from barnabas.web.routing import HttpError, Request, Response, Router


async def one(request: Request, *given: str) -> Response:
    return Response()


async def other(request: Request, *given: str) -> Response:
    return Response()


@pytest.fixture
def router() -> Router:
    made = Router()
    made.add("GET", "/", one)
    made.add("GET", "/subjects/{}/versions/{}", one)
    made.add("DELETE", "/subjects/{}/versions/{}", other)
    made.add("GET", "/subjects/all/versions/latest", other)
    made.add("GET", "/subjects/{}", one)
    return made


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/", []),
        ("", []),
        ("/subjects/a%2Fb", ["a/b"]),
        ("/subjects/a%20b/", ["a b"]),
        ("/subjects/gr%C3%B6%C3%9Fe/versions/1", ["größe", "1"]),
        ("/subjects/%252F", ["%2F"]),  # decoded once
        ("/subjects/all/versions/1", ["all", "1"]),  # no route continues after the name `all`, so the parameter matches
    ],
)
def test_segments_are_decoded_one_by_one(router: Router, path: str, given: list[str]) -> None:
    assert router.find("GET", path) == (one, given)


def test_a_named_segment_wins(router: Router) -> None:
    assert router.find("GET", "/subjects/all/versions/latest") == (other, [])
    assert router.find("DELETE", "/subjects/all/versions/1") == (other, ["all", "1"])


def test_head_is_answered_by_get(router: Router) -> None:
    assert router.find("HEAD", "/subjects/a") == (one, ["a"])


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/subject", 404), ("GET", "/subjects/a/versions", 404),
                                                        ("GET", "/subjects/a/versions/1/2", 404), ("PUT", "/subjects/a", 405)])  # fmt: skip
def test_what_is_not_there_is_refused(router: Router, method: str, path: str, status: int) -> None:
    with pytest.raises(HttpError) as refused:
        router.find(method, path)
    assert (refused.value.status, refused.value.code) == (status, status)


def test_a_route_is_added_once(router: Router) -> None:
    with pytest.raises(ValueError, match=r"GET /subjects/\{\} is there twice"):
        router.add("GET", "/subjects/{}", other)
