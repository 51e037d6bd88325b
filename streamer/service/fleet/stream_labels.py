"""Labels of streams: names with values by which people group and find them.

They are the service's, and no part of a config: configs of Benthos have no place for them, and a
change of one neither restarts a stream nor makes a revision.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any, Final

from streamer.service.fleet.deployment_store import DeploymentStore
from streamer.service.fleet.errors import BadRequestError

MAX_LABELS: Final = 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,62}")
_VALUE: Final = re.compile(r"[A-Za-z0-9_./-]{0,63}")
_EXPECTED: Final = "letters, digits and _ . / -, 63 characters at most"


def parse_labels(value: Any) -> dict[str, str]:
    """Return labels that somebody has sent.

    Raises:
        BadRequestError: they are none.
    """
    if not isinstance(value, Mapping):
        raise BadRequestError("labels are no object; expected names with values: {team: payments}")
    if len(value) > MAX_LABELS:
        raise BadRequestError(f"there are {len(value)} labels, expected {MAX_LABELS} at most")
    labels: dict[str, str] = {}
    for name, text in value.items():
        shown = str(text).lower() if isinstance(text, bool) else str(text)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadRequestError(f"the label's name is {str(name)[:40]!r}, expected {_EXPECTED}")
        if isinstance(text, Mapping | list) or text is None or not _VALUE.fullmatch(shown):
            raise BadRequestError(f"the label {name} is {shown[:40]!r}, expected {_EXPECTED}")
        labels[name] = shown
    return dict(sorted(labels.items()))


class StreamLabels:
    """The labels of all streams. Threads may share it."""

    def __init__(self, store: DeploymentStore) -> None:
        """Read the labels of a store, which keeps them."""
        self._store = store
        self._lock = threading.Lock()
        self._labels = store.labels()

    def labels_of(self, stream_id: str) -> dict[str, str]:
        """Return the labels of a stream."""
        with self._lock:
            return dict(self._labels.get(stream_id, {}))

    def set_labels(self, stream_id: str, labels: Mapping[str, str]) -> None:
        """Give a stream these labels, and no others.

        Raises:
            RefusedError: another service has taken over.
        """
        with self._lock:
            self._store.set_labels(stream_id, labels)
            self._labels[stream_id] = dict(labels)

    def forget_stream(self, stream_id: str) -> None:
        """Forget the labels of a stream that the store has forgotten."""
        with self._lock:
            self._labels.pop(stream_id, None)
