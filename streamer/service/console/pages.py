"""Files of the console: one page, and the files that it is made of.

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

from streamer.service.access.middlewares import Handler

_CONTENT_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_INDEX_PAGE: Final = "index.html"
_ASSETS_PLACEHOLDER: Final = "{assets}"

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files. Scripts and styles inside of it do not run."""

_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_CACHE_FOREVER: Final = "public, max-age=31536000, immutable"
_REVALIDATE: Final = "no-cache"


class ConsolePages:
    """The page and its files. Their addresses have a version, so that browsers may keep them."""

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The files by their paths below the page's directory; the documentation's pictures too."""
        pictures = resources.files("streamer") / "docs" / "pictures"
        own = resources.files(__package__) / "static"
        return dict([*_read_files(own, ""), *_read_files(pictures, "pictures/")])

    @cached_property
    def version(self) -> str:
        """A tag that changes when a file does."""
        digest = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
        return digest.hexdigest()[:16]

    def make_routes(self, root: str) -> dict[str, Handler]:
        """Return who answers, by path.

        Args:
            root: a prefix that all paths are served behind, too; empty for none.
        """
        handlers: dict[str, Handler] = {}
        page = self.files[_INDEX_PAGE].replace(
            _ASSETS_PLACEHOLDER.encode(), f"console/{self.version}".encode()
        )
        for prefix in dict.fromkeys(("", root)):
            handlers[f"{prefix}/"] = _serve_content(page, _CONTENT_TYPES[".html"], _REVALIDATE)
            for name, content in self.files.items():
                if name != _INDEX_PAGE:
                    kind = _CONTENT_TYPES[f".{name.rpartition('.')[2]}"]
                    path = f"{prefix}/console/{self.version}/{name}"
                    handlers[path] = _serve_content(content, kind, _CACHE_FOREVER)
        if root:
            # The page's addresses are relative, and this one has no directory.
            handlers[root] = _redirect_to(f"{root.rpartition('/')[2]}/")
        return handlers


def _read_files(directory: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    files: list[tuple[str, bytes]] = []
    for each in directory.iterdir():
        if each.is_dir():
            files += _read_files(each, f"{prefix}{each.name}/")
        elif f".{each.name.rpartition('.')[2]}" in _CONTENT_TYPES:
            files.append((prefix + each.name, each.read_bytes()))
    return sorted(files)


def _serve_content(content: bytes, kind: str, caching: str) -> Handler:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**_HEADERS, hdrs.ETAG: tag, hdrs.CACHE_CONTROL: caching}

    async def serve(request: web.Request) -> web.StreamResponse:
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, headers={hdrs.ALLOW: "GET, HEAD"})
        known_tags = request.headers.get(hdrs.IF_NONE_MATCH, "")
        if tag in known_tags:
            return web.Response(status=304, headers=headers)
        return web.Response(body=content, headers={**headers, hdrs.CONTENT_TYPE: kind})

    return serve


def _redirect_to(location: str) -> Handler:
    async def move(request: web.Request) -> web.StreamResponse:
        return web.Response(status=308, headers={hdrs.LOCATION: location})

    return move
