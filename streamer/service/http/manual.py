"""The endpoints of the documentation, as the console shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web

from streamer.endpoints.replies import error_reply
from streamer.service.console.manual import Manual
from streamer.service.http import schemas as s
from streamer.service.http.answers import as_json
from streamer.service.http.endpoint import Asked, Endpoint

_PAGES: Final = s.listed(s.obj(name=s.STRING, title=s.STRING))
_HEADING: Final = s.obj(level=s.INTEGER, text=s.STRING, slug=s.STRING)
_PAGE: Final = s.obj(title=s.STRING, html=s.STRING, headings=s.listed(_HEADING))


class ManualEndpoints:
    """The endpoints below `/console/docs`."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._manual = Manual()

    def all(self) -> Iterator[Endpoint]:
        """Return them."""
        yield Endpoint(
            *("GET", "/console/docs", "list_pages", "List the pages of the documentation."),
            *(self._list, _PAGES),
        )
        yield Endpoint(
            *("GET", "/console/docs/{page}", "read_page"),
            "Return a page of the documentation as HTML.",
            *(self._page, _PAGE),
            codes={404: "There is no such page."},
        )

    def _list(self, asked: Asked) -> web.Response:
        titles = self._manual.titles.items()
        return as_json([{"name": name, "title": title} for name, title in titles])

    def _page(self, asked: Asked) -> web.Response:
        found = self._manual.page(asked.path["page"])
        if found is None:
            return error_reply(404, "Error: there is no such page")
        headings = [one._asdict() for one in found.headings]
        return as_json({"title": found.title, "html": found.html, "headings": headings})
