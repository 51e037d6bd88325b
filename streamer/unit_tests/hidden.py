"""What the tests of a config must not show: its secrets, and what variables of the process hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.config.secrets import with_variables
from streamer.redaction import Redaction
from streamer.unit_tests.failure import Failure, Line


class Hidden:
    """Takes secrets out of failures and log lines; it learns them as configs are read."""

    def __init__(self) -> None:
        """Begin with none."""
        self._secrets: dict[str, str] = {}
        self._plain: set[str] = set()
        self._made = ((0, 0), Redaction())

    def learn(self, secrets: Mapping[str, str], written: Mapping[str, str] | None) -> None:
        """Add what a config holds.

        Args:
            secrets: what must not be seen, by what is shown instead.
            written: the variables that the test sets itself: everybody can read them there.
        """
        self._plain |= set((written or {}).values())
        self._secrets |= secrets

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._redaction().text(text)

    def value(self, value: Any) -> Any:
        """Return a value without secrets."""
        return self._redaction().value(value)

    def failure(self, found: Failure) -> Failure:
        """Return a failure without secrets."""
        return tuple(Line(self.text(line.text), line.tone) for line in found)

    def _redaction(self) -> Redaction:
        known = with_variables(self._secrets)
        size = len(known), len(self._plain)
        if size != self._made[0]:
            seen = {text: by for text, by in known.items() if text not in self._plain}
            self._made = size, Redaction(seen)
        return self._made[1]
