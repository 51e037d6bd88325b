"""`mapping`, `bloblang` and `mutation`: new documents, filters, and failures that lose nothing."""

from __future__ import annotations

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.processing import BulkProcessor

from .conftest import Make, Run, messages, payloads

FAILURE = "failed assignment (line 1): expected string value, got number from field `this.a` (1)"


@pytest.mark.parametrize("name", ["mapping", "bloblang"])
def test_a_mapping_makes_a_new_document(name: str, make: Make, a_run: Run) -> None:
    processor = make(f"{name}: root.b = this.a")
    found = processor.process(messages('{"a":1}', '{"a":2,"c":3}'), a_run.ex)
    assert payloads(found) == [['{"b":1}', '{"b":2}']]


def test_a_mutation_changes_the_document(make: Make, a_run: Run) -> None:
    processor = make("mutation: root.b = this.a")
    assert payloads(processor.process(messages('{"a":1}'), a_run.ex)) == [['{"a":1,"b":1}']]


def test_a_mapping_sees_the_batch_as_it_was(make: Make, a_run: Run) -> None:
    processor = make('mapping: root.sum = json("a").from_all().sum()')
    found = processor.process(messages('{"a":1}', '{"a":2}'), a_run.ex)
    assert payloads(found) == [['{"sum":3}', '{"sum":3}']]


def test_a_mutation_sees_the_messages_before_it_changed(make: Make, a_run: Run) -> None:
    processor = make('mutation: root.a = json("a").from_all().sum()')
    found = processor.process(messages('{"a":1}', '{"a":2}'), a_run.ex)
    assert payloads(found) == [['{"a":3}', '{"a":5}']]


@pytest.mark.parametrize("name", ["mapping", "mutation"])
def test_deleted_messages_are_filtered(name: str, make: Make, a_run: Run) -> None:
    processor = make(f"{name}: root = if this.a == 1 {{ deleted() }}")
    found = processor.process(messages('{"a":1}', '{"a":2}'), a_run.ex)
    assert payloads(found) == [['{"a":2}']]
    assert processor.process(messages('{"a":1}'), a_run.ex) == []


@pytest.mark.parametrize("name", ["mapping", "mutation", "bloblang"])
def test_a_failure_is_logged_and_marks_a_message_that_stays_as_it_was(
    name: str, make: Make, a_run: Run
) -> None:
    processor = make(f"label: up\n{name}: root.x = this.a.uppercase()")
    found = processor.process(messages('{"a":1}', '{"a":"b"}'), a_run.ex)
    assert [message.error for message in found[0]] == [FAILURE, None]
    assert found[0][0].raw == b'{"a":1}'
    assert a_run.logged == [("ERROR", FAILURE)]
    assert a_run.fields == [{"label": "up", "path": "root.pipeline.processors.0"}]
    assert a_run.counted == [("processor_error", 1)]


@pytest.mark.parametrize("name", ["mapping", "mutation"])
def test_a_message_that_failed_before_is_mapped_and_keeps_its_mark(
    name: str, make: Make, a_run: Run
) -> None:
    processor = make(f"{name}: root.error = error()")
    found = processor.process([Message(b"{}", error="bad")], a_run.ex)
    assert (found[0][0].raw, found[0][0].error) == (b'{"error":"bad"}', "bad")


REDUCE = """\
mapping: |
  root = if batch_index() == 0 {
    { "n": batch_size(), "sum": json("a").from_all().sum() }
  } else { deleted() }
"""


def test_a_batch_is_reduced_to_its_first_message(make: Make, a_run: Run) -> None:
    found = make(REDUCE).process(messages('{"a":1}', '{"a":2}', '{"a":3}'), a_run.ex)
    assert payloads(found) == [['{"n":3,"sum":6}']]


def test_a_reduction_that_fails_keeps_only_the_message_it_was_for(make: Make, a_run: Run) -> None:
    found = make(REDUCE).process(messages('{"a":1}', '{"a":"x"}'), a_run.ex)
    assert [(m.raw, m.error is not None) for m in found[0]] == [(b'{"a":1}', True)]


def test_a_reduction_to_an_index_that_a_batch_lacks_filters_the_batch(
    make: Make, a_run: Run
) -> None:
    processor = make("mapping: root = if batch_index() == 2 { this } else { deleted() }")
    assert processor.process(messages("{}", "{}"), a_run.ex) == []
    assert payloads(processor.process(messages("1", "2", "3"), a_run.ex)) == [["3"]]


@pytest.mark.parametrize("name", ["mapping", "mutation"])
def test_messages_that_are_batches_by_themselves_give_the_same(
    name: str, make: Make, a_run: Run
) -> None:
    yaml = f"{name}: root = if batch_index() == 0 && this.a != 2 {{ this }} else {{ deleted() }}"
    processor = make(yaml)
    assert isinstance(processor, BulkProcessor)
    each = processor.process_each(messages('{"a":1}', '{"a":2}', "no json"), a_run.ex)
    assert [(m.raw, m.error is not None) for m in each] == [
        (b'{"a":1}', False),
        (b"no json", True),
    ]


@pytest.mark.parametrize("name", ["mapping", "mutation", "bloblang"])
def test_an_empty_mapping_is_refused(name: str, make: Make) -> None:
    with pytest.raises(ConfigError, match="the mapping is empty; expected one"):
        make(f'{name}: ""')
