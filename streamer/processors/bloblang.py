"""`bloblang`: the `mapping` processor under the name that it had first."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.processors.mapping import SPEC as MAPPING
from streamer.processors.mapping import build
from streamer.query import empty_mapping
from streamer.spec import Field, Spec

SPEC: Final[Spec] = replace(
    MAPPING,
    name="bloblang",
    summary="Makes a new document out of each message by a Bloblang mapping: `mapping`'s old name.",
    # Benthos's default is the empty text, which it then refuses; to lint it is a missing mapping.
    config=Field("", "string", "The Bloblang mapping.", mapping=True, check=empty_mapping),
    examples=(),
)

__all__ = ["SPEC", "build"]
