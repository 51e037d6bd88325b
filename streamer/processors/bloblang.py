"""`bloblang`: the `mapping` processor under the name that it had first."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.processors.mapping import SPEC as MAPPING
from streamer.processors.mapping import build
from streamer.spec import Field, Spec

SPEC: Final[Spec] = replace(
    MAPPING,
    name="bloblang",
    summary="Makes a new document out of each message by a Bloblang mapping: `mapping`'s old name.",
    config=Field(
        "",
        "string",
        "The Bloblang mapping; an empty one changes nothing.",
        default="",
        mapping=True,
    ),
    examples=(),
)

__all__ = ["SPEC", "build"]
