"""`try_catch` runs processors until a message fails, and others on what has failed.

What comes out is what Benthos 4.76 gives.
"""

from __future__ import annotations

import json

from streamer.core.execution import Execution
from streamer.core.message import Message

from .conftest import Make, Run, messages, payloads

RECOVERING = """\
try_catch:
  processors:
    - { label: thr, mapping: 'root = if this.n == 3 { throw("three") }' }
    - { mapping: root.seen = true }
  catch:
    - { mapping: 'root = {"n": this.n, "w": @error, "e": errored()}' }
"""


def test_a_message_that_fails_skips_the_rest_and_goes_to_catch_as_one_that_has_not(
    make: Make, a_run: Run
) -> None:
    [made] = make(RECOVERING).process(messages('{"n":1}', '{"n":3}', '{"n":5}'), a_run.ex)
    assert [message.error for message in made] == [None] * 3
    assert json.loads(made[1].raw) == {
        "n": 3,
        "e": False,
        "w": {
            "label": "thr",
            "name": "mapping",
            "path": "pipeline.processors.0.try_catch.processors.0",
            "what": "failed assignment (line 1): three",
        },
    }
    assert [made[0].raw, made[2].raw] == [b'{"seen":true}'] * 2


def test_without_recovery_the_error_moves_into_the_metadata(make: Make, a_run: Run) -> None:
    yaml = "try_catch: { processors: [ { mapping: root = throw(`no`) } ], error_metadata: why }"
    [[made]] = make(yaml.replace("`", '"')).process(messages("1"), a_run.ex)
    assert (made.raw, made.error) == (b"1", None)
    assert made.meta["why"]["what"] == "failed assignment (line 1): no"


def test_a_message_that_failed_before_is_recovered_too(make: Make, a_run: Run) -> None:
    recovery = "catch: [ { mapping: root = @error.what } ]"
    yaml = f"try_catch: {{ processors: [ {{ mapping: root = 9 }} ], {recovery} }}"
    found = make(yaml).process([Message(b"1", error="bad"), Message(b"2")], a_run.ex)
    assert payloads(found) == [["bad", "9"]]


def test_an_error_of_the_recovery_is_a_new_one_which_strict_runs_keep(make: Make) -> None:
    yaml = """\
try_catch:
  processors: [ { mapping: 'root = throw("first")' } ]
  catch: [ { mapping: 'root = throw("second")' }, { mapping: root = "after" } ]
"""
    for strict, payload in ((False, "after"), (True, "1")):
        ex = Execution(lambda: 0, strict=strict)
        [[made]] = make(yaml).process(messages("1"), ex)
        assert made.raw.decode() == payload
        assert made.error == "failed assignment (line 1): second"


def test_when_all_is_filtered_no_batch_comes_out(make: Make, a_run: Run) -> None:
    yaml = "try_catch: { processors: [ { mapping: root = deleted() } ] }"
    assert make(yaml).process(messages("1", "2"), a_run.ex) == []
