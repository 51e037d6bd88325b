"""What is kept in a checkpoint says its format; what a newer program wrote is not guessed at."""

from __future__ import annotations

from collections.abc import Collection

from streamer.errors import StreamerError


def check_format(
    what: str, found: int, known: Collection[int], error: type[StreamerError] = StreamerError
) -> None:
    """Refuse a format that this program cannot read.

    Args:
        what: has the format, in words.
        found: the format.
        known: those that can be read.
        error: what is raised.

    Raises:
        StreamerError: it is none of these; says whether a newer program wrote it.
    """
    if found in known:
        return
    newest = max(known)
    wrote = "a newer streamer wrote" if found > newest else "no streamer writes"
    raise error(
        f"{what} has format {found}, which {wrote}: this program reads formats up to {newest}; run "
        "the version of streamer that wrote the checkpoint, or start from another one"
    )
