"""Grok expressions: regular expressions that are put together from named patterns.

`%{NUMBER:size:int}` is the pattern `NUMBER`, captured as `size` and turned into an integer. The
engine is RE2, as in Benthos, so that no expression takes more than linear time.
Source: Benthos `processor_grok.go` and its library Jeffail/grok; asked with `tests/processors/`.
"""

from __future__ import annotations

from streamer.grok.captures import Captures, compile_expression
from streamer.grok.patterns import Expression, GrokError, Patterns, default_patterns

__all__ = [
    "Captures",
    "Expression",
    "GrokError",
    "Patterns",
    "compile_expression",
    "default_patterns",
]
