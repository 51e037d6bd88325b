"""The endpoints of the documentation, as the console shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web

from streamer.connectors.http_server.replies import error_reply
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint
from streamer.service.api.responses import json_response
from streamer.service.console.manual import Manual

_PAGES_SCHEMA: Final = s.list_schema(s.object_schema(name=s.STRING, title=s.STRING))
_HEADING_SCHEMA: Final = s.object_schema(level=s.INTEGER, text=s.STRING, slug=s.STRING)
_PAGE_SCHEMA: Final = s.object_schema(
    title=s.STRING, html=s.STRING, headings=s.list_schema(_HEADING_SCHEMA)
)


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
            *("GET", "/console/docs/{page}", "read_page"),
            "Return a page of the documentation as HTML.",
            *(self._read_page, _PAGE_SCHEMA),
            codes={404: "There is no such page."},
        )

    def _list_pages(self, request: ApiRequest) -> web.Response:
        titles = self._manual.titles.items()
        return json_response([{"name": name, "title": title} for name, title in titles])

    def _read_page(self, request: ApiRequest) -> web.Response:
        page = self._manual.render_page(request.path["page"])
        if page is None:
            return error_reply(404, "Error: there is no such page")
        headings = [one._asdict() for one in page.headings]
        return json_response({"title": page.title, "html": page.html, "headings": headings})
