"""The fields of every input that cuts a stream of bytes into messages."""

from __future__ import annotations

from typing import Any, Final

from streamer.spec.context import BuildContext
from streamer.spec.field import Field
from streamer.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.spec.parsed import Parsed, ParsedComponent
from streamer.spec.reader_codec import codec_scanner

FIELD_SCANNER: Final = "scanner"
FIELD_CODEC: Final = "codec"
FIELD_MAX_BUFFER: Final = "max_buffer"

_MAX_BUFFER: Final = 1_000_000


def _problem(text: str) -> str | None:
    try:
        codec_scanner(text, _MAX_BUFFER)
    except ValueError as error:
        return str(error)
    return None


SCANNED_FIELDS: Final = (
    Field(
        FIELD_CODEC,
        "string",
        "The old way to say how the bytes are cut, such as `lines`, `delim:x`, `gzip/csv` or "
        "`auto`, which chooses by the file's name; it wins over `scanner`, which to use instead.",
        optional=True,
        deprecated=True,
        check=_problem,
    ),
    Field(
        FIELD_MAX_BUFFER,
        "int",
        "The most bytes of a message that `codec` cuts.",
        default=_MAX_BUFFER,
        deprecated=True,
    ),
    Field(
        FIELD_SCANNER,
        "scanner",
        "How the stream of bytes is cut into messages.",
        default={"lines": {}},
        optional=True,
    ),
    AUTO_REPLAY_NACKS_FIELD,
)


def scanned_by(parsed: Parsed) -> tuple[str, ParsedComponent]:
    """Return the scanner that an input's fields name, and the field: the codec's, if it has one."""
    codec = parsed[FIELD_CODEC]
    if codec:
        return FIELD_CODEC, codec_scanner(codec, parsed[FIELD_MAX_BUFFER] or _MAX_BUFFER)
    scanner: ParsedComponent = parsed[FIELD_SCANNER]
    return FIELD_SCANNER, scanner


def build_scanner(parsed: Parsed, context: BuildContext) -> Any:
    """Build the scanner that an input's fields name; see `streamer.source.scanning`."""
    return context.build(scanned_by(parsed)[1])
