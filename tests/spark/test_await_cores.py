"""How many cores a cluster gives, when its executors come one by one."""

from __future__ import annotations

from collections.abc import Callable

from streamer.spark.cluster.parallelism import wait_for_cores


def settled(look: Callable[[float], int]) -> tuple[int, float]:
    """Return the cores that are taken, and the seconds that it took by a clock of its own."""
    at = [0.0]

    def sleep(seconds: float) -> None:
        at[0] += seconds

    return wait_for_cores(lambda: look(at[0]), sleep, lambda: at[0]), at[0]


def test_executors_that_come_late_count_until_none_has_come_for_two_seconds() -> None:
    assert settled(lambda at: 2) == (2, 2.0)
    assert settled(lambda at: 2 if at < 1.5 else 8) == (8, 3.5)
    assert settled(lambda at: 2 if at < 3 else 8) == (2, 2.0)


def test_a_cluster_that_goes_on_growing_is_waited_for_ten_seconds() -> None:
    assert settled(lambda at: int(at)) == (10, 10.0)
