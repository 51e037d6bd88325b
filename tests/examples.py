"""How many examples a property test takes: few while one works, many before a change goes in."""

from __future__ import annotations

import os
from typing import Final

_LONG: Final = os.environ.get("STREAMER_TEST_EXAMPLES") == "long"


def examples(few: int, many: int) -> int:
    """Return the number of examples; `.ci/run` sets STREAMER_TEST_EXAMPLES to `long`."""
    return many if _LONG else few
