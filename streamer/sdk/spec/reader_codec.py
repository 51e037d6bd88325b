"""The old way to say how a stream is cut: one text, such as `gzip/csv`, for nested scanners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.sdk.spec.component import Kind, ParsedComponent, ParsedFields

_UNAVAILABLE_CODECS: Final = {
    "avro-ocf": "Avro's container files cannot be read; convert them, or read them with Spark",
    "csv-safe": "use the scanner csv with continue_on_error: true",
    "multipart": "use the scanner alone, and cut batches with the input batched",
}
_OLD_NAMES: Final = {"csv-gzip": "gzip/csv", "tar-gzip": "gzip/tar"}
# By the file's name, as Benthos documents it; `.csv.gz` it lists but never finds.
_BY_NAME: Final = (
    (r"\.csv$", "csv"),
    (r"\.csv\.gz(ip)?$", "gzip/csv"),
    (r"\.tar$", "tar"),
    (r"\.(tgz|tar\.gz(ip)?)$", "gzip/tar"),
    ("", "all-bytes"),
)


def _scanner_component(name: str, config: Any) -> ParsedComponent:
    return ParsedComponent(Kind.SCANNER, name, config=config)


def _lines_scanner(delimiter: str | None, max_buffer: int) -> ParsedComponent:
    fields = {
        "custom_delimiter": delimiter,
        "max_buffer_size": max_buffer,
        "omit_empty": False,
    }
    return _scanner_component("lines", ParsedFields(fields))


def _csv_scanner(delimiter: str | None) -> ParsedComponent:
    fields = {
        "custom_delimiter": delimiter,
        "parse_header_row": True,
        "lazy_quotes": False,
        "continue_on_error": False,
    }
    return _scanner_component("csv", ParsedFields(fields))


def _chunks_scanner(text: str) -> ParsedComponent:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"invalid chunk size for chunker codec: {text!r}; expected chunker:1024")
    return _scanner_component("chunker", ParsedFields({"size": int(text)}))


def _csv_scanner_of(text: str) -> ParsedComponent:
    if len(text) != 1:
        raise ValueError("csv codec requires a single character delimiter")
    return _csv_scanner(text)


def codec_scanner(text: str, max_buffer: int) -> ParsedComponent:
    """Return the scanner that a codec stands for.

    Args:
        text: the codec: what a stream is packed with, if it is, and how it is cut, with slashes
            between.
        max_buffer: the most bytes of a line or a segment.

    Raises:
        ValueError: there is no such codec, or it is not available; says what to use instead.
    """
    text = _OLD_NAMES.get(text, text)
    if text == "auto":
        return _scanner_component(
            "switch",
            tuple(
                ParsedFields(
                    {"re_match_name": pattern or None, "scanner": codec_scanner(codec, max_buffer)}
                )
                for pattern, codec in _BY_NAME
            ),
        )
    names = text.split("/")
    made: ParsedComponent | None = None
    for name in reversed(names):
        wrapped = _wrapping_scanner(
            name, made or _scanner_component("to_the_end", ParsedFields({}))
        )
        if wrapped is not None:
            made = wrapped
        elif made is not None:
            following = names[names.index(name) + 1]
            raise ValueError(f"unable to follow codec '{name}' with '{following}'")
        else:
            made = _cutting_scanner(name, max_buffer)
    assert made is not None
    return made


def _wrapping_scanner(name: str, into: ParsedComponent) -> ParsedComponent | None:
    if name in ("gzip", "pgzip"):
        return _scanner_component("decompress", ParsedFields({"algorithm": name, "into": into}))
    return (
        _scanner_component("skip_bom", ParsedFields({"into": into})) if name == "skipbom" else None
    )


def _cutting_scanner(text: str, max_buffer: int) -> ParsedComponent:
    name, colon, value = text.partition(":")
    if name in _UNAVAILABLE_CODECS:
        raise ValueError(f"the codec {text!r} is not available: {_UNAVAILABLE_CODECS[name]}")
    plain: Mapping[str, Callable[[], ParsedComponent]] = {
        "all-bytes": lambda: _scanner_component("to_the_end", ParsedFields({})),
        "csv": lambda: _csv_scanner(None),
        "lines": lambda: _lines_scanner(None, max_buffer),
        "tar": lambda: _scanner_component("tar", ParsedFields({})),
    }
    fields = {"pattern": value, "max_buffer_size": max_buffer}
    valued: Mapping[str, Callable[[], ParsedComponent]] = {
        "chunker": lambda: _chunks_scanner(value),
        "csv": lambda: _csv_scanner_of(value),
        "delim": lambda: _lines_scanner(value, max_buffer),
        "regex": lambda: _scanner_component("re_match", ParsedFields(fields)),
    }
    make = (valued if colon else plain).get(name)
    if make is None:
        raise ValueError(
            f"codec was not recognised: {text}; expected all-bytes, chunker:x, csv, csv:x, "
            "delim:x, lines, regex:x or tar, with gzip/, pgzip/ or skipbom/ before it, or auto"
        )
    if colon and not value:
        raise ValueError(f"{name} codec requires a non-empty value: {name}:x")
    return make()
