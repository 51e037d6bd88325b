"""`group_by`: the first check that is true decides; others are a batch of their own."""

from __future__ import annotations

from .conftest import Make, Run, messages, payloads

GROUPS = """\
group_by:
  - check: this.n > 2
    processors:
      - mapping: root.big = this.n
  - check: this.n > 1
"""


def test_groups_come_in_the_order_of_the_config_and_the_rest_last(make: Make, a_run: Run) -> None:
    found = make(GROUPS).process(messages('{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}'), a_run.ex)
    assert payloads(found) == [['{"big":3}', '{"big":4}'], ['{"n":2}'], ['{"n":1}']]


def test_a_check_that_fails_is_logged_and_counts_as_false(make: Make, a_run: Run) -> None:
    found = make("group_by: [{check: this.n}]").process(messages('{"n":1}', '{"n":true}'), a_run.ex)
    assert payloads(found) == [['{"n":true}'], ['{"n":1}']]
    assert a_run.logged == [
        ("ERROR", "Failed to test group 0: expected bool value, got number from mapping (1)")
    ]
    assert [message.error for batch in found for message in batch] == [None, None]


def test_a_check_that_deletes_is_not_true(make: Make, a_run: Run) -> None:
    make("group_by: [{check: deleted()}]").process(messages("{}"), a_run.ex)
    assert a_run.logged == [
        (
            "ERROR",
            "Failed to test group 0: query mapping resulted in deleted message, "
            "expected a boolean value",
        )
    ]


def test_a_check_may_look_at_the_whole_batch(make: Make, a_run: Run) -> None:
    yaml = "group_by: [{check: batch_index() == batch_size() - 1}]"
    assert payloads(make(yaml).process(messages("1", "2", "3"), a_run.ex)) == [["3"], ["1", "2"]]


def test_a_group_that_its_processors_filter_vanishes(make: Make, a_run: Run) -> None:
    yaml = "group_by: [{check: 'true', processors: [{mapping: root = deleted()}]}]"
    assert make(yaml).process(messages("1"), a_run.ex) == []


def test_without_groups_the_batch_passes(make: Make, a_run: Run) -> None:
    assert payloads(make("group_by: []").process(messages("1", "2"), a_run.ex)) == [["1", "2"]]
