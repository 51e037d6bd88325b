"""Which inputs have lost the connection to their server, by what their receivers count."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from streamer.engine.troubles import NO_TROUBLE, Trouble

_TEXTS: Final = {
    "input_connection_lost": "the connection of the input is lost; the log says why",
    "input_connection_failed": "the input cannot be connected; the log says why",
}
_UP: Final = "input_connection_up"
_PLACE: Final = ("label", "path")


class InputLinks:
    """Remembers it. Receivers count in their threads, others ask."""

    def __init__(self) -> None:
        """Begin with inputs of which nothing is known."""
        self._lock = threading.Lock()
        self._lost: dict[str, Trouble] = {}

    def note(self, name: str, labels: Mapping[str, str]) -> None:
        """Take a counter that was added to, with label and path of the input."""
        path = labels.get("path", "")
        with self._lock:
            if name in _TEXTS:
                place = {key: labels[key] for key in _PLACE if key in labels}
                self._lost[path] = Trouble(_TEXTS[name], place)
            elif name == _UP:
                self._lost.pop(path, None)

    @property
    def trouble(self) -> Trouble:
        """What is wrong with one of the inputs that are not connected; nothing when all are."""
        with self._lock:
            return next(iter(self._lost.values()), NO_TROUBLE)
