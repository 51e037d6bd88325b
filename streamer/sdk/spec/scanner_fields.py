"""The fields of every input that cuts a stream of bytes into messages."""

from __future__ import annotations

from typing import Any, Final

from streamer.sdk.spec.component import Field, ParsedComponent, ParsedFields
from streamer.sdk.spec.context import BuildContext
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.sdk.spec.reader_codec import codec_scanner

FIELD_SCANNER: Final = "scanner"
FIELD_CODEC: Final = "codec"
FIELD_MAX_BUFFER: Final = "max_buffer"

_DEFAULT_MAX_BUFFER_BYTES: Final = 1_000_000


def _codec_problem(text: str) -> str | None:
    try:
        codec_scanner(text, _DEFAULT_MAX_BUFFER_BYTES)
    except ValueError as error:
        return str(error)
    return None


SCANNER_FIELDS: Final = (
    Field(
        FIELD_CODEC,
        "string",
        "Deprecated form of `scanner`, such as `lines`, `delim:x`, `gzip/csv` or `auto`, "
        "which depends on the file's name. It overrides `scanner`.",
        optional=True,
        deprecated=True,
        check=_codec_problem,
    ),
    Field(
        FIELD_MAX_BUFFER,
        "int",
        "The most bytes of a message that `codec` cuts.",
        default=_DEFAULT_MAX_BUFFER_BYTES,
        deprecated=True,
    ),
    Field(
        FIELD_SCANNER,
        "scanner",
        "The scanner that divides the bytes into messages.",
        default={"lines": {}},
        optional=True,
    ),
    AUTO_REPLAY_NACKS_FIELD,
)


def scanner_of(parsed: ParsedFields) -> tuple[str, ParsedComponent]:
    """Return the scanner that an input's fields name, and the field: the codec's, if it has one."""
    codec = parsed[FIELD_CODEC]
    if codec:
        return FIELD_CODEC, codec_scanner(
            codec, parsed[FIELD_MAX_BUFFER] or _DEFAULT_MAX_BUFFER_BYTES
        )
    scanner: ParsedComponent = parsed[FIELD_SCANNER]
    return FIELD_SCANNER, scanner


def build_scanner(parsed: ParsedFields, context: BuildContext) -> Any:
    """Build the scanner that an input's fields name; see `streamer.sdk.input.scanning`."""
    return context.build(scanner_of(parsed)[1])
