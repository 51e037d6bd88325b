"""What tests of the service share."""

import pytest

from streamer.service import process_figures


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the figures of the Spark that other tests of the same process have begun."""
    monkeypatch.setattr(process_figures, "_SPARK_MODULE", "not imported")
