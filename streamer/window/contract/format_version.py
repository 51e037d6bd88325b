"""Versions of the formats in a checkpoint; state that a newer program wrote is refused."""

from __future__ import annotations

from collections.abc import Collection

from streamer.core.errors import StreamerError


def check_format(
    what: str, version: int, known: Collection[int], error: type[StreamerError] = StreamerError
) -> None:
    """Refuse a format that this program cannot read.

    Args:
        what: has the format, in words.
        version: the format.
        known: those that can be read.
        error: what is raised.

    Raises:
        StreamerError: it is none of these; says whether a newer program wrote it.
    """
    if version in known:
        return
    newest = max(known)
    wrote = "a newer streamer wrote" if version > newest else "no streamer writes"
    raise error(
        f"{what} has format {version}, which {wrote}: this program reads formats up to {newest}; "
        "run the version of streamer that wrote the checkpoint, or start from another one"
    )
