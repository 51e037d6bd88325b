"""What tests of faults and of clusters break: a run of the suite has one file of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

_T = TypeVar("_T")

KINDS: Mapping[str, Sequence[str]] = {
    "program": (
        "faults/test_running.py",
        "faults/test_kill.py",
        "faults/test_conditions.py",
        "faults/test_troubles.py",
        "faults/test_results.py",
        "faults/test_tables.py",
        "faults/test_table_outages.py",
        "faults/test_table_reading.py",
        "faults/test_table_deploys.py",
        "faults/test_table_writers.py",
        "faults/test_table_files.py",
        "faults/test_table_credentials.py",
        "faults/test_objects.py",
        "faults/test_deploys.py",
        "faults/test_python_deploys.py",
        "faults/test_expectations.py",
        "faults/test_sending.py",
        "faults/test_rejections.py",
        "faults/test_full_disk.py",
        "faults/test_http_input.py",
        "faults/test_back_pressure.py",
        "faults/test_clocks.py",
        "faults/test_damage.py",
        "faults/test_state_kills.py",
    ),
    "kafka": (
        "faults/test_kafka_input.py",
        "faults/test_kafka_output.py",
        "faults/test_kafka_join.py",
        "faults/test_kafka_join_chain.py",
        "faults/test_kafka_transactions.py",
        "faults/test_kafka_backlog.py",
        "faults/test_kafka_streams.py",
        "faults/test_kafka_brokers.py",
        "faults/test_without_internet.py",
    ),
    "service": (
        "faults/test_many_streams.py",
        "faults/test_isolation.py",
        "faults/test_idle_streams.py",
        "faults/test_deploy_kills.py",
        "faults/test_canary.py",
        "faults/test_standby.py",
        "faults/test_service_elsewhere.py",
        "faults/test_blocked_outputs.py",
        "faults/test_zombies.py",
    ),
    "cluster": (
        "faults/test_cluster.py",
        "cluster/test_recipes.py",
        "faults/test_submit.py",
        "cluster/test_spool.py",
        "faults/test_elsewhere.py",
        "faults/test_elsewhere_clouds.py",
        "cluster/test_deploys.py",
        "cluster/test_jobs.py",
        "cluster/test_plugins.py",
        "cluster/test_python_models.py",
    ),
}
"""Files below `tests` by what they break. One that is in none runs each time."""


def choose_one_of_each(kinds: Iterable[Sequence[_T]], number: int) -> list[_T]:
    """Return one of each kind, another one for the next number."""
    return [kind[number % len(kind)] for kind in kinds]
