"""What Spark is told on a cluster, beside what the user says."""

from __future__ import annotations

from streamer.spark.cluster import SETTINGS, with_ours


def test_the_users_settings_win() -> None:
    found = with_ours({"spark.network.timeout": "300s", "spark.foo": "x"})
    assert found == {**SETTINGS, "spark.network.timeout": "300s", "spark.foo": "x"}


def test_no_executor_is_passed_over_where_spark_would_refuse_it() -> None:
    passes = "spark.excludeOnFailure.enabled"
    assert with_ours({"spark.task.maxFailures": "4"})[passes] == "true"
    assert with_ours({"spark.task.maxFailures": "3"})[passes] == "false"
    few = {"spark.task.maxFailures": "1", passes: "true"}
    assert with_ours(few)[passes] == "true"


def test_a_cut_of_twenty_seconds_costs_no_executor() -> None:
    beat = float(SETTINGS["spark.executor.heartbeatInterval"].removesuffix("s"))
    patience = float(SETTINGS["spark.network.timeout"].removesuffix("s"))
    # TCP tries again after 0.2 s, and each time after twice as long.
    tries = [0.2 * (2**n - 1) for n in range(1, 9)]
    assert beat + next(at for at in tries if at + beat > 20) < patience
