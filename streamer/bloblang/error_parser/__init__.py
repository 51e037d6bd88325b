"""Finds why a text is no mapping, in Benthos's words: a second, slow parser of refused texts.

The tables of parser.py say where they got stuck; Benthos says what it would have taken there, a
matter of which alternatives it tries and in which order. This package tries them the same way and
builds nothing; it runs only when there is an error to tell.
"""

from __future__ import annotations

from streamer.bloblang.error_parser.statements import MappingReader
from streamer.bloblang.error_parser.tokens import ParseFailure

__all__ = ["ParseFailure", "find_field_error", "find_mapping_error", "find_statements_error"]


def find_mapping_error(text: str) -> ParseFailure | None:
    """Return what Benthos says of a text that it does not take for a mapping; else None."""
    return MappingReader(text).find_mapping_error()


def find_statements_error(text: str) -> ParseFailure | None:
    """Return what Benthos says of a text that does not consist of statements; else None."""
    return MappingReader(text).find_statements_error()


def find_field_error(text: str) -> ParseFailure | None:
    """Return what Benthos says of a string whose interpolations it cannot read; else None."""
    return MappingReader(text).find_field_error()
