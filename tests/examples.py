"""How many examples a property test takes, and what the examples of the documentation want."""

from __future__ import annotations

import os
import re
from typing import Final

_LONG: Final = os.environ.get("STREAMER_TEST_EXAMPLES") == "long"


def examples(few: int, many: int) -> int:
    """Return the number of examples; `.ci/run` sets STREAMER_TEST_EXAMPLES to `long`."""
    return many if _LONG else few


def variables_in(config: str) -> dict[str, str]:
    """Return values of the environment variables that a config wants."""
    return dict.fromkeys(re.findall(r"\$\{(\w+)\}", config), "x")
