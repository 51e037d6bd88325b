"""Grok expressions: regular expressions that are put together from named patterns.

`%{NUMBER:size:int}` is the pattern `NUMBER`, captured as `size` and turned into an integer. The
engine is RE2, as in Benthos, so that no expression takes more than linear time.
Source: Benthos `processor_grok.go` and its library Jeffail/grok; asked with
`tests/components/processors/`.
"""

from __future__ import annotations

from streamer.connectors.formats.grok.captures import GrokExpression, compile_expression
from streamer.connectors.formats.grok.patterns import (
    ExpandedPattern,
    GrokError,
    PatternSet,
    default_patterns,
)

__all__ = [
    "GrokExpression",
    "ExpandedPattern",
    "GrokError",
    "PatternSet",
    "compile_expression",
    "default_patterns",
]
