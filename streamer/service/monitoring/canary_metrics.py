"""The metrics of a canary, which are those of the stream beside which it runs."""

from __future__ import annotations

from typing import Final

WINDOWS_METRIC: Final = "canary_windows_compared"
DIFFERENCES_METRIC: Final = "canary_windows_different"
BEHIND_METRIC: Final = "canary_micro_batches_behind"

CANARY_METRICS: Final = (WINDOWS_METRIC, DIFFERENCES_METRIC, BEHIND_METRIC)
