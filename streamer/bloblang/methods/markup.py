"""Methods for HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.golib.convert import text_of
from streamer.bloblang.golib.text import go_type
from streamer.bloblang.runtime import html_sanitizer


@declare(
    "strip_html",
    "String Manipulation",
    Param("preserve", "any", default=None),
    examples=(
        Example("root = this.a.strip_html()", '{"a":"<p>x <b>&lt; y</b></p>"}', "x &lt; y"),
        Example(
            'root = this.a.strip_html(["b"])', '{"a":"<p>x <b id=\\"1\\">y</b></p>"}', "x <b>y</b>"
        ),
    ),
    binds=True,
    own_errors=True,
    origin=CONNECT,
)
def strip_html(preserve: Any) -> Callable[[Any], str]:
    """The text without HTML's tags; elements that are listed stay, without their attributes."""
    names = preserve if type(preserve) is list else []
    for place, name in enumerate(names):
        if type(name) is not str:
            kind = go_type(name)
            raise ArgumentError(f"invalid arg at index {place}: expected string, got {kind}")
    allowed = frozenset(name.lower() for name in names)
    return lambda value: html_sanitizer.sanitize(text_of(value), allowed)
