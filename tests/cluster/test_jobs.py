"""Jobs with several buffers, state by key and lookup tables, on workers that are other processes.

One of them in each run, chosen by the seed; all of them by hand: STREAMER_RECIPES=all. The program
is killed in the middle where the job says so, as in `tests/jobs`.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.jobs.catalog import JOBS
from tests.jobs.job import Job, run_job
from tests.servers.spark_cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

EVENTS = 20_000
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
_NEW_ON_WORKERS = ("\nbuffers:", "keyed_state:", "table_resources:", "global_window:")


def chosen() -> list[Job]:
    """Return the jobs that run."""
    jobs = [job for job in JOBS if any(word in job.path.read_text() for word in _NEW_ON_WORKERS)]
    if os.environ.get("STREAMER_RECIPES") == "all":
        return jobs
    return random.Random(SEED).sample(jobs, 1)


@pytest.mark.parametrize("job", chosen(), ids=lambda job: job.recipe)
def test_a_job_gives_on_a_cluster_what_its_oracle_says(
    job: Job, tmp_path: Path, cluster: Cluster
) -> None:
    run_job(job, tmp_path, SEED, EVENTS, cluster.options)
