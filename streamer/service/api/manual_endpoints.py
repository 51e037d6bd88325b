"""The endpoints of the documentation, as the console shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.connectors.http_server.replies import error_reply
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.responses import json_response
from streamer.service.console.manual import Manual
from streamer.tools.docs_index import DocsEntry

_LINK_SCHEMA: Final = s.object_schema(name=s.STRING, title=s.STRING)
_PAGES_SCHEMA: Final = s.list_schema(_LINK_SCHEMA)
_INDEX_SCHEMA: Final = s.list_schema(
    s.object_schema(
        title=s.STRING,
        pages=s.list_schema(s.object_schema(name=s.STRING, title=s.STRING, summary=s.STRING)),
    )
)
_HITS_SCHEMA: Final = s.list_schema(
    s.object_schema(
        page=s.STRING,
        title=s.STRING,
        section=s.STRING,
        heading=s.STRING,
        slug=s.STRING,
        excerpt=s.list_schema(s.object_schema(text=s.STRING, is_match=s.BOOLEAN)),
    )
)
_HEADING_SCHEMA: Final = s.object_schema(level=s.INTEGER, text=s.STRING, slug=s.STRING)
_PAGE_SCHEMA: Final = s.object_schema(
    title=s.STRING, html=s.STRING, headings=s.list_schema(_HEADING_SCHEMA)
)
# The index itself stands in no section, and its first page has none before it.
_PAGE_SCHEMA["properties"].update(
    section=s.STRING, above=_LINK_SCHEMA, previous=_LINK_SCHEMA, following=_LINK_SCHEMA
)
_MAX_QUERY_CHARS: Final = 200
_MAX_HITS: Final = 30


class ManualEndpoints:
    """The endpoints below `/console/docs`."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._manual = Manual()

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        yield Endpoint(
            *("GET", "/console/docs", "list_pages", "List the pages of the documentation."),
            *(self._list_pages, _PAGES_SCHEMA),
        )
        yield Endpoint(
            *("GET", "/console/docs-index", "read_index"),
            "Return the sections of the documentation with their pages, in order.",
            *(self._read_index, _INDEX_SCHEMA),
        )
        yield Endpoint(
            *("GET", "/console/docs-search", "search_pages"),
            "Return the sections of the documentation in which all words occur, the best first: "
            f"one of each page, at most {_MAX_HITS}.",
            *(self._search_pages, _HITS_SCHEMA),
            parameters=(
                Parameter("q", f"The words; at most {_MAX_QUERY_CHARS} characters.", s.STRING),
            ),
            codes={400: "There are too many characters."},
        )
        yield Endpoint(
            *("GET", "/console/docs/{page}", "read_page"),
            "Return a page of the documentation as HTML.",
            *(self._read_page, _PAGE_SCHEMA),
            codes={404: "There is no such page."},
        )

    def _list_pages(self, request: ApiRequest) -> web.Response:
        titles = self._manual.titles.items()
        return json_response([{"name": name, "title": title} for name, title in titles])

    def _read_index(self, request: ApiRequest) -> web.Response:
        sections = [
            {
                "title": section.title,
                "pages": [
                    {**_to_link(entry), "summary": entry.summary} for entry in section.entries
                ],
            }
            for section in self._manual.sections
        ]
        return json_response(sections)

    def _search_pages(self, request: ApiRequest) -> web.Response:
        text = request.query.get("q", "")
        if len(text) > _MAX_QUERY_CHARS:
            return error_reply(
                400,
                f"Error: q has {len(text):,} characters, and may have at most {_MAX_QUERY_CHARS}",
            )
        hits = [
            {
                **hit._asdict(),
                "excerpt": [{"text": part, "is_match": is_match} for part, is_match in hit.excerpt],
            }
            for hit in self._manual.search(text, _MAX_HITS)
        ]
        return json_response(hits)

    def _read_page(self, request: ApiRequest) -> web.Response:
        page = self._manual.render_page(request.path["page"])
        if page is None:
            return error_reply(404, "Error: there is no such page")
        headings = [one._asdict() for one in page.headings]
        document: dict[str, Any] = {"title": page.title, "html": page.html, "headings": headings}
        if place := self._manual.find_place(request.path["page"]):
            document["section"] = place.section
            for name in ("above", "previous", "following"):
                if entry := getattr(place, name):
                    document[name] = _to_link(entry)
        return json_response(document)


def _to_link(entry: DocsEntry) -> dict[str, str]:
    return {"name": entry.name.replace("/", "."), "title": entry.title}
