"""The text of a config's file, or a finding that says why there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from streamer.core.errors import ConfigError, Lint
from streamer.core.extras import missing_packages_text
from streamer.core.locations import is_location
from streamer.core.permissions import ALL

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
    return _read_text(name, _read_bytes)


def read_config_text(name: str) -> str:
    """Return the text of a config, whose name may be the URL of an object; see `read_file`.

    Whoever starts the program names it; a URL in a config is another matter.
    """
    return _read_text(name, _read_object if is_location(name) else _read_bytes)


def _read_text(name: str, read: Callable[[str], bytes]) -> str:
    if not name:
        raise _make_read_error(name, "the name of the file is empty")
    try:
        raw = read(name)
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


def _read_bytes(name: str) -> bytes:
    size = Path(name).stat().st_size
    _check_size(name, size)
    return Path(name).read_bytes()


def _read_object(url: str) -> bytes:
    """Return the content of an object, which is read with the credentials of the program."""
    # Imported here: nearly all configs are files.
    from streamer.connectors.locations.location_files import LocationFiles

    try:
        files = LocationFiles(ALL)
        _check_size(url, files.size(url))
        return files.read(url)
    except ModuleNotFoundError as error:
        text = missing_packages_text("a config with this URL", [error.name or "a library"])
        raise _make_read_error(url, text) from None


def _check_size(name: str, size: int) -> None:
    if size > MAX_CONFIG_BYTES:
        raise _make_read_error(
            name, f"the file has {size:,} bytes; expected at most {MAX_CONFIG_BYTES:,}"
        )


def _make_read_error(name: str, message: str) -> ConfigError:
    return ConfigError([Lint(name, 1, 1, "unreadable", message)])
