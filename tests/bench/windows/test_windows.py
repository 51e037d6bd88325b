"""What the windows have to say, against the plainest possible loops; errors are noticed."""

import json
from argparse import ArgumentTypeError
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from tests.bench import traffic
from tests.bench.__main__ import kinds_of
from tests.bench.jobs import GROUPS
from tests.bench.peers import lines_of
from tests.bench.windows import each, jobs, joins, lights, measure, release, sessions, versus


def _events(*paths: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(paths)]


def _time(event: dict[str, Any], name: str = "at") -> datetime:
    return datetime.fromisoformat(event[name])


def _lines(documents: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(document).encode() for document in documents]


def _of_lights(paths: list[Path], slide: int, distinct: bool, size: int) -> list[dict[str, Any]]:
    """A line for each window [start, end) of a light, by a loop over dicts."""
    held: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for event in _events(*paths):
        at = int(_time(event, "created_at").timestamp())
        for end in range(at + 1, at + size + 1):
            if end % slide == 0:
                held[end, event["traffic_light"]].append(event)
    return [
        {
            "traffic_light": light,
            "created_at": f"{datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "total_cars": len({e["registration_plate"] for e in some} if distinct else some),
            "passengers": sum(e["passengers"] for e in some),
        }
        for (end, light), some in held.items()
    ]


@pytest.mark.parametrize("slide", [jobs.SIZE, jobs.EVERY])
def test_windows_of_lights_are_what_a_loop_says_and_a_lost_one_is_noticed(
    tmp_path: Path, slide: int
) -> None:
    paths = traffic.write(tmp_path, 3_000, 2, origin=1_700_000_003, pace=150)
    documents = _of_lights(paths, slide, True, jobs.SIZE)
    assert len(documents) > 1_500
    assert lights.differences(paths, slide, _lines(documents)) == ""
    assert "1 missing" in lights.differences(paths, slide, _lines(documents[1:]))
    documents[7]["total_cars"] += 1
    assert "1 wrong" in lights.differences(paths, slide, _lines(documents))


@pytest.mark.parametrize("distinct", [True, False])
def test_the_window_that_is_released_holds_all_events_but_the_last(
    tmp_path: Path, distinct: bool
) -> None:
    paths = release.write(tmp_path / "files", 400)
    starts = {_time(event, "created_at").timestamp() // release.SIZE for event in _events(*paths)}
    assert len(_events(paths[0])) == 400
    assert (
        len({_time(e, "created_at").timestamp() // release.SIZE for e in _events(*paths[:2])}) == 1
    )
    assert len(starts) == 2
    held: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for event in _events(*paths):
        end = int(_time(event, "created_at").timestamp() // release.SIZE + 1) * release.SIZE
        held[event["traffic_light"], end].append(event)
    documents = [
        {
            "traffic_light": light,
            "created_at": f"{datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "total_cars": len({e["registration_plate"] for e in some} if distinct else some),
            "passengers": sum(e["passengers"] for e in some),
        }
        for (light, end), some in held.items()
    ]
    assert release.differences(paths, distinct, _lines(documents)) == ""
    assert release.differences(paths, distinct, _lines(documents[1:]))


def test_sessions_are_what_sorting_each_users_events_says(tmp_path: Path) -> None:
    paths = sessions.write(tmp_path / "files", 2_000, 3)
    by_user: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in _events(*paths):
        by_user[event["user"]].append(event)
    assert sum(map(len, by_user.values())) == 2_000
    gap = timedelta(milliseconds=sessions.GAP_MS)
    documents = []
    for user, events in by_user.items():
        events.sort(key=_time)
        cuts = [i for i in range(1, len(events)) if _time(events[i]) - _time(events[i - 1]) > gap]
        for first, last in zip([0, *cuts], [*cuts, len(events)], strict=True):
            some = events[first:last]
            documents.append(
                {
                    "user": user,
                    "start": some[0]["at"],
                    "end": some[-1]["at"],
                    "events": len(some),
                    "total": sum(event["amount"] for event in some),
                }
            )
    assert len(documents) > len(by_user) > 150
    assert sessions.differences(paths, _lines(documents)) == ""
    documents[5]["total"] += 1
    assert "1 wrong" in sessions.differences(paths, _lines(documents))


def test_sessions_come_in_the_order_of_time_with_two_bursts_of_five_a_user(tmp_path: Path) -> None:
    events = _events(*sessions.write(tmp_path / "files", 20_000, 2))
    times = [_time(event) for event in events]
    assert times == sorted(times)
    assert all(at.microsecond // 1_000 % 2 == 0 for at in times)
    assert 1_990 <= len({event["user"] for event in events}) <= 2_000


def test_a_session_twice_is_refused() -> None:
    at = "2026-01-01T00:00:00Z"
    line = {"user": "a", "start": at, "end": at, "events": 1, "total": 1}
    with pytest.raises(ValueError, match="came twice"):
        sessions.given(_lines([line, line]))


def test_each_event_gives_what_its_window_holds_by_then(tmp_path: Path) -> None:
    paths = traffic.write(tmp_path, 3_000, 2, each.ORIGIN, 30)
    documents: list[dict[str, Any]] = []
    by_then: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for event in _events(*paths):
        start = int(_time(event, "created_at").timestamp()) // jobs.SIZE * jobs.SIZE
        some = by_then[event["traffic_light"], start]
        some.append(event)
        end = datetime.fromtimestamp(start + jobs.SIZE, UTC)
        documents.append(
            {
                "traffic_light": event["traffic_light"],
                "created_at": f"{end:%Y-%m-%dT%H:%M:%SZ}",
                "total_cars": len({e["registration_plate"] for e in some}),
                "passengers": sum(e["passengers"] for e in some),
            }
        )
    want = each.expected(lines_of(paths))
    assert each.differences(want, each.given(_lines(documents))) == ""
    light = documents[0]["traffic_light"]
    same = [i for i, line in enumerate(documents) if line["traffic_light"] == light]
    swapped = documents.copy()
    swapped[same[0]], swapped[same[1]] = documents[same[1]], documents[same[0]]
    assert f"such as {light}, of which" in each.differences(want, each.given(_lines(swapped)))
    assert "at 0" in each.differences(want, each.given(_lines(swapped)))
    assert each.differences(want, each.given(_lines(documents[:-1])))


def test_pairs_are_what_two_loops_say(tmp_path: Path) -> None:
    left, right = joins.write(tmp_path / "files", 500)
    within = timedelta(milliseconds=joins.WITHIN_MS)
    shipments = _events(right)
    assert [_time(event) for event in shipments] == sorted(_time(event) for event in shipments)
    documents = [
        {"order_id": order["order_id"], "shipment": shipment["shipment"]}
        for order in _events(left)
        for shipment in shipments
        if order["order_id"] == shipment["order_id"]
        and abs(_time(order) - _time(shipment)) <= within
    ]
    assert 300 < len(documents) < 450
    assert joins.differences(left, right, _lines(documents)) == ""
    assert "1 missing" in joins.differences(left, right, _lines(documents[1:]))
    assert joins.differences(left, right, _lines([*documents, documents[0]]))
    assert max(Counter(line["order_id"] for line in documents).values()) > 1


def test_peers_get_the_first_events_and_one_that_closes_all_windows(tmp_path: Path) -> None:
    paths = traffic.write(tmp_path / "all", 1_000, 3, 1_700_000_000, 100)
    some = versus.first(paths, 500, tmp_path / "some")
    assert len(some) == versus.FILES
    assert list(lines_of(some)) == list(lines_of(paths))[:500]
    last = _events(some[-1])[-1]
    later = json.loads(versus.sentinel(some[-1]))
    assert _time(later, "created_at") - _time(last, "created_at") == timedelta(hours=1)
    assert later["traffic_light"] == last["traffic_light"]


OF_LIGHTS = jobs.lights("tumbling_window")
JOBS = [
    (OF_LIGHTS, jobs.LIGHT, "registration_plate"),
    (jobs.lights("hopping_window", every="1s"), jobs.LIGHT, "registration_plate"),
    (jobs.together(release.SIZE), GROUPS, "registration_plate"),
    (jobs.together(release.SIZE), jobs.COUNTED, "passengers"),
]


@pytest.mark.parametrize(
    ("buffer", "pipeline", "folded"), JOBS, ids=["tumbling", "hopping", "distinct", "counted"]
)
def test_windows_keep_partial_results_unless_whole_messages_are_wanted(
    buffer: str, pipeline: str, folded: str, tmp_path: Path
) -> None:
    files, out = tmp_path / "*.jsonl", tmp_path / "out.jsonl"
    text = jobs.from_files(files, buffer, pipeline, out, "local[2]")
    assert folded in measure.kept(text, tmp_path / "config.yaml")
    text = jobs.from_stdin(buffer, pipeline, out, "local[2]", whole=True)
    assert "messages whole" in measure.kept(text, tmp_path / "config.yaml")


@pytest.mark.parametrize(
    "buffer",
    [jobs.lights("tumbling_window", emit="each"), jobs.sessions(sessions.GAP_MS)],
    ids=["each", "session"],
)
def test_the_other_configs_are_right(buffer: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    text = jobs.from_files(tmp_path / "*.jsonl", buffer, jobs.SESSION, out, "local[2]")
    assert parse_config(text).buffer.name in ("tumbling_window", "session_window")


def test_the_names_of_the_kinds_are_read_and_a_wrong_one_is_refused() -> None:
    assert kinds_of("join,each") == ("join", "each")
    with pytest.raises(ArgumentTypeError, match="no kind jion; there are tumbling, hopping"):
        kinds_of("jion,each")
