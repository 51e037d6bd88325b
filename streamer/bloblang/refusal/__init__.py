"""Why a text is no mapping, in Benthos's words: a second, slow reader for texts that were refused.

The tables of parser.py say where they got stuck; Benthos says what it would have taken there, a
matter of which alternatives it tries and in which order. This package tries them the same way and
builds nothing; it runs only when there is an error to tell.
"""

from __future__ import annotations

from streamer.bloblang.refusal.reader import Miss
from streamer.bloblang.refusal.statements import Statements

__all__ = ["Miss", "field_error", "mapping_error", "statements_error"]


def mapping_error(text: str) -> Miss | None:
    """Return what Benthos says of a text that it does not take for a mapping; else None."""
    return Statements(text).mapping_error()


def statements_error(text: str) -> Miss | None:
    """Return what Benthos says of a text that does not consist of statements; else None."""
    return Statements(text).statements_error()


def field_error(text: str) -> Miss | None:
    """Return what Benthos says of a string whose interpolations it cannot read; else None."""
    return Statements(text).field_error()
