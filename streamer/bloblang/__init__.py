"""Bloblang, Benthos's mapping language, compiled to Python.

Source: Benthos 4.76 (`internal/bloblang`). What differs on purpose is listed, with examples, in
streamer/docs/bloblang-differences.md.
"""

from __future__ import annotations

from streamer.bloblang.errors import BloblangError
from streamer.bloblang.interpolation import Interpolation, compile_interpolation
from streamer.bloblang.mapping import Mapping, compile_mapping
from streamer.bloblang.outside import (
    Luggage,
    impure_allowed,
    luggage,
    no_impure,
    noting,
)
from streamer.bloblang.resolver import Uses

__all__ = [
    "BloblangError",
    "Interpolation",
    "Luggage",
    "Mapping",
    "Uses",
    "compile_interpolation",
    "compile_mapping",
    "impure_allowed",
    "luggage",
    "no_impure",
    "noting",
]
