"""`bloblang`: the `mapping` processor under the name that it had first."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.components.processors.mapping import SPEC as MAPPING
from streamer.components.processors.mapping import build
from streamer.sdk.mapping_query import empty_mapping_problem
from streamer.sdk.spec import Field, Spec

SPEC: Final[Spec] = replace(
    MAPPING,
    name="bloblang",
    summary="Makes a new document out of each message by a Bloblang mapping: `mapping`'s old name.",
    # Benthos's default is the empty text, which it then refuses; to lint it is a missing mapping.
    config=Field("", "string", "The Bloblang mapping.", mapping=True, check=empty_mapping_problem),
    examples=(),
)

__all__ = ["SPEC", "build"]
