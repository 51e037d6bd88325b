"""Benthos, as a program beside this one, built from its Go module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.latency.benthos import NoGoError, build


def benthos() -> Path:
    """Return the program, or skip the test where there is no Go to build it with."""
    try:
        return build()
    except NoGoError as e:
        pytest.skip(str(e))
