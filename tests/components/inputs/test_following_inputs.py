"""Inputs that read others on the driver: read_until, sequence, batched and a broker's batching."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.spool.store import SpoolStore
from streamer.core.errors import ConfigError
from streamer.core.message import Batch
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from streamer.sdk.sync_response import PendingRequests, add_answers
from tests.components.inputs.reading import Said, batches_of, built
from tests.components.inputs.receiving import Receiving, receiving
from tests.components.inputs.rooms import lodging

NUMBERS = "generate: {interval: '', count: COUNT, mapping: 'root = count(\"n\")'}"


def numbers(count: int) -> str:
    return NUMBERS.replace("COUNT", str(count))


def ints(raws: list[bytes]) -> list[int]:
    return [int(raw) for raw in raws]


def test_the_message_that_passes_the_check_is_the_last_one(tmp_path):
    text = (
        "input: {read_until: {check: 'count(\"seen\") >= 300 && this % 7 == 0', input: "
        f"{{{numbers(0)}, processors: [mapping: root = this + 1]}}}}}}"
    )
    with receiving(tmp_path, text) as it:
        assert ints(it.wait_for_end()) == list(range(2, 302 + 1))[:300]
    with receiving(tmp_path, text) as again:
        # What was read to its end stays ended; the next start of a finished run has a new spool.
        assert len(again.wait_for_end()) == 300


def last_meta(it: Receiving) -> list[Any]:
    start = it.source.initial_offset()
    found = batches_of(it.source, start, it.source.latest_offset(start, 0, Limit()).offset)
    return [message.meta.get("benthos_read_until") for batch in found for message in batch]


def test_it_is_marked_in_its_metadata(tmp_path):
    text = f"input: {{read_until: {{check: this == 3, input: {{{numbers(9)}}}}}}}"
    with receiving(tmp_path, text) as it:
        assert ints(it.wait_for_end()) == [1, 2, 3]
        assert last_meta(it) == [None, None, "final"]


def test_a_check_that_fails_is_logged_and_does_not_end_the_input(tmp_path):
    check = "this.no > 3"
    text = f"input: {{read_until: {{check: {check}, input: {{{numbers(2)}}}}}}}"
    with receiving(tmp_path, text) as it:
        assert ints(it.wait_for_end()) == [1, 2]
        assert it.lodged.log[0][1].startswith("Failed to execute check query: ")


def test_an_input_to_which_nothing_comes_ends_after_the_idle_timeout(tmp_path):
    generate = "generate: {interval: 1h, mapping: root = 1}"
    text = f"input: {{read_until: {{idle_timeout: 100ms, input: {{{generate}}}}}}}"
    with receiving(tmp_path, text) as it:
        assert it.wait_for_end() == [b"1"]
        assert ("INFO", "Idle timeout reached") in it.lodged.log


def test_an_input_that_ends_too_early_is_opened_again(tmp_path):
    (tmp_path / "in").write_text("a\nb\nc\n")
    text = (
        "input: {read_until: {check: 'count(\"again\") == 8', restart_input: true, "
        f"input: {{file: {{paths: [{tmp_path}/in]}}}}}}}}"
    )
    with receiving(tmp_path, text) as it:
        assert b"".join(it.wait_for_end()) == b"abcabcab"


def test_after_a_crash_reading_goes_on_where_it_was(tmp_path):
    (tmp_path / "in").write_text("".join(f"{n}\n" for n in range(50)))
    text = (
        "input: {read_until: {check: 'count(\"all\") == 60', "
        f"input: {{file: {{paths: [{tmp_path}/in, {tmp_path}/more]}}}}}}}}"
    )
    (tmp_path / "more").write_text("")
    with lodging(tmp_path / "spool") as lodged:
        it = Receiving(lodged, open_input(built(text), lodged.room))
        # The last file has no end yet that would end the input.
        found = it.wait(50)
        known = lodged.house.remembered
        mark = SpoolStore(tmp_path / "spool").mark
    assert len(found) == 50 and mark["counters"] == {"all": 50}
    with open(tmp_path / "spool" / "safe", "r+b") as pointer:
        pointer.truncate(0)
    _forget_the_end(tmp_path / "spool", mark)
    (tmp_path / "more").write_text("".join(f"{n}\n" for n in range(50, 99)))
    with lodging(tmp_path / "spool", known) as lodged:
        again = Receiving(lodged, open_input(built(text), lodged.room))
        assert ints(again.wait_for_end()) == list(range(60))


def _forget_the_end(directory: Path, mark: dict[str, Any]) -> None:
    """Take back that the input had ended, as if the machine had gone down just before."""
    store = SpoolStore(directory)
    store.append([], {**mark, "done": False})


def test_inputs_are_read_one_after_another(tmp_path):
    (tmp_path / "in").write_text("a\nb\n")
    text = (
        f"input: {{sequence: {{inputs: [{{file: {{paths: [{tmp_path}/in]}}}}, {{{numbers(2)}, "
        f"processors: [mapping: root = this * 10]}}, {{subprocess: {{name: echo, args: [z]}}}}]}}}}"
    )
    with receiving(tmp_path, text) as it:
        assert it.wait_for_end() == [b"a", b"b", b"10", b"20", b"z"]


def test_the_next_input_is_opened_when_the_one_before_it_has_ended(tmp_path):
    script = f"echo written > {tmp_path}/made"
    text = (
        f"input: {{sequence: {{inputs: [{{subprocess: {{name: sh, args: [-c, '{script}']}}}}, "
        f"{{file: {{paths: [{tmp_path}/made]}}}}]}}}}"
    )
    with receiving(tmp_path, text) as it:
        assert it.wait_for_end() == [b"written"]


MAIN = [
    {"uuid": "AAA", "name": "Melanie", "age": 34},
    {"uuid": "BBB", "name": "Emma", "age": 28},
    {"uuid": "CCC", "name": "Geri", "age": 45},
]
HOBBIES = [
    {"document": {"uuid": "CCC", "hobbies": [{"type": "pokemon go"}]}},
    {"document": {"uuid": "AAA", "hobbies": [{"type": "rowing"}, {"type": "golf"}]}},
    {"no": "identifier"},
]


def joined(tmp_path: Path, join: str) -> str:
    for name, rows in (("main", MAIN), ("hobbies", HOBBIES)):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    mapping = (
        "root.uuid = this.document.uuid\n            "
        "root.hobbies = this.document.hobbies.map_each(this.type)"
    )
    return f"""
input:
  sequence:
    sharded_join: {join}
    inputs:
      - file: {{ paths: [ {tmp_path}/main ] }}
      - file: {{ paths: [ {tmp_path}/hobbies ] }}
        processors:
          - mapping: |
              {mapping.replace(chr(10) + "            ", chr(10) + "              ")}
"""


@pytest.mark.parametrize("iterations", [1, 10])
def test_a_full_outer_join_has_every_identifier_once(tmp_path, iterations):
    text = joined(tmp_path, f"{{type: full-outer, id_path: uuid, iterations: {iterations}}}")
    with receiving(tmp_path, text) as it:
        found = [json.loads(raw) for raw in it.wait_for_end()]
    assert sorted(found, key=lambda doc: doc["uuid"]) == [
        {"uuid": "AAA", "name": "Melanie", "age": 34, "hobbies": ["rowing", "golf"]},
        {"uuid": "BBB", "name": "Emma", "age": 28},
        {"uuid": "CCC", "name": "Geri", "age": 45, "hobbies": ["pokemon go"]},
    ]


def test_an_outer_join_gives_what_comes_in_the_last_input(tmp_path):
    with receiving(tmp_path, joined(tmp_path, "{type: outer, id_path: uuid}")) as it:
        found = [json.loads(raw)["name"] for raw in it.wait_for_end()]
    assert found == ["Geri", "Melanie"]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("array", {"a": [1, 2, 3], "b": {"c": ["x", "y"]}}),
        ("replace", {"a": [2, 3], "b": {"c": "y"}}),
    ]
    + [("keep", {"a": 1, "b": {"c": "x"}})],
)
def test_colliding_values_are_merged_by_the_strategy(tmp_path, strategy, expected):
    one, two = {"id": "k", "a": 1, "b": {"c": "x"}}, {"id": "k", "a": [2, 3], "b": {"c": "y"}}
    (tmp_path / "in").write_text(f"{json.dumps(one)}\n{json.dumps(two)}\n")
    text = (
        "input: {sequence: {sharded_join: {type: full-outer, id_path: id, merge_strategy: "
        f"{strategy}}}, inputs: [{{file: {{paths: [{tmp_path}/in]}}}}]}}}}"
    )
    with receiving(tmp_path, text) as it:
        assert [json.loads(raw) for raw in it.wait_for_end()] == [{"id": "k", **expected}]


def sizes(it: Receiving) -> list[int]:
    start = it.source.initial_offset()
    found: list[Batch] = []
    found = batches_of(it.source, start, it.source.latest_offset(start, 0, Limit()).offset)
    return [len(batch) for batch in found]


def test_a_policy_closes_batches_across_the_steps_that_are_read(tmp_path):
    text = f"input: {{batched: {{policy: {{count: 7000}}, child: {{{numbers(25_000)}}}}}}}"
    with receiving(tmp_path, text) as it:
        assert ints(it.wait_for_end()) == list(range(1, 25_001))
        assert sizes(it) == [7000, 7000, 7000, 4000]
        assert it.lodged.counts["batch_created"] == 3


def test_a_period_closes_a_batch_though_nothing_comes(tmp_path):
    generate = "generate: {interval: 1h, mapping: root = 1}"
    text = f"input: {{batched: {{policy: {{period: 50ms}}, child: {{{generate}}}}}}}"
    with receiving(tmp_path, text) as it:
        assert it.wait(1) == [b"1"]


@contextmanager
def _steps_of(most: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamer.connectors.spool.driver_reader.READ_LIMIT", Limit(messages=most))
        yield


@pytest.mark.parametrize("first", [3, 10, 14])
def test_what_a_batch_held_at_a_crash_is_read_again_and_nothing_twice(tmp_path, first):
    """The input stops after `first` messages, with some of them in a batch that is not closed."""
    (tmp_path / "in").write_text("".join(f"{n}\n" for n in range(first)))
    # A pipe that stays open: the input does not end, so what is held stays held.
    policy = "policy: {count: 4}"
    text = f"input: {{batched: {{{policy}, child: {{file: {{paths: [{tmp_path}/in]}}}}}}}}"
    endless = text.replace("child: {", "child: {broker: {inputs: [{").replace(
        "}}}}", "}}, {generate: {interval: 1h, mapping: root = deleted()}}]}}}}"
    )
    with _steps_of(5):
        with lodging(tmp_path / "spool") as lodged:
            it = Receiving(lodged, open_input(built(endless), lodged.room))
            it.wait(first // 4 * 4)
            known = lodged.house.remembered
            threads = lodged.house.threads
        for thread in threads:
            thread.join(60)
        with lodging(tmp_path / "spool", known) as lodged:
            with open(tmp_path / "in", "a") as more:
                more.writelines(f"{n}\n" for n in range(first, 20))
            again = Receiving(lodged, open_input(built(endless), lodged.room))
            assert ints(again.wait(20)) == list(range(20))
            assert set(sizes(again)) == {4}


def test_a_broker_puts_messages_of_its_inputs_into_batches(tmp_path):
    inputs = ", ".join(f"{{{numbers(30)}, processors: [mapping: root = {n}]}}" for n in (1, 2))
    text = f"input: {{broker: {{batching: {{count: 40}}, inputs: [{inputs}]}}}}"
    with receiving(tmp_path, text) as it:
        assert sorted(it.wait_for_end()) == [b"1"] * 30 + [b"2"] * 30
        assert sizes(it) == [40, 20]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            f"read_until: {{input: {{{numbers(1)}}}}}",
            "to set either check or idle_timeout",
        ),
        ("sequence: {inputs: []}", "requires at least one child input"),
        (
            f"sequence: {{sharded_join: {{type: outer}}, inputs: [{{{numbers(1)}}}]}}",
            "the id path must not be empty",
        ),
        (f"batched: {{policy: {{}}, child: {{{numbers(1)}}}}}", "at least one active trigger"),
    ],
)
def test_what_cannot_work_is_found_by_lint(text, problem):
    with pytest.raises(ConfigError) as refused:
        built(f"input: {{{text}}}")
    assert problem in str(refused.value)


@pytest.mark.parametrize("count", [1, 2])
def test_requests_go_on_waiting_for_what_answers_their_messages(tmp_path, count):
    served = "http_server: {address: '127.0.0.1:0', timeout: 60s}"
    text = f"input: {{batched: {{policy: {{count: {count}, period: 1h}}, child: {{{served}}}}}}}"
    with lodging(tmp_path / "spool") as lodged:
        lodged.house.answers = PendingRequests()
        source = open_input(built(text), lodged.room)
        url = lodged.said("url") + "/post"
        heard: list[bytes] = []

        def ask(body: bytes) -> None:
            request = urllib.request.Request(url, body, method="POST")
            with urllib.request.urlopen(request, timeout=60) as response:
                heard.append(response.read())

        asking = [threading.Thread(target=ask, args=(b"%d" % n,)) for n in range(2)]
        for thread in asking:
            thread.start()
        at, until = source.initial_offset(), time.monotonic() + 60
        while len(heard) < 2:
            assert time.monotonic() < until
            end = source.latest_offset(at, 0, Limit()).offset
            ex = Said().execution()
            for found in batches_of(source, at, end, ex=ex):
                add_answers([one.with_bytes(b"heard " + one.raw) for one in found], ex)
            at = end
            lodged.house.answers.resolve(ex.answers)
            time.sleep(0.01)
        for thread in asking:
            thread.join(60)
    assert sorted(heard) == [b"heard 0", b"heard 1"]
