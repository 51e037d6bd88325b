"""Run `streamer` with small micro-batches, so that a test can kill it between two.

A file of 100,000 events would be one micro-batch otherwise.
"""

from __future__ import annotations

import os
import sys

from streamer.cli.main import invoke
from streamer.plan import plan

LIMIT_VARIABLE = "JOBS_LIMIT_BYTES"

if __name__ == "__main__":
    limit_bytes = int(os.environ[LIMIT_VARIABLE])
    make_buffer_plan = plan._plan_buffer
    plan._plan_buffer = lambda *some: make_buffer_plan(*some)._replace(limit_bytes=limit_bytes)
    # What stands before is the command that a test believes to run: python -m streamer.cli.main
    sys.exit(invoke(sys.argv[4:]))
