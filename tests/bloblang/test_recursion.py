"""Named maps that apply one another: 5,000 may be open at once, as in Benthos, and no more."""

import threading

import pytest

from streamer.bloblang import compile_mapping
from streamer.core.message import Message
from tests.bloblang.running import execution, run

COUNT = """map f {
  root = if this > %d { this } else { (this + 1).apply("f") }
}
root = 0.apply("f")"""
TOO_DEEP = (
    'Error("failed assignment (line 4): failed assignment (line 2): entering map f exceeded '
    'maximum allowed stacks of 5000, this could be due to unbounded recursion")'
)


@pytest.mark.parametrize(
    ("last", "result"), [(10, "11"), (1000, "1001"), (4998, "4999"), (4999, TOO_DEEP)]
)
def test_five_thousand_maps_may_be_open_at_once(last, result):
    assert run(COUNT % last) == result


def test_the_map_that_was_one_too_many_is_named_however_deep_in_others():
    mapping = """map f {
  root = [this].map_each(v -> v.apply("g"))
}
map g {
  root = {"a": this.apply("f")}
}
root = this.apply("f")"""
    assert "failed assignment (line 2): entering map f exceeded" in run(mapping)


def test_what_catches_errors_sees_only_the_real_limit():
    caught = COUNT.replace('.apply("f") }', '.apply("f").catch(-1) }')
    assert run(caught % 4000) == "4001"
    assert run(caught % 6000) == "-1"


def test_a_run_that_needs_more_stack_counts_once():
    ex = execution()
    mapping = 'map f {\n  root = if this > 200 { this } else { (this + 1).apply("f") }\n}\n'
    mapping += 'root.n = count("deep")\nroot.v = 0.apply("f")'
    assert run(mapping, ex=ex) == '{"n":1,"v":201}'
    assert run(mapping, ex=ex) == '{"n":2,"v":201}'


def test_the_plain_function_of_a_document_goes_as_deep():
    assert compile_mapping(COUNT % 3000).doc_fn({}) == 3001


def test_threads_count_their_own_maps():
    mapping = compile_mapping(COUNT % 900)
    results = []

    def work():
        for _ in range(5):
            results.append(mapping.query([Message(b"{}")], 0, execution()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [901] * 20


def test_maps_that_cannot_come_round_are_called_directly():
    straight = compile_mapping(
        'map f {\n root = 1\n}\nmap g {\n root = this.apply("f")\n}\nroot = this.apply("g")'
    )
    assert "enter(" not in straight.source
    assert "enter(" in compile_mapping(COUNT % 1).source
    assert "enter(" in compile_mapping("map f {\n root = this.apply(this)\n}\nroot = 1").source
