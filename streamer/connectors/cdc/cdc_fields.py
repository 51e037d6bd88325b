"""Fields that the inputs of changes share, and what builds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.spool.batched_input import BatchedInput
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.processing.batching import (
    BATCHING,
    POLICY_FIELDS,
    batching_problems,
    output_policy,
)
from streamer.sdk.spec import BuildContext, Field, ParsedFields
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

AWS: Final = "aws"
TABLES: Final = "tables"
STREAM_SNAPSHOT: Final = "stream_snapshot"

_AWS_FIELD: Final = Field(
    AWS,
    "object",
    "Must not be enabled: tokens of AWS IAM in the place of a password are not available.",
    advanced=True,
    optional=True,
)

CDC_FIELDS: Final = (
    Field(
        "max_parallel_snapshot_tables",
        "int",
        "Has no effect: tables are read one after the other.",
        default=1,
        advanced=True,
    ),
    Field(
        "checkpoint_limit",
        "int",
        "Has no effect: changes are on the driver's disk before they are confirmed.",
        default=1024,
        advanced=True,
    ),
    AUTO_REPLAY_NACKS_FIELD,
    _AWS_FIELD,
    Field(
        BATCHING,
        "object",
        "Combines messages into batches on the driver, over micro-batches.",
        children=POLICY_FIELDS,
        advanced=True,
    ),
)


def row_count_problem(number: int) -> str | None:
    """Return what is wrong with a number of rows that are read at once."""
    return None if 1 <= number <= 1_000_000 else f"is {number}; expected 1 to 1,000,000"


def cdc_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields, for a spec's `check`."""
    yield from batching_problems(parsed)
    if (parsed[AWS] or {}).get("enabled"):
        yield (
            f"{AWS}.enabled",
            "is true, and tokens of AWS IAM are not available; put a user with a password into dsn",
        )


@dataclass(frozen=True)
class CdcInput:
    """An input of changes before it is opened.

    Attributes:
        name: its name.
        labels: of its log lines and counts.
        read: reads in one session until the stream stops; a StreamerError is a lost connection.
        test: tests the connection, and returns what is there.
    """

    name: str
    labels: dict[str, str]
    read: Callable[[Session], None]
    test: Callable[[], str]

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds."""

        def session(one: Session) -> None:
            try:
                self.read(one)
            except StreamerError as e:
                raise ConnectionLostError(str(e)) from None

        return start_sessions(context, self.name, self.labels, session)

    def probe(self) -> str:
        """Check that the database answers, and that its changes can be read."""
        return self.test()


def with_batching(source: CdcInput, parsed: ParsedFields, context: BuildContext) -> Any:
    """Return the input, with its policy of batches where it has one."""
    policy = output_policy(parsed, context)
    return source if policy is None else BatchedInput(source, policy)
