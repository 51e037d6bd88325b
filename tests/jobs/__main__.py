"""Run jobs by hand: `python -m tests.jobs [--seed N] [--events N] [NAME…]`."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from tests.jobs.catalog import JOBS
from tests.jobs.job import EVENTS, run_job


def main() -> None:
    """Run the jobs of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for job in JOBS:
        if not options.names or job.recipe in options.names:
            # What a job that failed has written stays there.
            directory = Path(tempfile.mkdtemp(prefix=f"job-{job.recipe}-"))
            print(directory)
            run_job(job, directory, options.seed, options.events)
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
