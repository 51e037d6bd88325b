"""The rows of the proof: `pytest tests/proof` runs them, and the whole suite one of each kind."""

from __future__ import annotations

import os
import time

import pytest

from tests.proof.rows import ROWS, Row, prove
from tests.proof.runner import LONG, SHORT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.proof,
    pytest.mark.timeout(3600),
]

LENGTH = LONG if os.environ.get("STREAMER_PROOF") == "long" else SHORT
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_promise_holds(row: Row) -> None:
    print(f"STREAMER_SEED={SEED}")
    print(prove(row, SEED, LENGTH))
