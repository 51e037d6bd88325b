"""`memory`: in Benthos, a queue in memory between input and processors; here, the micro-batch.

"Optionally configure a policy to flush buffered messages in batches." Spark takes a micro-batch
of messages off the input at once and starts the next one when it is done, so there is no second
queue: `limit` bounds the bytes of a micro-batch, and `batch_policy` cuts each micro-batch into
batches. Benthos acknowledges what is in the queue and loses it in a crash; here nothing is
acknowledged before it has gone through, so the buffer weakens no guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.batching import (
    POLICY_FIELDS,
    BatchPolicy,
    build_policy,
    policy_problems,
)
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

LIMIT: Final = "limit"
BATCH_POLICY: Final = "batch_policy"
ENABLED: Final = "enabled"

_DEFAULT_LIMIT_BYTES: Final = 524_288_000


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    policy = parsed[BATCH_POLICY]
    if policy[ENABLED]:
        for name, text in policy_problems(policy):
            yield f"{BATCH_POLICY}.{name}" if name else BATCH_POLICY, text


def _find_limit_problem(value: int) -> str | None:
    return None if value > 0 else f"is {value}; expected a number of bytes above 0"


SPEC: Final = Spec(
    Kind.BUFFER,
    "memory",
    "Collects messages and, with a batch policy, passes them on in batches.",
    description=(
        "Spark's micro-batch is the buffer: waiting messages are read at once, up to `limit`. "
        "With `batch_policy.enabled`, each micro-batch is divided into batches; the last one "
        "may be smaller than the policy. Unlike in Benthos, this buffer loses nothing when "
        "the program is killed, because no message is acknowledged before it has been "
        "written."
    ),
    fields=(
        Field(
            LIMIT,
            "int",
            "The bytes of messages that a micro-batch takes at most.",
            default=_DEFAULT_LIMIT_BYTES,
            check=_find_limit_problem,
        ),
        Field(
            BATCH_POLICY,
            "object",
            "Settings of batches.",
            children=(
                Field(
                    ENABLED,
                    "bool",
                    "True to make batches; otherwise batches stay as the input made them.",
                    default=False,
                ),
                *POLICY_FIELDS,
            ),
        ),
    ),
    check=_check,
    categories=("Utility",),
    delivery="nothing is kept between micro-batches",
)


@dataclass(frozen=True, slots=True)
class MemoryBuffer:
    """The buffer as the plan needs it.

    Attributes:
        limit: bytes of messages in a micro-batch, at most.
        policy: how a micro-batch is cut into batches, or None to leave batches as they come. Its
            `period` is the least time between two micro-batches.
    """

    limit: int
    policy: BatchPolicy | None

    def batches(self, incoming: Iterable[Batch], ex: Execution) -> Iterator[Batch]:
        """Cut a micro-batch into the batches that processors see."""
        return iter(incoming) if self.policy is None else self.policy.batches(incoming, ex)


def build(parsed: ParsedFields, context: BuildContext) -> MemoryBuffer:
    """Make the policy, when it is enabled."""
    policy = parsed[BATCH_POLICY]
    if not policy[ENABLED]:
        return MemoryBuffer(parsed[LIMIT], None)
    return MemoryBuffer(
        parsed[LIMIT], build_policy(policy, context, ComponentRef(context.component).log)
    )
