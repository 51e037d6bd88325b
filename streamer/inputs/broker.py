"""The `broker` input: several inputs as one.

Each of them is read at its own pace and keeps its own place, and takes an equal share of a
micro-batch as long as all have enough to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.source.several import Several
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, ParsedComponent, Spec

INPUTS: Final = "inputs"
COPIES: Final = "copies"

SPEC: Final = Spec(
    Kind.INPUT,
    "broker",
    "Reads from several inputs at once.",
    description=(
        "The messages of one input stay in their order; those of different inputs have none among "
        "each other. Every input has its own place in the checkpoint, by its label; one that is "
        "added later begins at its beginning. The processors beside an input run on its messages "
        "alone, those beside the broker on all. The broker ends when all of its inputs have ended."
        "\n\nBatches of several inputs are not joined: `batching` is not available; let a buffer "
        "do it."
    ),
    fields=(
        Field(
            COPIES,
            "int",
            "How often each of the inputs is there.",
            default=1,
            advanced=True,
            check=lambda copies: None if copies >= 1 else f"is {copies}; expected 1 or more",
        ),
        Field(
            INPUTS,
            "input",
            "The inputs.",
            shape="array",
            examples=([{"stdin": {}}],),
            check=lambda inputs: None if inputs else "is empty; expected one input at least",
        ),
    ),
    examples=(
        Example(
            "Two files side by side",
            "input:\n"
            "  broker:\n"
            "    inputs:\n"
            "      - label: orders\n"
            "        file: { paths: [ orders.jsonl ] }\n"
            "      - label: shipments\n"
            "        file: { paths: [ shipments.jsonl ] }\n",
        ),
    ),
    categories=("Utility",),
)


def children(broker: ParsedComponent) -> tuple[ParsedComponent, ...]:
    """Return the inputs of a broker in the order of its source, each as often as it is there."""
    inputs: tuple[ParsedComponent, ...] = broker.config[INPUTS]
    return inputs * int(broker.config[COPIES])


def _names(inputs: tuple[ParsedComponent, ...]) -> Iterator[str]:
    """Name inputs by their labels, by their places where they have none or share it."""
    used: set[str] = set()
    for number, one in enumerate(inputs):
        label = one.config if one.name == "resource" else one.label
        name = f"{label or ''}#{number}" if not label or label in used else str(label)
        used.add(name)
        yield name


def build(parsed: Parsed, context: BuildContext) -> Several:
    """Make the input out of the inputs in it; their processors are left to the stages."""
    inputs = children(context.component)
    return Several(dict(zip(_names(inputs), context.all(inputs), strict=True)))
