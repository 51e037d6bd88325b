"""Files of streams that were refused: what is wrong with each, for whoever looks for its stream.

A file that does not run has to be seen where streams are looked for, and not only in the log of the
program. A file is refused from when it was read until it is right, or gone.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.config.placeholders import Variable, find_variables
from streamer.config.references import format_reference, read_reference
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.redaction import SCRUBBED, Redaction, names_credential
from streamer.core.timestamps import format_rfc3339
from streamer.service.monitoring.stream_condition import Condition, StreamCondition

_MAX_FINDINGS: Final = 50
"""Findings of a file that are kept: a file that is no config may have one for each line."""

_MAX_CHARACTERS: Final = 2_000
"""Characters of each."""

_FIELD: Final = re.compile(r"""([\w.\-]+)["']?[ \t]*[:=][ \t]*("[^"\n]*"|'[^'\n]*'|[^\s,}\]]+)""")
"""A field and its value, in a text that may be no YAML."""


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that was refused.

    Attributes:
        path: the file.
        since: when it was refused first, as it is now; Unix ns.
        findings: what is wrong, each with its place where it has one.
        is_change: whether a stream of that file goes on as it was.
    """

    path: str
    since: int
    findings: tuple[str, ...]
    is_change: bool

    @property
    def text(self) -> str:
        """The refusal in a sentence."""
        if self.is_change:
            return f"Change of {self.path} refused; the stream goes on as it was"
        return f"{self.path} refused; its stream does not run"

    @property
    def log_text(self) -> str:
        """The refusal in a line, with the first finding."""
        what = f"Change of {self.path}" if self.is_change else self.path
        return f"{what} refused: {self.findings[0] if self.findings else 'it cannot be read'}"

    def to_document(self) -> dict[str, Any]:
        """Return the refusal for JSON."""
        return {
            "file": self.path,
            "since": format_rfc3339(self.since),
            "text": self.text,
            "findings": list(self.findings),
        }

    def to_status(self, now: float) -> dict[str, Any]:
        """Return what the list of streams says where there is no stream; unknown figures are None.

        Args:
            now: the wall clock, Unix s.
        """
        error = self.findings[0] if self.findings else self.text
        condition = StreamCondition(Condition.REFUSED, self.since / SECOND, error=error)
        unknown = ("as_of", "messages", "open_windows", "sent", "errors")
        flows = ("in_rate", "out_rate", "error_rate", "counted_since", "received")
        lags = ("event_time_lag", "backlog", "kafka_lag", "kafka_lag_worst")
        return {
            "active": False,
            "uptime": 0.0,
            "uptime_str": "0s",
            "state": str(Condition.REFUSED),
            "condition": condition.to_document(now),
            "refusal": self.to_document(),
            "waits_for": "",
            "reason": error,
            "rejected": None,
            "restarts": 0,
            "source": self.path,
            "revision": 0,
            **dict.fromkeys((*unknown, *flows, *lags)),
            "expectations": [],
        }


class RefusedFiles:
    """The files that are refused now, by the id of their stream. Threads may share it."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """Begin with none; `clock` gives Unix ns."""
        self._clock = clock
        self._lock = threading.Lock()
        self._files: dict[str, RefusedFile] = {}

    def refuse(
        self, stream_id: str, path: str, findings: Sequence[str], *, is_change: bool
    ) -> RefusedFile:
        """Add a refused file; return its entry."""
        texts = tuple(_shorten(one) for one in findings[:_MAX_FINDINGS])
        if len(findings) > _MAX_FINDINGS:
            texts = (*texts, f"and {len(findings) - _MAX_FINDINGS} more")
        refused = RefusedFile(path, self._clock(), texts, is_change)
        with self._lock:
            self._files[stream_id] = refused
        return refused

    def accept(self, stream_id: str) -> None:
        """Forget the refusal of a file that runs now, or is gone."""
        with self._lock:
            self._files.pop(stream_id, None)

    def get(self, stream_id: str) -> RefusedFile | None:
        """Return the refusal of a stream's file; None for none."""
        with self._lock:
            return self._files.get(stream_id)

    def all(self) -> dict[str, RefusedFile]:
        """Return the refused files, by the id of their stream."""
        with self._lock:
            return dict(self._files)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"


def _read_value(variable: Variable, environ: Mapping[str, str]) -> str:
    try:
        return read_reference(variable, environ).value or ""
    except StreamerError:
        return ""


def redact_findings(findings: Sequence[str], text: str, environ: Mapping[str, str]) -> list[str]:
    """Return the findings about a config without its secrets.

    A config that is refused was not read, so that nobody knows what its secrets are: what stands
    behind a name such as `password`, and what its variables stand for, is taken for one.

    Args:
        findings: of the config; they quote from it.
        text: the config, as it stands in the file.
        environ: the environment that its variables are from.
    """
    secrets = {
        value: format_reference(one)
        for one in find_variables(text)
        if (value := _read_value(one, environ))
    }
    for match in _FIELD.finditer(text):
        value = match[2].strip().strip("\"'")
        if value and names_credential(match[1]):
            secrets.setdefault(value, SCRUBBED)
    redaction = Redaction(secrets)
    return [redaction.redact_text(one) for one in findings]
