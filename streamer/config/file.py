"""The text of a config's file, or a finding that says why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamer.core.errors import ConfigError, Lint

MAX_CONFIG_BYTES: Final = 1_000_000

_REASONS: Final[dict[type[Exception], str]] = {
    FileNotFoundError: "there is no such file",
    IsADirectoryError: "this is a directory; expected a file",
    PermissionError: "the file cannot be read: permission denied",
}


def read_file(name: str) -> str:
    """Return a file's text, without a byte order mark.

    Raises:
        ConfigError: it is missing, a directory, too large, not readable or not UTF-8.
    """
    if not name:
        raise _make_read_error(name, "the name of the file is empty")
    try:
        size = Path(name).stat().st_size
        if size > MAX_CONFIG_BYTES:
            raise _make_read_error(
                name, f"the file has {size:,} bytes; expected at most {MAX_CONFIG_BYTES:,}"
            )
        raw = Path(name).read_bytes()
    except (OSError, ValueError) as e:
        detail = getattr(e, "strerror", None) or e
        reason = _REASONS.get(type(e), f"the file cannot be read: {detail}")
        raise _make_read_error(name, reason) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        before = raw[: e.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"the file is not UTF-8: found byte 0x{raw[e.start]:02x}"
        lint = Lint(name, line, column, "unreadable", message, "save it as UTF-8")
        raise ConfigError([lint]) from None


def _make_read_error(name: str, message: str) -> ConfigError:
    return ConfigError([Lint(name, 1, 1, "unreadable", message)])
