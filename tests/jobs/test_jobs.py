"""The jobs, a quarter of them in each run: which ones is for the seed to say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.jobs.catalog import JOBS
from tests.jobs.job import run_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
_JOBS_OF_A_SAMPLE = 4


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job, id=job.recipe, marks=pytest.mark.sample(f"jobs-{n // _JOBS_OF_A_SAMPLE}"))
        for n, job in enumerate(JOBS)
    ],
)
def test_a_job_gives_what_its_oracle_says(job, tmp_path: Path) -> None:
    run_job(job, tmp_path, int(os.environ.get("STREAMER_SEED", "0")))
