"""The pages of the API are those of its endpoints, and each endpoint is on one of them."""

from __future__ import annotations

from pathlib import Path

from streamer.service.api import schemas as s
from streamer.service.api.endpoint import Endpoint, Parameter
from streamer.tools.docs_index import strip_docs_footer
from tests.docs.api_page import format_pages, make_pages
from tests.service.api.asking import asking


def test_the_pages_are_up_to_date() -> None:
    stale = [
        path.name
        for path, text in make_pages().items()
        if not path.exists() or strip_docs_footer(path.read_text()) != text
    ]
    assert stale == [], "run: python -m tests.docs.api_page"


def test_an_endpoint_has_its_parameters_body_answer_and_statuses() -> None:
    limit = Parameter("limit", "How many, at most.", s.INTEGER)
    shared = Parameter("timeout", "How long.", s.STRING)
    every = [
        Endpoint("GET", "/streams", "list", "List all.", print, s.list_schema(s.STRING)),
        *(
            Endpoint("POST", f"/streams/{{id}}/{name}", name, "Do it.", print, parameters=(shared,))
            for name in ("pause", "resume", "rollback")
        ),
        Endpoint(
            *("GET", "/console/x", "x", "Look.", print, s.object_schema(a=s.STRING)),
            *((limit,), "A config."),
            {404: "There is none."},
        ),
    ]
    api, console = format_pages(every).values()
    assert "## Streams\n\n### `GET /streams`\n\nList all.\n\nAnswer: a list; each" in api
    assert api.count("| `timeout` | text | How long. |") == 1
    assert "Parameters, as [above](#common-parameters): `timeout`." in api
    assert "### `GET /console/x`" in console and "/console/x" not in api
    assert "| `limit` | number | How many, at most. |" in console
    assert "Body: A config.\n\nAnswer: an object with `a`.\n\n- 404: There is none." in console


def test_no_endpoint_is_left_over(tmp_path: Path) -> None:
    pages = "".join(make_pages().values())
    with asking(tmp_path) as server:
        for one in server.api.list_endpoints():
            assert f"### `{one.method} {one.path}`" in pages
