"""`xml`: replaces each message, an XML document, by the value that it stands for.

Attributes are keys with a hyphen before them, the text of an element that has attributes is
`#text`, repeated elements are arrays, "XML comments, directives, and process instructions are
ignored".
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.golib import xmltree
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

OPERATOR: Final = "operator"
CAST: Final = "cast"

TO_JSON: Final = "to_json"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "xml",
    "Parses messages as XML.",
    description=(
        "Attributes become keys with a hyphen before them, the text of an element that has "
        "attributes becomes `#text`, and repeated elements become an array. Comments, directives "
        "and processing instructions are left out."
    ),
    fields=(
        Field(
            OPERATOR,
            "string",
            "Operation: `to_json`.",
            default="",
            check=lambda text: (
                None if text == TO_JSON else f"operator not recognised: {text}; set {TO_JSON}"
            ),
            examples=(TO_JSON,),
        ),
        Field(
            CAST,
            "bool",
            "True if texts that are numbers or booleans become such values.",
            default=False,
        ),
    ),
    check=lambda parsed: (
        [] if parsed[OPERATOR] == TO_JSON else [(OPERATOR, f"is not set; set it to {TO_JSON}")]
    ),
    examples=(
        Example(
            "Parse XML",
            "pipeline:\n  processors:\n    - xml:\n        operator: to_json\n        cast: true\n",
        ),
    ),
    begin={"operator": "to_json"},
    categories=("Parsing",),
)


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Take whether texts are cast."""
    cast: bool = parsed[CAST]

    def to_json(message: Message, ex: Execution) -> Message:
        return message.with_doc(xmltree.parse_document(message.raw, cast))

    return PerMessageProcessor(to_json, ComponentRef(context.component))
