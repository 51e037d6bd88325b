"""The oracle by itself, the patches, and the list of rows: no part of a stream is started."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.proof.__main__ import asked
from tests.proof.chronicle import Chronicle
from tests.proof.generator import BEGIN, SECOND, Event, Shape, event, events, rfc3339
from tests.proof.kernel import CASES
from tests.proof.kinds import Walled
from tests.proof.mutants import ROOT, Mutant, apply, mutants
from tests.proof.oracle import Expected, MicroBatch, Rules, replay
from tests.proof.rows import BY_NAME, ROWS
from tests.proof.verdict import Output, ProofError, accounted, compare, nanoseconds

PAGE = ROOT / "streamer" / "docs" / "proof.md"
RESULTS = PAGE.with_name("proof-results.md")
TUMBLING = Rules(5 * SECOND, 5 * SECOND, 2 * SECOND)


def sent(*found: tuple[int, float | None]) -> dict[tuple[int, int], Event]:
    """Make events of one key, each with its partition and its seconds after the beginning."""
    places: dict[tuple[int, int], Event] = {}
    for number, (partition, seconds) in enumerate(found):
        offset = sum(there == partition for there, _ in places)
        at = None if seconds is None else BEGIN + round(seconds * SECOND)
        one = event(number, at or BEGIN, "k")
        places[partition, offset] = Event(number, one.raw, at, "k")
    return places


def window(start: int, size: int = 5) -> tuple[int, int, str]:
    return BEGIN + start * SECOND, BEGIN + (start + size) * SECOND, "k"


def test_the_oracle_imports_nothing_of_the_product() -> None:
    code = "import sys, tests.proof.state, tests.proof.verdict; print(sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "'tests.proof.oracle'" in ran.stdout
    assert "'streamer" not in ran.stdout


def test_bounds_and_lateness_are_to_the_nanosecond() -> None:
    found = replay(
        sent((0, 0), (0, 4.999999999), (0, 5), (0, 6.999999999), (0, 1), (0, 7), (0, 2)),
        [MicroBatch(0, {0: 7})],
        TUMBLING,
    )
    assert found.closed == {window(0): [[0, 1, 4]]}
    assert found.dropped == {6: "late"}
    assert found.open == {window(5): {0: [2, 3, 5]}}


def test_another_partition_counts_when_the_micro_batch_is_over() -> None:
    places = sent((0, 10), (1, 1), (1, 2))
    together = replay(places, [MicroBatch(0, {0: 1, 1: 2})], TUMBLING)
    assert together.closed == {window(0): [[1, 2]]}
    parted = replay(places, [MicroBatch(0, {0: 1}), MicroBatch(0, {0: 1, 1: 2})], TUMBLING)
    assert parted.dropped == {1: "late", 2: "late"}


def test_an_event_goes_to_the_windows_that_are_open_yet() -> None:
    hopping = Rules(10 * SECOND, 5 * SECOND, 0)
    found = replay(sent((0, 6), (0, 11), (0, 7), (0, 26)), [MicroBatch(0, {0: 4})], hopping)
    assert found.closed[window(0, 10)] == [[0]]
    assert found.closed[window(5, 10)] == [[0, 1, 2]]


def test_what_has_no_time_moves_no_clock() -> None:
    found = replay(sent((0, None), (0, 1)), [MicroBatch(0, {0: 2})], TUMBLING)
    assert found.dropped == {0: "timestamp"} and found.taken == 1


def test_what_kafka_has_deleted_is_in_no_window_and_moves_no_clock() -> None:
    places = sent((0, 1), (0, 30), (0, 2))
    found = replay(places, [MicroBatch(0, {0: 3})], TUMBLING, gone={(0, 1)})
    assert found.open == {window(0): {0: [0, 2]}} and not found.dropped


def test_what_waited_at_a_start_is_in_windows_of_the_clock_on_the_wall() -> None:
    places = sent((0, 0), (0, 1), (0, 9))
    cuts = [
        MicroBatch(BEGIN, {0: 1}, "a"),
        MicroBatch(BEGIN + 9 * SECOND, {0: 1}, "b", backlog=True),
        MicroBatch(BEGIN + 10 * SECOND, {0: 2}, "b"),
        MicroBatch(BEGIN + 11 * SECOND - 1, {0: 3}, "b"),
    ]
    walled = Walled(size=5, slide=5, lateness=1)
    found = walled.replay(places, cuts)
    ends = [BEGIN, BEGIN + 5 * SECOND]
    assert found.closed == {(0, end, "all"): [[at]] for at, end in enumerate(ends)}
    assert found.open == {(0, 0, "held"): {0: [2]}} and not found.dropped
    assert walled.over(BEGIN + 9 * SECOND) == BEGIN + 11 * SECOND
    forgotten = walled.replay(places, [replace(cut, backlog=False) for cut in cuts])
    assert forgotten.dropped == {1: "late"}


def test_a_window_expires_by_the_time_that_the_stream_itself_was_at_work() -> None:
    # The second micro-batch comes late; the windows were due at 1 and at 6 seconds.
    places = sent((0, 0), (0, 1))
    for busy, dropped in (
        ((), {}),
        (((BEGIN, BEGIN + 11 * SECOND),), {}),
        (((BEGIN, BEGIN + 12 * SECOND),), {0: "expired"}),
        (((BEGIN, BEGIN + 5 * SECOND), (BEGIN + 10 * SECOND, BEGIN + 16 * SECOND)), {}),
    ):
        cuts = [
            MicroBatch(BEGIN, {0: 2}, "a"),
            MicroBatch(BEGIN + 30 * SECOND, {0: 2}, "a", busy=busy),
        ]
        found = Walled(size=5, slide=5, lateness=1).replay(places, cuts)
        assert found.dropped == dropped
        assert {end for _, end, _ in found.closed} == {
            BEGIN + 5 * SECOND * at for at in (0, 1) if at not in dropped
        }


def test_the_chronicle_is_what_sparks_log_says(tmp_path: Path) -> None:
    for kind in ("offsets", "commits"):
        (tmp_path / "spark" / kind).mkdir(parents=True)
        (tmp_path / "spark" / kind / "0").touch()
    backlog = [{"cars": {"0": 9, "1": 2}}]
    pressure = [[[1, 2], [3, 4]], 0, 2]
    ours = {"start": "a", "time": 12_345_678, "backlog_ends": backlog, "pressure": pressure}
    lines = ["v1", '{"batchTimestampMs": 11}', json.dumps(ours), '{"cars": {"0": 8, "1": 2}}']
    log, chronicle = tmp_path / "spark" / "offsets" / "0", Chronicle(tmp_path, "cars")
    log.write_text("\n".join(lines))
    busy = ((1, 2), (3, 4))
    behind = MicroBatch(12_345_678, {0: 8, 1: 2}, "a", True, 11_000_000, busy)
    assert chronicle.micro_batches() == chronicle.since(-1) == [behind]
    assert chronicle.since(0) == [] and chronicle.time() == 12_345_678
    log.write_text("\n".join([*lines[:3], '{"cars": {"0": 9, "1": 5}}']))
    (reached,) = chronicle.micro_batches()
    assert reached.ends == chronicle.taken() == {0: 9, 1: 5} and not reached.backlog


def test_the_same_seed_gives_the_same_events() -> None:
    def first(seed: int) -> list[tuple[int, Event]]:
        made = events(seed, Shape(poison=0.1, silent=frozenset({1})))
        return [next(made) for _ in range(500)]

    assert first(1) == first(1) != first(2)
    assert len({one.raw for _, one in first(1)}) == 500
    assert {partition for partition, _ in first(1)} == {0, 2}
    assert nanoseconds(rfc3339(BEGIN + 1)) == BEGIN + 1


def line(ids: list[int], start: int = 0) -> bytes:
    begin, end, key = window(start)
    text = {"start": rfc3339(begin), "end": rfc3339(end), "key": key, "ids": ids}
    return json.dumps(text).encode()


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "is lost, with 2 events"),
        ([line([0])], "lost [1], too many []"),
        ([line([0, 1, 1])], "lost [], too many [1]"),
        ([line([1, 0])], "order of arrival"),
        ([line([0, 1]), line([0, 1])], "came out twice"),
        ([line([0, 1]), line([2], 5)], "1 windows too many"),
    ],
)
def test_the_verdict_sees_what_is_wrong(lines: list[bytes], says: str) -> None:
    places = sent((0, 1), (0, 2))
    expected = Expected(closed={window(0): [[0, 1]]})
    farewell = {"messages": 2}
    with pytest.raises(ProofError, match=says.replace("[", r"\[").replace("]", r"\]")):
        compare(places, expected, Output(lines, [], farewell), repeats=False)
    assert "1 windows" in compare(
        places, expected, Output([line([0, 1])], [], farewell), repeats=False
    )
    with pytest.raises(ProofError, match="counters"):
        compare(
            places, expected, Output([line([0, 1])], [], {**farewell, "dropped": 1}), repeats=True
        )


def test_windows_of_the_clock_are_held_against_what_has_expired() -> None:
    def say(told: int, dropped: int, *ids: list[int]) -> str:
        lines = [line(one, 5 * at) for at, one in enumerate(ids)]
        log: list[dict[str, Any]] = [{"msg": "Running"}, {"reason": "expired", "messages": told}]
        farewell = {"messages": 4, "dropped": dropped}
        return accounted({0, 1, 2, 3}, lines, log, farewell)

    assert "4 events, 2 windows, 1 in 1 expired" in say(1, 1, [0, 1], [3])
    for wrong, says in (
        ((1, 1, [0], [3]), "4 were sent, 2 came out, 1 expired"),
        ((1, 1, [0, 1], [1]), "more than one window"),
        ((1, 1, [0, 1], [7]), "never sent"),
        ((1, 2, [0, 1], [3]), "counters must be"),
        ((0, 0, [0, 1], [2, 3]), "too little has happened"),
    ):
        with pytest.raises(ProofError, match=says):
            say(*wrong)


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_every_patch_applies(mutant: Mutant) -> None:
    apply(mutant, ROOT, "--check")
    assert mutant.row in {*BY_NAME, *CASES} and mutant.bug
    assert not mutant.in_windows or mutant.row in CASES


def test_the_page_of_results_has_every_row_and_every_bug() -> None:
    page = RESULTS.read_text()
    for name in [row.name for row in ROWS] + [mutant.name for mutant in mutants()]:
        assert f"| `{name}` |" in page, name


def test_the_commands_of_the_page_make_sense() -> None:
    found = re.findall(
        r"^(?:STREAMER_PROOF=long )?python -m tests\.proof( .*|)$",
        PAGE.read_text() + RESULTS.read_text(),
        re.M,
    )
    assert len(found) > 3
    for arguments in found:
        asked(shlex.split(arguments, comments=True))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("kill-driver --long --times -1", "--times -1: without an injection nothing is proved"),
        ("kill-driver --long --times 0", "--times 0: without an injection nothing is proved"),
        ("kill-driver --times 3", "--times and --soon are for long runs: add --long"),
        ("--soon", "--times and --soon are for long runs: add --long"),
        ("kill-drivers", "there is no kill-drivers, but "),
    ],
)
def test_a_command_that_would_prove_nothing_or_less_is_refused(
    arguments: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("STREAMER_PROOF", raising=False)
    with pytest.raises(SystemExit) as end:
        asked(arguments.split())
    assert end.value.code == 2
    assert said in capsys.readouterr().err
