"""The endpoints by which one watches the messages of a stream that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.engine.tapping import LONGEST, Tap
from streamer.service.http import schemas as s
from streamer.service.http.answers import as_json
from streamer.service.http.endpoint import Asked, Endpoint, Parameter
from streamer.service.http.reading import as_number
from streamer.service.streams.managed import Managed
from streamer.service.streams.manager import Manager
from streamer.timestamps import format_rfc3339

_UNKNOWN: Final = {404: "There is no such stream."}
_SECONDS: Final = 15
_TAP: Final = s.obj(open=s.BOOLEAN, samples=s.listed(s.ANYTHING))


class TapEndpoints:
    """`/streams/{id}/tap`: a POST has samples taken for a while, a GET returns them."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def all(self) -> Iterator[Endpoint]:
        """Return them."""
        path = "/streams/{id}/tap"
        yield Endpoint(
            *("POST", path, "open_tap"),
            "Take samples of a stream's messages, before and after each component, for a while.",
            *(self._open, s.obj(open=s.BOOLEAN)),
            parameters=(Parameter("seconds", f"For how long, at most {LONGEST:.0f}.", s.INTEGER),),
            codes={**_UNKNOWN, 400: "A number is none."},
            changes=True,
        )
        yield Endpoint(
            *("GET", path, "read_tap"),
            "Return the samples that were taken, oldest first, without secrets.",
            *(self._read, _TAP),
            parameters=(
                Parameter("node", "The path of a component, such as `root.input`.", s.STRING),
                Parameter("after", "The number of a sample: only those after it.", s.INTEGER),
            ),
            codes={**_UNKNOWN, 400: "A number is none."},
        )

    def _open(self, asked: Asked) -> web.Response:
        managed, tap = self._found(asked)
        seconds = as_number(asked.query.get("seconds", str(_SECONDS)), "seconds")
        if tap is not None and tap.open(min(seconds, LONGEST)):
            # Messages may hold what not everybody may see: it is known who has looked.
            managed.log("INFO", "Messages are sampled for the API", {"by": asked.wish.author})
        return as_json({"open": tap is not None})

    def _read(self, asked: Asked) -> web.Response:
        managed, tap = self._found(asked)
        after = as_number(asked.query.get("after", "0"), "after")
        found: list[dict[str, Any]] = []
        if tap is not None:
            found = tap.samples(asked.query.get("node"), after)
        shown = [{**one, "at": format_rfc3339(one["at"])} for one in found]
        samples = managed.without_secrets(shown)
        return as_json({"open": tap is not None and tap.most > 0, "samples": samples})

    def _found(self, asked: Asked) -> tuple[Managed, Tap | None]:
        managed = self._manager.registry.get(asked.path["id"])
        return managed, managed.run.tap() if managed.run is not None else None
