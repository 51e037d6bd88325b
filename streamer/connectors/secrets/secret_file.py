"""Secrets in files: `${file:/run/secrets/x}`."""

from __future__ import annotations

import os
import stat
from typing import Final

from streamer.connectors.secrets.store import SecretError
from streamer.core.permissions import Permissions

MAX_SECRET_BYTES: Final = 64 << 10
_SHARED_DIRECTORIES: Final = ("/run/secrets/", "/var/run/secrets/")
"""Where Docker and Kubernetes give secrets to a container, readable for all users in it."""


def read_secret_file(path: str, permissions: Permissions) -> str | None:
    """Return the text of a file, without the one line end that editors and `echo` leave behind.

    Args:
        path: the file; a relative one is below the working directory.
        permissions: of the config.

    Returns:
        The text; None when there is no such file.

    Raises:
        SecretError: it cannot be read, is too large, or is no UTF-8.
        NotPermittedError: files are out of reach for the config.
    """
    try:
        with permissions.open(path, "rb") as file:
            raw: bytes = file.read(MAX_SECRET_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise SecretError(f"the file {path} cannot be read: {e.strerror or e}") from None
    if len(raw) > MAX_SECRET_BYTES:
        raise SecretError(f"the file {path} has over {MAX_SECRET_BYTES:,} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise SecretError(f"the file {path} is not UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def is_readable_by_all(path: str) -> bool:
    """Return whether every user of the machine may read a file."""
    try:
        real_path = os.path.realpath(path)
        mode = os.stat(real_path).st_mode
    except (OSError, ValueError):
        return False
    if os.path.abspath(path).startswith(_SHARED_DIRECTORIES):
        return False
    return bool(mode & stat.S_IROTH)
