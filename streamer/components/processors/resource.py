"""`resource`: runs a processor that is defined once, under `processor_resources`, by its label.

"This processor allows you to reference the same configured processor resource in multiple places,
and can also tidy up large nested configs."
"""

from __future__ import annotations

from typing import Any, Final

from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "resource",
    "Runs the processor of `processor_resources` that has this label.",
    description=(
        "So one processor can be used in several places, and a long config can be divided."
    ),
    config=Field(
        "",
        "string",
        "The label of the processor resource.",
        default="",
        refers=Kind.PROCESSOR,
        check=lambda label: None if label else "no label is given; name one of processor_resources",
        examples=("parse_reading",),
    ),
    examples=(
        Example(
            "Use a processor by its label",
            "pipeline:\n"
            "  processors:\n"
            "    - resource: parse_reading\n"
            "processor_resources:\n"
            "  - label: parse_reading\n"
            "    mapping: root.value = this.value.number()\n",
        ),
    ),
    categories=("Utility",),
    runs="children",
)


def build(parsed: str, context: BuildContext) -> Any:
    """Return the resource itself, built once for the context: a label adds no work of its own."""
    return context.resource(Kind.PROCESSOR, parsed)
