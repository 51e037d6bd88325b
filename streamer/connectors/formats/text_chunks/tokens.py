"""Tokens of OpenAI's models, by tiktoken, which gets its tables when they are needed first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.http_client.exchange_deadline import fetch_answer
from streamer.core.errors import MessageError
from streamer.core.permissions import ALL, Permissions

if TYPE_CHECKING:
    import tiktoken

ENCODINGS: Final = ("cl100k_base", "o200k_base", "p50k_base", "p50k_edit", "r50k_base")
DEFAULT_ENCODING: Final = "cl100k_base"

_DOWNLOAD_TIMEOUT_S: Final = 60.0
_COOL_DOWN_S: Final = 10.0
"""How long a table that cannot be had is not tried again: each message would wait for it."""


class Tokenizer:
    """Turns texts into tokens, and back. Threads may share it."""

    def __init__(
        self,
        name: str,
        allowed_special: Sequence[str],
        disallowed_special: Sequence[str],
        permissions: Permissions = ALL,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the settings; the table is loaded when it is needed first.

        Args:
            name: of the encoding.
            allowed_special: texts of special tokens that count as these; `all` for all.
            disallowed_special: those that must not be in a text; `all` for all others.
            permissions: to which addresses it may connect.
            now: a clock that never runs backwards, seconds.
        """
        self._name = name
        self._allowed: Any = "all" if "all" in allowed_special else set(allowed_special)
        self._disallowed: Any = "all" if "all" in disallowed_special else set(disallowed_special)
        self._permissions = permissions
        self._now = now
        self._lock = threading.Lock()
        self._encoding: tiktoken.Encoding | None = None
        self._failure: tuple[float, str] | None = None

    def load(self) -> tiktoken.Encoding:
        """Return the encoding.

        Raises:
            MessageError: its table is not at hand, and cannot be had.
        """
        if self._encoding is not None:
            return self._encoding
        with self._lock:
            if self._failure is not None and self._now() < self._failure[0]:
                raise MessageError(self._failure[1])
            if self._encoding is None:
                self._encoding = self._load()
            return self._encoding

    def _load(self) -> tiktoken.Encoding:
        import tiktoken
        import tiktoken.load

        # The library's own download has no end where a server does not answer.
        tiktoken.load.read_file = self._download
        try:
            return tiktoken.get_encoding(self._name)
        except Exception as error:  # noqa: BLE001 - whatever its client of HTTP raises
            text = (
                f"the encoding {self._name} cannot be loaded: {error}; let this machine reach "
                "openaipublic.blob.core.windows.net, or set TIKTOKEN_CACHE_DIR to a directory that "
                "has its table"
            )
            self._failure = self._now() + _COOL_DOWN_S, text
            raise MessageError(text) from None

    def _download(self, blobpath: str) -> bytes:
        status, content = fetch_answer(
            "GET", blobpath, _DOWNLOAD_TIMEOUT_S, permissions=self._permissions
        )
        if status != 200:
            raise OSError(f"{blobpath} answers with status {status}")
        return content

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text.

        Raises:
            MessageError: it has the text of a special token that is not allowed.
        """
        encoding = self.load()
        try:
            return encoding.encode(
                text, allowed_special=self._allowed, disallowed_special=self._disallowed
            )
        except ValueError as error:
            raise MessageError(str(error).splitlines()[0]) from None

    def length(self, text: str) -> int:
        """Return how many tokens a text has; see `encode`."""
        return len(self.encode(text))

    def split(self, text: str, size: int, overlap: int) -> list[bytes]:
        """Return a text in chunks of so many tokens; see `encode`."""
        tokens = self.encode(text)
        encoding = self.load()
        return [
            encoding.decode_bytes(tokens[start : start + size])
            for start in range(0, len(tokens), size - overlap)
        ]
