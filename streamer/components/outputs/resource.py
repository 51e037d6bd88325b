"""`resource`: writes to the output that is defined once, under `output_resources`, by its label.

The plan puts the resource in its place, so that nothing else needs to know.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.sdk.spec import BuildContext, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "resource",
    "Writes to the output of `output_resources` that has this label.",
    config=Field(
        "",
        "string",
        "The label of the output resource.",
        default="",
        refers=Kind.OUTPUT,
        check=lambda label: None if label else "no label is given; name one of output_resources",
        examples=("archive",),
    ),
    categories=("Utility",),
    runs="children",
)


def build(parsed: str, context: BuildContext) -> Any:
    """Return the resource itself, built once for the context."""
    return context.resource(Kind.OUTPUT, parsed)
