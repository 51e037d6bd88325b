"""Metrics are not served and not pushed."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import Kind, Spec

SPEC: Final = Spec(Kind.METRICS, "none", "Keeps metrics to itself.")
