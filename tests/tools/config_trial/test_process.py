"""Trials of hostile configs: what a process of a trial may take, reach and print."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.permissions import NONE, limit_permissions
from streamer.tools.config_trial.process import ConfigTrials, TrialOutcome, TrialsBusyError
from streamer.tools.config_trial.request import TrialRequest, UnitTestTexts
from tests.slowness import slowness

ENDLESS = "root = range(0, 3000).map_each(a -> range(0, 3000).map_each(b -> range(0, 3000).sum()))"
HUGE = 'root = range(0, 40).fold("x", i -> i.tally + i.tally).length()'
CONFIG = """\
input: {{ generate: {{ mapping: root = 1 }} }}
pipeline: {{ processors: [ {{ label: it, {processor} }} ] }}
output: {{ drop: {{}} }}
"""
TESTS = CONFIG.format(processor="mapping: root = this") + "tests:\n"


def tap_request(processor: str, *messages: bytes) -> TrialRequest:
    with limit_permissions(NONE):
        config = parse_config(CONFIG.format(processor=processor), env={})
    return TrialRequest("tap", config, NONE, messages or (b'{"a":1}',))


def request_of_tests(*cases: str) -> TrialRequest:
    named = (f"{{ name: case {number}, {one[1:]}" for number, one in enumerate(cases))
    text = TESTS + "".join(f"  - {one}\n" for one in named)
    with limit_permissions(NONE):
        config = parse_config(text, env={})
    return TrialRequest("tests", config, NONE, tests=UnitTestTexts("config.yaml", text))


def run_all(*requests: TrialRequest, **bounds: Any) -> list[TrialOutcome]:
    async def main() -> list[TrialOutcome]:
        trials = ConfigTrials(**bounds)
        try:
            return await asyncio.gather(*map(trials.run, requests))
        finally:
            await trials.close()

    return asyncio.run(main())


def failures(outcome: TrialOutcome) -> list[str]:
    """What each test says, in one text."""
    found = [piece["test"] for piece in outcome.pieces if "test" in piece]
    return [
        " ".join(line["text"] for failure in one["failures"] for line in failure) for one in found
    ]


def test_time_and_output_are_bounded() -> None:
    asleep, talking = run_all(
        tap_request("sleep: { duration: 1h }"),
        tap_request("mapping: 'root = this'", *(b"x" * 3_000 for _ in range(100))),
        seconds=2 * slowness(),
        max_output=100_000,
    )
    assert "stopped after" in asleep.stopped
    assert [piece["stage"]["path"] for piece in asleep.pieces] == ["input"]
    assert talking.is_cut and not talking.stopped
    assert sum(len(str(piece)) for piece in talking.pieces) < 200_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds a process's time")
def test_processor_time_is_bounded() -> None:
    (endless,) = run_all(
        tap_request(f"mapping: '{ENDLESS}'"), seconds=60 * slowness(), cpu_seconds=1
    )
    assert "stopped after 1 seconds of processor time" in endless.stopped
    assert [piece["stage"]["path"] for piece in endless.pieces] == ["input"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds a process's memory")
def test_memory_is_bounded_and_one_message_is_shown_in_part() -> None:
    long = 'root.x = "y".repeat(20000000)'
    mapping = f"root = if this.a == 1 {{ {HUGE[7:]} }} else {{ {long[9:]} }}"
    (outcome,) = run_all(
        tap_request(f"mapping: '{mapping}'", b'{"a":2}', b'{"a":1}'),
        seconds=20 * slowness(),
        memory=200 << 20,
    )
    assert "memory" in f"{outcome.stopped} {outcome.pieces}"
    assert len(str(outcome.pieces)) < 20_000


def test_files_programs_and_the_environment_are_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("pipeline: { processors: [ { mapping: root = 'swordfish' } ] }\n")
    monkeypatch.setenv("TRIAL_SECRET", "swordfish")
    expected = "output_batches: [ [ { content_equals: nothing } ] ]"
    given = f"input_batch: [ {{ content: a }} ], {expected}"
    cases = (
        f"{{ target_processors: it, input_batch: [ {{ file_content: {secret} }} ], {expected} }}",
        "{ target_processors: it, input_batch: [ { content: a } ], output_batches: "
        f"[ [ {{ file_equals: {secret} }} ] ] }}",
        f"{{ target_processors: '{secret}#/pipeline/processors', {given} }}",
        f"{{ target_mapping: {secret}, {given} }}",
        f"{{ target_mapping: 'root = file(\"{secret}\")', {given} }}",
        f"{{ target_mapping: 'root = env(\"TRIAL_SECRET\")', {given} }}",
        f"{{ target_processors: it, mocks: {{ it: {{ command: {{ name: cat }} }} }}, {given} }}",
    )
    (outcome,) = run_all(request_of_tests(*cases))
    said = failures(outcome)
    assert len(said) == len(cases), outcome
    assert "swordfish" not in str(outcome.pieces)
    for number in (0, 1, 2, 6):
        assert "out of reach" in said[number] or "which is off for" in said[number], said[number]


def test_a_tap_reaches_no_further_than_a_deploy() -> None:
    metadata = "http: { url: 'http://169.254.169.254/', retries: 0, timeout: 2s }"
    (outcome,) = run_all(tap_request(metadata))
    (message,) = outcome.pieces[1]["stage"]["batches"][0]
    assert "out of reach" in f"{message} {outcome.pieces[1]['stage']['logged']}"


def test_those_that_wait_are_bounded_too() -> None:
    async def main() -> None:
        trials = ConfigTrials(processes=1, waiting=1, seconds=60)
        request = tap_request("mapping: 'root = this'")
        first, second = (asyncio.create_task(trials.run(request)) for _ in range(2))
        await asyncio.sleep(0.05)
        with pytest.raises(TrialsBusyError):
            await trials.run(request)
        second.cancel()
        await trials.close()
        assert (await first).stopped

    asyncio.run(main())
