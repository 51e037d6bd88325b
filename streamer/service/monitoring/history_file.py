"""The file in which the history of a stream's figures survives a restart.

It is `history` in the checkpoint's directory on this machine: of a checkpoint elsewhere, another
machine that goes on from it begins with an empty history. Nothing but charts depends on it, so a
file that is damaged, or of another checkpoint, is left out.
"""

from __future__ import annotations

import base64
import os
import zlib
from pathlib import Path
from typing import Any, Final

import orjson

from streamer.service.monitoring.stream_figures import Marker, MarkerKind, StreamFigures

FILE_NAME: Final = "history"
MAX_FILE_BYTES: Final = 1_000_000

_MAGIC: Final = b"streamer-history 1\n"
_MAX_BODY_BYTES: Final = 4_000_000
_CHECKSUM_BYTES: Final = 4


def save_history(path: Path, identity: str, figures: StreamFigures) -> None:
    """Replace the file at once.

    Args:
        path: the file.
        identity: of the checkpoint.
        figures: what is saved.

    Raises:
        OSError: it cannot be written.
    """
    fields = figures.history.to_fields()
    for ring in fields["rings"]:
        packed = {name: base64.b64encode(body).decode() for name, body in ring["columns"].items()}
        ring["columns"] = packed
    markers = [[*one] for one in figures.markers()]
    document = {"checkpoint": identity, "markers": markers, **fields}
    body = zlib.compress(orjson.dumps(document), 1)
    draft = path.with_suffix(".tmp")
    checksum = zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(_MAGIC + checksum + body)
    draft.replace(path)


def load_history(path: Path, identity: str, figures: StreamFigures) -> str:
    """Load the file, if it is there and whole, and nothing was recorded before.

    Args:
        path: the file.
        identity: of the checkpoint.
        figures: take what is in it.

    Returns:
        Why it was left out; an empty text when it was not, or is not there.
    """
    if not figures.history.is_empty:
        return ""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return f"it has more than {MAX_FILE_BYTES:,} bytes"
        document = _unpack(path.read_bytes())
        if document["checkpoint"] != identity:
            return "it is of another checkpoint"
        for ring in document["rings"]:
            columns = ring["columns"].items()
            ring["columns"] = {name: base64.b64decode(body) for name, body in columns}
        markers = [
            Marker(float(at), MarkerKind(kind), str(text), int(times))
            for at, kind, text, times in document["markers"]
        ]
        figures.history.load_fields(document, figures.clock())
        figures.load_markers(markers)
    except FileNotFoundError:
        return ""
    except OSError as e:
        return str(e)
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as e:
        return f"it is damaged: {e}"
    return ""


def load_history_at_rest(directory: Path, figures: StreamFigures) -> None:
    """Load the history of a stream that does not run, if there is one that is whole.

    Args:
        directory: of its checkpoint on this machine.
        figures: take what is in it.
    """
    if not figures.history.is_empty:
        return
    try:
        with (directory / "streamer.json").open("rb") as file:
            identity = orjson.loads(file.read(MAX_FILE_BYTES)).get("identity")
    except (OSError, ValueError, AttributeError):
        return
    if isinstance(identity, str) and identity:
        load_history(directory / FILE_NAME, identity, figures)


def _unpack(content: bytes) -> Any:
    """Return the document of a file.

    Raises:
        ValueError: it is something else, or not what was written.
    """
    if not content.startswith(_MAGIC):
        raise ValueError("it begins with something else")
    checksum, body = (
        content[len(_MAGIC) : len(_MAGIC) + _CHECKSUM_BYTES],
        content[len(_MAGIC) + _CHECKSUM_BYTES :],
    )
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise ValueError("its check sum is another one")
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(body, _MAX_BODY_BYTES)
    if unpacking.unconsumed_tail:
        raise ValueError("it holds too much")
    return orjson.loads(text)
