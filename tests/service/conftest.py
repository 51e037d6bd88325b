"""What tests of the service share."""

import pytest

from streamer.service.monitoring import process_metrics


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the figures of the Spark that other tests of the same process have begun."""
    monkeypatch.setattr(process_metrics, "_SPARK_MODULE", "not imported")
