"""What of the console is served: one page, and the files that it is made of.

There are no data in them, so that they are served before anybody has said who they are: the page
asks for that. All that it shows comes from the API.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from aiohttp import hdrs, web

from streamer.service.doors import Handler

_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_PAGE: Final = "index.html"
_ASSETS: Final = "{assets}"

POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files. Scripts and styles inside of it do not run."""

_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"


class Pages:
    """The page and its files. Their addresses have a version, so that browsers may keep them."""

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The files by their paths below the page's directory; the documentation's pictures too."""
        pictures = resources.files("streamer") / "docs" / "pictures"
        own = resources.files(__package__) / "static"
        return dict([*_files(own, ""), *_files(pictures, "pictures/")])

    @cached_property
    def version(self) -> str:
        """What changes when a file does."""
        found = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            found.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
        return found.hexdigest()[:16]

    def routes(self, root: str) -> dict[str, Handler]:
        """Return who answers, by path.

        Args:
            root: a prefix that all paths are served behind, too; empty for none.
        """
        found: dict[str, Handler] = {}
        page = self.files[_PAGE].replace(_ASSETS.encode(), f"console/{self.version}".encode())
        for prefix in dict.fromkeys(("", root)):
            found[f"{prefix}/"] = _serving(page, _TYPES[".html"], _ASK_AGAIN)
            for name, content in self.files.items():
                if name != _PAGE:
                    kind = _TYPES[f".{name.rpartition('.')[2]}"]
                    path = f"{prefix}/console/{self.version}/{name}"
                    found[path] = _serving(content, kind, _FOR_EVER)
        if root:
            # The page's addresses are relative, and this one has no directory.
            found[root] = _moved(f"{root.rpartition('/')[2]}/")
        return found


def _files(directory: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for each in directory.iterdir():
        if each.is_dir():
            found += _files(each, f"{prefix}{each.name}/")
        elif f".{each.name.rpartition('.')[2]}" in _TYPES:
            found.append((prefix + each.name, each.read_bytes()))
    return sorted(found)


def _serving(content: bytes, kind: str, caching: str) -> Handler:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**_HEADERS, hdrs.ETAG: tag, hdrs.CACHE_CONTROL: caching}

    async def serve(request: web.Request) -> web.StreamResponse:
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, headers={hdrs.ALLOW: "GET, HEAD"})
        given = request.headers.get(hdrs.IF_NONE_MATCH, "")
        if tag in given:
            return web.Response(status=304, headers=headers)
        return web.Response(body=content, headers={**headers, hdrs.CONTENT_TYPE: kind})

    return serve


def _moved(place: str) -> Handler:
    async def move(request: web.Request) -> web.StreamResponse:
        return web.Response(status=308, headers={hdrs.LOCATION: place})

    return move
