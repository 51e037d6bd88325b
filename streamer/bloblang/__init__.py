"""Bloblang, Benthos's mapping language, compiled to Python.

Source: Benthos 4.76 (`internal/bloblang`); differences are on purpose and few, see docs/bloblang.
"""

from __future__ import annotations

from streamer.bloblang.errors import BloblangError
from streamer.bloblang.interpolation import Interpolation, compile_interpolation
from streamer.bloblang.mapping import Mapping, compile_mapping
from streamer.bloblang.resolver import Uses

__all__ = [
    "BloblangError",
    "Interpolation",
    "Mapping",
    "Uses",
    "compile_interpolation",
    "compile_mapping",
]
