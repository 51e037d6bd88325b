"""`resource`: reads from the input that is defined once, under `input_resources`, by its label.

The plan puts the resource in its place, so that nothing else needs to know.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.sdk.spec import BuildContext, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.INPUT,
    "resource",
    "Reads from the input of `input_resources` that has this label.",
    config=Field(
        "",
        "string",
        "The label of the input resource.",
        default="",
        refers=Kind.INPUT,
        check=lambda label: None if label else "no label is given; name one of input_resources",
        examples=("readings",),
    ),
    categories=("Utility",),
    runs="children",
)


def build(parsed: str, context: BuildContext) -> Any:
    """Return the resource itself, built once for the context."""
    return context.resource(Kind.INPUT, parsed)
