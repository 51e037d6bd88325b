"""Saying what an input waits for: in the stream's state, and once in its log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from streamer.sdk.input.input_context import InputContext

GREETING_TIMEOUT_S: Final = 10.0
"""A server that has said nothing for so long is said to be waited for."""

_NO_LABELS: Final[Mapping[str, str]] = {}


class ConnectionState:
    """The state of one input's connection, for status pages."""

    def __init__(
        self, context: InputContext, name: str, labels: Mapping[str, str] = _NO_LABELS
    ) -> None:
        """Begin without a connection.

        Args:
            context: the input's.
            name: what is connected to.
            labels: of its log lines.
        """
        self._context = context
        self._name = name
        self._labels = labels
        self._lock = threading.Lock()
        self._is_connected = False

    @contextmanager
    def connecting(self) -> Iterator[None]:
        """While the block runs, a connection is being made; `up` says that it is."""
        with self._lock:
            self._is_connected = False
        timer = threading.Timer(GREETING_TIMEOUT_S, self._report_late)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def set_connected(self) -> None:
        """Note that the server has answered."""
        with self._lock:
            self._is_connected = True
            self._context.report_waiting("")

    def set_failed(self, reason: object) -> None:
        """Note why there is no connection, and report it in the stream's state."""
        with self._lock:
            self._is_connected = False
            self._context.report_waiting(f"{self._name}: {reason}")

    def _report_late(self) -> None:
        with self._lock:
            if self._is_connected or self._context.stopping:
                return
            text = f"{self._name} has not answered within {GREETING_TIMEOUT_S:g} s"
            self._context.report_waiting(text)
        self._context.log("WARN", f"Waiting: {text}", self._labels)
