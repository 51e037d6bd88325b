"""`python -m tests.proof [row ...]`: run rows of the proof and say whether their promises hold."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.proof.mutants import mutants, prove_mutants
from tests.proof.rows import BY_NAME, ROWS, prove
from tests.proof.runner import LONG, SHORT


def asked(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; end the program when it makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="row", help="all rows when none is named")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9 % 100_000)
    parser.add_argument("--long", action="store_true", help="twenty injections instead of one")
    parser.add_argument("--times", type=int, help="so many injections in a long run, not twenty")
    parser.add_argument("--soon", action="store_true", help="Java compiles as in a short run")
    parser.add_argument("--mutations", action="store_true", help="find the deliberate bugs")
    parser.add_argument("--kernel", action="store_true", help="of these those in windows, quickly")
    parser.add_argument("--list", action="store_true", help="print the rows and run nothing")
    given = parser.parse_args(arguments)
    known = {mutant.name for mutant in mutants()} if given.mutations else set(BY_NAME)
    if unknown := set(given.rows) - known:
        parser.error(f"there is no {', '.join(sorted(unknown))}, but {', '.join(sorted(known))}")
    if given.times is not None and given.times < 1:
        parser.error(f"--times {given.times}: without an injection nothing is proved; 1 or more")
    given.length = SHORT
    long = given.long or os.environ.get("STREAMER_PROOF") == "long"
    if not long and (given.soon or given.times):
        parser.error("--times and --soon are for long runs: add --long")
    if long:
        given.length = replace(LONG, soon=given.soon, times=given.times or LONG.times)
    return given


def main() -> int:
    """Run rows and print their verdicts; the exit code is 1 when a promise was broken."""
    given = asked(sys.argv[1:])
    # Whoever ends it wants its parts to end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if given.list:
        for row in ROWS:
            print(f"{row.name:18} {row.promise} | {row.fault}")
        return 0
    print(f"seed {given.seed}", flush=True)
    if given.mutations:
        return prove_mutants(given.seed, given.rows, given.kernel)
    broken = 0
    for row in ROWS:
        if given.rows and row.name not in given.rows:
            continue
        began = time.monotonic()
        try:
            verdict, text = "holds", prove(row, given.seed, given.length)
        except (AssertionError, RuntimeError) as e:
            verdict, text, broken = "BROKEN", str(e), broken + 1
        except pytest.skip.Exception as e:
            verdict, text = "NOT RUN", str(e)
        took = time.monotonic() - began
        print(f"{row.name:18} {verdict:7} {took:5.0f} s  {text}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
