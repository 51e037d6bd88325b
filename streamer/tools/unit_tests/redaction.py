"""Redacts what tests of a config show: its secrets, and values of the process's variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.bloblang import nest_inputs
from streamer.config.secrets import add_variable_values
from streamer.core.redaction import Redaction
from streamer.tools.unit_tests.failure import Failure, Line


class SecretRedactor:
    """Takes secrets out of failures and log lines; it learns them as configs are read.

    Attributes:
        inputs: what the mappings of the configs have read.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.inputs = nest_inputs()
        self._secrets: dict[str, str] = {}
        self._public_values: set[str] = set()
        self._cached = ((0, 0), Redaction())

    def add_secrets(self, secrets: Mapping[str, str], written: Mapping[str, str] | None) -> None:
        """Add what a config holds.

        Args:
            secrets: what must not be seen, by what is shown instead.
            written: the variables that the test sets itself: everybody can read them there.
        """
        self._public_values |= set((written or {}).values())
        self._secrets |= secrets

    def redact_text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._get_redaction().redact_text(text)

    def redact_value(self, value: Any) -> Any:
        """Return a value without secrets."""
        return self._get_redaction().redact_value(value)

    def redact_failure(self, failure: Failure) -> Failure:
        """Return a failure without secrets."""
        return tuple(Line(self.redact_text(line.text), line.tone) for line in failure)

    def _get_redaction(self) -> Redaction:
        known = add_variable_values(self._secrets, self.inputs)
        size = len(known), len(self._public_values)
        if size != self._cached[0]:
            seen = {text: by for text, by in known.items() if text not in self._public_values}
            self._cached = size, Redaction(seen)
        return self._cached[1]
