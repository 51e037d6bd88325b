"""Methods that parse and format XML."""

from __future__ import annotations

from typing import Any

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import QueryError, TypeMismatch
from streamer.bloblang.golib import xmltree, xmlwriter
from streamer.bloblang.golib.convert import text_of

_CATEGORY = "Parsing"


@declare(
    "parse_xml",
    _CATEGORY,
    Param("cast", "bool", default=False),
    examples=(
        Example(
            "root = this.a.parse_xml()",
            '{"a":"<r><n id=\\"1\\">2</n><n>x</n><e/></r>"}',
            '{"r":{"e":"","n":[{"#text":"2","-id":"1"},"x"]}}',
        ),
        Example(
            "root = this.a.parse_xml(cast: true)",
            '{"a":"<r><n id=\\"1\\">2.5</n><b>True</b></r>"}',
            '{"r":{"b":true,"n":{"#text":2.5,"-id":1}}}',
        ),
    ),
    own_errors=True,
    origin=CONNECT,
)
def parse_xml(value: Any, cast: bool) -> dict[str, Any]:
    """The value of an XML text: attributes as `-name`, text beside them as `#text`."""
    raw = value if type(value) is bytes else text_of(value, "bytes").encode(errors="replace")
    try:
        return xmltree.parse_document(raw, cast)
    except QueryError as e:
        raise QueryError(f"parsing value as XML: {e}") from None


@declare(
    "format_xml",
    _CATEGORY,
    Param("indent", "string", default="    "),
    Param("no_indent", "bool", default=False),
    Param("root_tag", "string", default=None),
    examples=(
        Example(
            "root = this.format_xml(no_indent: true)",
            '{"r":{"n":{"#text":"2","-id":"1"},"e":[1,""]}}',
            '<r><e>1</e><e/><n id="1">2</n></r>',
        ),
        Example(
            'root = this.format_xml(indent: "  ", root_tag: "all")',
            '{"a":1}',
            "<all>\n  <a>1</a>\n</all>",
        ),
    ),
    own_errors=True,
    origin=CONNECT,
)
def format_xml(value: Any, indent: str, no_indent: bool, root_tag: str | None) -> bytes:
    """The object as XML bytes, keys in order; `-name` is an attribute, `#text` the text."""
    if type(value) is not dict:
        raise TypeMismatch(value, "object")
    try:
        # Without indentation, the root's name has no say.
        if no_indent:
            return xmlwriter.write_document(value, None, None)
        return xmlwriter.write_document(value, indent, root_tag)
    except RecursionError:
        raise QueryError("the value is nested too deep to be written as XML") from None
