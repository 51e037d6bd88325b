"""No traces are sent."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import Kind, Spec

SPEC: Final = Spec(Kind.TRACER, "none", "Sends no traces.")
