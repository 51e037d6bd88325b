"""Run `streamer` with micro-batches of about 1 MiB, so that a test can kill it between two.

A file of 100,000 events would be one micro-batch otherwise.
"""

from __future__ import annotations

import sys

from streamer.cli.main import invoke
from streamer.plan import plan

_LIMIT_BYTES = 1 << 20

if __name__ == "__main__":
    make_buffer_plan = plan._plan_buffer
    plan._plan_buffer = lambda *some: make_buffer_plan(*some)._replace(limit_bytes=_LIMIT_BYTES)
    # What stands before is the command that a test believes to run: python -m streamer.cli.main
    sys.exit(invoke(sys.argv[4:]))
