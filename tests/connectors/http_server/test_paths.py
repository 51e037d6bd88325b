"""Paths of components, and who answers them."""

from __future__ import annotations

import pytest

from streamer.connectors.http_server.paths import PathPattern, path_problem
from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.core.errors import StreamerError


@pytest.mark.parametrize(
    ("path", "asked", "found"),
    [
        ("/post", "/post", {}),
        ("/post", "/post/", None),
        ("/post", "/posts", None),
        ("/all/", "/all/of/it", {}),
        ("/all/", "/all", None),
        ("/", "/anything", {}),
        ("/{a}/x/{b}", "/1/x/2 3", {"a": "1", "b": "2 3"}),
        ("/{a}/x", "/1/2/x", None),
        ("/{id:[0-9]{2}}", "/12", {"id": "12"}),
        ("/{id:[0-9]{2}}", "/123", None),
        ("/a.b", "/aXb", None),
    ],
)
def test_a_path_stands_for(path, asked, found):
    assert PathPattern(path).match(asked) == found


@pytest.mark.parametrize("path", ["post", "/{a", "/a}", "/{id:[}"])
def test_what_is_no_path_is_told(path):
    assert path_problem(path) is not None


def test_a_path_belongs_to_one_until_that_one_lets_go_of_it():
    endpoints = EndpointRegistry()

    async def one(request, parameters):
        raise NotImplementedError

    async def other(request, parameters):
        raise NotImplementedError

    let_go = endpoints.add("one", {"/a/{x}": ("one", one)})
    endpoints.add("b", {"/b": ("b", one)})
    again = {"/a/{y}": ("other", other), "/c": ("c", other)}
    said = r"other wants the path /a/\{y\}, which one serves on the same server: give one of them"
    with pytest.raises(StreamerError, match=said):
        endpoints.add("other", again)
    assert endpoints.list_paths() == {"/a/{x}": "one", "/b": "b"}
    let_go()
    assert endpoints.find("/a/1") == (one, {"x": "1"})
    endpoints.add("other", {"/a/{x}": ("other", other)})
    assert endpoints.find("/a/1") == (other, {"x": "1"})
    assert endpoints.find("/c") is None
    assert endpoints.list_paths() == {"/b": "b", "/a/{x}": "other"}
