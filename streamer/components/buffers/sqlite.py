"""`sqlite`: in Benthos, a queue in a database on the disk; here, no buffer.

It "stores messages in an SQLite database and acknowledges them at the input level". What that is
for, the checkpoint and the spool of inputs do: a message that cannot be read a second time is on
the disk before it is acknowledged. So the config is read as one without a buffer, whose processors
begin with those of this one (`streamer.config.load`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec

PATH: Final = "path"
PRE_PROCESSORS: Final = "pre_processors"
POST_PROCESSORS: Final = "post_processors"

SPEC: Final = Spec(
    Kind.BUFFER,
    "sqlite",
    "Runs its processors; messages are on the disk without it.",
    description=(
        "A message that cannot be read a second time is on the disk before it is acknowledged, "
        "whatever the buffer is. This buffer stores nothing more: its processors run as the first "
        "ones of the pipeline. The field `path` has no effect."
    ),
    fields=(
        Field(
            PATH,
            "string",
            "Has no effect: no database is made.",
            access=Access.NONE,
            examples=("./state.db",),
        ),
        Field(
            PRE_PROCESSORS,
            "processor",
            "Processors that run before those of `post_processors`.",
            default=(),
            shape="array",
        ),
        Field(
            POST_PROCESSORS,
            "processor",
            "Processors that run before those of the pipeline.",
            default=(),
            shape="array",
        ),
    ),
    categories=("Utility",),
    delivery="nothing is kept",
)


@dataclass(frozen=True, slots=True)
class SqliteBuffer:
    """The plan has one stage and no state."""


def build(parsed: ParsedFields, context: BuildContext) -> SqliteBuffer:
    """Make one."""
    return SqliteBuffer()
