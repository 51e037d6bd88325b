"""The `broker` input: several inputs as one.

Each of them is read at its own pace and keeps its own place, and takes an equal share of a
micro-batch as long as all have enough to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.merged_source import MergedSource
from streamer.connectors.spool.batched_input import BatchedInput
from streamer.sdk.processing.batching import (
    BATCHING,
    POLICY_FIELDS,
    batching_problems,
    output_policy,
)
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedComponent,
    ParsedFields,
    Spec,
)

INPUTS: Final = "inputs"
COPIES: Final = "copies"

SPEC: Final = Spec(
    Kind.INPUT,
    "broker",
    "Reads from several inputs at once.",
    description=(
        "The messages of one input stay in order; different inputs have no common order. "
        "Every input has its own position in the checkpoint, by its label; a new input starts "
        "at its beginning. The processors beside an input run on its messages alone, those "
        "beside the broker on all messages. The broker ends when all of its inputs have "
        "ended.\n"
        "\n"
        "With `batching` the inputs are read on the driver, and batches of their messages go "
        "into the spool, as those of the input `batched`."
    ),
    fields=(
        Field(
            COPIES,
            "int",
            "Number of copies of each input.",
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
        Field(
            BATCHING,
            "object",
            "When a batch of messages of all inputs is closed. Without it they stay apart.",
            children=POLICY_FIELDS,
            advanced=True,
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
    check=batching_problems,
    categories=("Utility",),
    runs="children",
)


def children(broker: ParsedComponent) -> tuple[ParsedComponent, ...]:
    """Return the inputs of a broker in the order of its source, each as often as it is there."""
    inputs: tuple[ParsedComponent, ...] = broker.config[INPUTS]
    return inputs * int(broker.config[COPIES])


def _name_inputs(inputs: tuple[ParsedComponent, ...]) -> Iterator[str]:
    """Name inputs by their labels, by their places where they have none or share it."""
    used: set[str] = set()
    for number, one in enumerate(inputs):
        label = one.config if one.name == "resource" else one.label
        name = f"{label or ''}#{number}" if not label or label in used else str(label)
        used.add(name)
        yield name


def build(parsed: ParsedFields, context: BuildContext) -> MergedSource | BatchedInput:
    """Make the input out of the inputs in it; their processors are left to the stages.

    With a policy the processors run on the driver, before their messages are put together.
    """
    inputs = children(context.component)
    policy = output_policy(parsed, context)
    built = (context if policy is None else context.with_processors()).build_all(inputs)
    several = MergedSource(dict(zip(_name_inputs(inputs), built, strict=True)))
    return several if policy is None else BatchedInput(several, policy)
