"""Bloblang, Benthos's mapping language, compiled to Python.

Source: Benthos 4.76 (`internal/bloblang`). What differs on purpose is listed, with examples, in
streamer/docs/bloblang-differences.md.
"""

from __future__ import annotations

from streamer.bloblang.environment import (
    CapturedInputs,
    MappingInputs,
    forbid_impure,
    nest_inputs,
    restore_inputs,
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
    "MappingInputs",
    "Uses",
    "compile_interpolation",
    "compile_mapping",
    "forbid_impure",
    "nest_inputs",
    "restore_inputs",
]
