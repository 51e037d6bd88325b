"""`inproc`: receives what an output `inproc` of the same program sends.

It will "directly connect to an output within a Redpanda Connect process by referencing it by a
chosen ID".
"""

from __future__ import annotations

import threading
from typing import Final

from streamer.connectors.inproc import CHANNELS, ChannelReceiver
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import BuildContext, Example, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.INPUT,
    "inproc",
    "Receives what an output `inproc` of the same program sends.",
    description=(
        "Both are in one stream, or in two streams of a service. Batches stay batches, with their "
        "metadata and errors. The driver writes them to its disk, from which the stream reads; an "
        "output waits while `spark.spool_limit` is reached.\n\n"
        "Several inputs with one name take the micro-batches of an output in turn. Several outputs "
        "may send to one name, where Connect replaces the first. The input never ends. A stream "
        "that sends to itself stands still once its spool is full."
    ),
    config=Field(
        "",
        "string",
        "The name that the output has.",
        default="",
        examples=("orders",),
    ),
    examples=(
        Example(
            "The second of two streams of a service",
            "input:\n  inproc: orders\n",
        ),
    ),
    categories=("Utility",),
    delivery="exactly once with one input for the name, at least once with several",
)


class InprocInput:
    """An input before it is opened."""

    def __init__(self, name: str) -> None:
        """Take the channel's name."""
        self._name = name

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to receive; return the source of what the spool holds."""
        receiver = ChannelReceiver(SpoolStore.for_input(context))
        stopped = threading.Event()
        context.on_stop(stopped.set)

        def run() -> None:
            stopped.wait()
            CHANNELS.remove(self._name, receiver)
            # Whoever opens the spool next waits for this thread.
            receiver.close()

        context.start(f"inproc {self._name!r}", run)
        CHANNELS.add(self._name, receiver)
        return SpoolSource.for_input(context)


def build(parsed: str, context: BuildContext) -> InprocInput:
    """Take the name."""
    return InprocInput(parsed)
