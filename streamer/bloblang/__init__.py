"""Bloblang, Benthos's mapping language, compiled to Python.

Source: Benthos 4.76 (`internal/bloblang`). What differs on purpose is listed, with examples, in
streamer/docs/bloblang-differences.md.
"""

from __future__ import annotations

from streamer.bloblang.environment import (
    CapturedInputs,
    capture_inputs,
    forbid_impure,
    is_impure_allowed,
    record_reads,
)
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.interpolation import Interpolation, compile_interpolation
from streamer.bloblang.mapping import Mapping, compile_mapping
from streamer.bloblang.resolver import Uses

__all__ = [
    "BloblangError",
    "Interpolation",
    "CapturedInputs",
    "Mapping",
    "Uses",
    "compile_interpolation",
    "compile_mapping",
    "is_impure_allowed",
    "capture_inputs",
    "forbid_impure",
    "record_reads",
]
