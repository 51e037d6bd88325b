"""Writer codecs: how messages become a stream of bytes, as Benthos's `codec` field says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamer.sdk.spec import Field

CODEC: Final = "codec"
_DELIMITER_PREFIX: Final = "delim:"


@dataclass(frozen=True, slots=True)
class WriterCodec:
    """A writer codec.

    Attributes:
        suffix: what follows each message, unless the message ends with it already.
        append: whether messages are appended; otherwise each one replaces what was there.
    """

    suffix: bytes
    append: bool

    def encode_one(self, raw: bytes) -> bytes:
        """Return the bytes that one message is written as."""
        return raw if raw.endswith(self.suffix) else raw + self.suffix

    def encode_all(self, raws: list[bytes]) -> bytes:
        """Return the bytes that messages, one after the other, are written as."""
        suffix = self.suffix
        if not suffix:
            return b"".join(raws)
        return b"".join([raw if raw.endswith(suffix) else raw + suffix for raw in raws])


def read_codec(text: str) -> WriterCodec:
    """Return the codec of that name: `lines`, `append`, `all-bytes` or `delim:x`.

    Raises:
        ValueError: there is no such codec; the text says which there are.
    """
    if text == "lines":
        return WriterCodec(b"\n", append=True)
    if text == "append":
        return WriterCodec(b"", append=True)
    if text == "all-bytes":
        return WriterCodec(b"", append=False)
    if text.startswith(_DELIMITER_PREFIX):
        if text == _DELIMITER_PREFIX:
            raise ValueError("custom delimiter codec requires a non-empty delimiter: delim:x")
        return WriterCodec(text[len(_DELIMITER_PREFIX) :].encode(), append=True)
    raise ValueError(f"{text!r} is not a codec; expected lines, append, all-bytes or delim:x")


def _codec_problem(text: str) -> str | None:
    try:
        read_codec(text)
    except ValueError as error:
        return str(error)
    return None


CODEC_FIELD: Final = Field(
    CODEC,
    "string",
    "Separation of messages: `lines` (a line break after each), `append` (nothing between), "
    "`delim:x` (x after each) or `all-bytes` (each message replaces the file's content). A "
    "message that ends with the delimiter gets no second one.",
    default="lines",
    examples=("lines", "delim:\t", "delim:foobar"),
    check=_codec_problem,
)
