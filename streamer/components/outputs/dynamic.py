"""`dynamic`: outputs that "can be created, changed and removed during runtime via a REST API".

"The broker pattern used is always fan_out, meaning each message will be delivered to each dynamic
output."
"""

from __future__ import annotations

from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.window.pack.metadata_codec import encode_meta

OUTPUTS: Final = "outputs"
PREFIX: Final = "prefix"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "dynamic",
    "Sends messages to outputs that can be added, changed and removed while the stream runs.",
    description=(
        "Every output gets every message, and is retried until it accepts the message or is "
        "removed. Without any output, the stream waits.\n"
        "\n"
        "The stream's HTTP server has the endpoints, below `prefix`: `GET /outputs` lists the "
        "outputs with their configs and uptimes; `GET /outputs/{id}` returns the config of "
        "one, `POST /outputs/{id}` creates or changes it (YAML or JSON, such as `file: { "
        "path: x }`), `DELETE /outputs/{id}` removes it, and `GET /outputs/{id}/uptime` "
        "returns its uptime. Changes are lost when the program ends.\n"
        "\n"
        "These outputs run on the driver, so that they can be changed at any time: all "
        "messages come back to it. Added outputs must not refer to resources by label, nor be "
        "an `http_server` or another `dynamic`."
    ),
    fields=(
        Field(
            OUTPUTS,
            "output",
            "The outputs that there are at the start, by their ids.",
            default={},
            shape="map",
        ),
        Field(PREFIX, "string", "Prefix of the endpoints' paths.", default=""),
    ),
    examples=(
        Example(
            "One output at the start",
            "output:\n"
            "  dynamic:\n"
            "    prefix: /changing\n"
            "    outputs:\n"
            "      first: { file: { path: first.jsonl } }\n",
        ),
    ),
    categories=("Utility",),
    takes_configs=True,
    runs="driver",
    delivery="at least once: sent again until it is taken",
    limits="a micro-batch that is replayed is sent to all outputs again",
)


class DynamicOutput:
    """Gives batches, with their metadata, to the driver, which sends them.

    Attributes:
        append: always False: batches are kept apart.
    """

    append: Final = False
    ignores_batches: Final = False

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return the batch as one item."""
        import msgpack

        items = [(encode_meta(one.meta, one.error), one.raw) for one in batch]
        return [("", msgpack.packb(items))]


def build(parsed: ParsedFields, context: BuildContext) -> Any:
    """Make one; the driver builds the outputs when the stream starts."""
    return DynamicOutput()
