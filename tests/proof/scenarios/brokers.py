"""The broker goes away for a while, and what it no longer has."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.proof.runner import PATIENCE, Run, under_load
from tests.proof.stream import TOPIC
from tests.proof.verdict import ProofError


def term(run: Run) -> str:
    """End the broker in order; start it again."""
    return _outage(run, "SIGTERM", run.broker.stop, run.broker.start, (1, 5))


def kill(run: Run) -> str:
    """End the broker at once; start it again."""
    return _outage(run, "SIGKILL", run.broker.kill, run.broker.start, (1, 5))


def stop(run: Run) -> str:
    """Stop the broker for longer than a delivery may take; let it go on."""
    return _outage(run, "SIGSTOP", run.broker.pause, run.broker.resume, (12, 18))


def _outage(
    run: Run,
    name: str,
    away: Callable[[], None],
    back: Callable[[], None],
    seconds: tuple[float, float],
) -> str:
    def fault(run: Run) -> None:
        for _ in range(run.times):
            run.pause(0, 3)
            away()
            try:
                run.pause(*seconds)
                if run.program.process.poll() is not None:
                    raise ProofError(f"the program ended: {run.program.messages()[-3:]}")
            finally:
                back()
            run.wait_for_output()
            run.wait_for_output()
        run.injected.append(f"{run.times} {name}")

    return under_load(run, fault)


def retention(run: Run) -> str:
    """Let Kafka delete what was not read yet: the program refuses by name, or counts what is gone.

    It goes on only when the config says that it may, and then all else is in its windows.
    """
    with run.whole():
        run.start().wait_running()
        with run.source.flowing():
            run.wait_for_output()
            run.wait_for_output()
            assert run.stop() == 0
            taken = run.chronicle.taken()
            begins = {0: taken[0] + run.rng.randrange(50, 300)}
            while run.source.ends().get(0, 0) < begins[0] + 100:
                time.sleep(0.1)
            run.broker.client().delete_records(TOPIC, begins)
            stands = f"{TOPIC}:0 stands at {taken[0]} and begins at {begins[0]}"
            refused = run.start()
            if refused.finish(PATIENCE) == 0:
                raise ProofError("what was not read is gone, and it ended as if all were well")
            said = [text for text in refused.messages() if stands in text]
            if not said or "fail_on_data_loss" not in said[-1]:
                last = refused.messages()[-3:]
                raise ProofError(f"it must say {stands!r}, and what to do; it says {last}")
            run.configure(whole=False)
            run.gone = frozenset((0, at) for at in range(taken[0], begins[0]))
            program = run.start()
            run.wait_for_output()
            run.wait_for_output()
            stood = f"{TOPIC}:0 stood at {taken[0]} and begins at {begins[0]}"
            if not any(stood in text for text in program.messages()):
                raise ProofError(f"it must say {stood!r}, and does not")
        run.injected.append(f"{len(run.gone)} deleted, refused by name, then counted")
        return run.settle()
