"""Functions that look at the batch, the run and the clock; and what a mapping is known to use."""

import pickle

import pytest

from streamer.bloblang import Uses, compile_interpolation, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from tests.bloblang.running import NOW, execution, run

BATCH = ('{"a":1,"x":"p"}', '{"a":2,"x":"q"}', '{"a":3,"x":"p"}')


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ('json("a").from_all()', "[1,2,3]"),
        ('json("a").from_all().sum()', "6"),
        ('json("x").from_all().unique().length()', "2"),
        ('json("a").from(2)', "3"),
        ("this.a.from(2)", "2"),  # `this` stays the message's own
        ("batch_index().from_all()", "[0,1,2]"),
        ('(json("a") + 1).from_all()', "[2,3,4]"),
        ("batch_size()", "3"),
        ("content().from(0).string()", '{"a":1,"x":"p"}'),
        ('json("nope").from_all()', "[null,null,null]"),
    ],
)
def test_a_query_can_look_at_the_whole_batch(query, result):
    assert run(f"root = {query}", *BATCH, index=1) == result


@pytest.mark.parametrize(
    ("mapping", "result"),
    [
        ("root.a = KEPT.from_all()", '{"a":[1,null,3]}'),
        ("root.a = KEPT.from_all().index(1)", "{}"),
        ("root.a = [KEPT.from_all().index(1), 5]", '{"a":[5]}'),
        ("root.a = [KEPT.from_all().index(1).catch(this)]", '{"a":[]}'),
        ("root.a = KEPT.from_all().index(1).type()", '{"a":"delete"}'),
        ("root.a = KEPT.from_all().map_each(this)", '{"a":[1,3]}'),
        ("root.a = KEPT.from_all().map_each(x -> [x])", '{"a":[[1],[],[3]]}'),
        ('root.a = KEPT.from_all().map_each(x -> {"b": x})', '{"a":[{"b":1},{},{"b":3}]}'),
        ("root.a = KEPT.from_all().map_each(x -> x | 5)", '{"a":[1,5,3]}'),
        ("root.a = KEPT.from_all().map_each(x -> x.or(5))", '{"a":[1,5,3]}'),
        ("root.a = KEPT.from_all().map_each(x -> x.(y -> y)).length()", '{"a":2}'),
        ("let all = KEPT.from_all()\nroot.a = $all.index(1)", "{}"),
        ("let all = KEPT.from_all()\nroot.a = [$all.index(1), $all.length()]", '{"a":[3]}'),
    ],
)
def test_what_a_message_deletes_is_deleted_wherever_it_is_taken_out_of_the_list(mapping, result):
    kept = '(match json("a") { this == 2 => deleted(), _ => this })'  # as Benthos 4.76 answers
    assert run(mapping.replace("KEPT", kept), *BATCH) == result


def test_a_message_of_the_batch_that_is_no_document_fails_the_one_that_asks():
    assert run('root = json("a").from_all()', '{"a":1}', "bad").startswith('Error("failed')
    assert run('root = json("a").from(7)', *BATCH) == (
        'Error("failed assignment (line 1): target message part does not exist")'
    )


SEED = """root = if batch_index() == 0 {
  {
    "created_at": meta("window_end_timestamp"),
    "total_cars": json("x").from_all().unique().length(),
    "passengers": json("a").from_all().sum(),
  }
} else { deleted() }
"""


def test_the_traffic_light_mapping_keeps_one_message_of_a_batch():
    meta = {"window_end_timestamp": "2021-08-07T10:00:00Z"}
    wanted = '{"created_at":"2021-08-07T10:00:00Z","passengers":6,"total_cars":2}'
    assert run(SEED, *BATCH, meta=meta) == wanted
    assert run(SEED, *BATCH, meta=meta, index=1) == "<deleted>"
    assert compile_mapping(SEED).only_index == 0


@pytest.mark.parametrize(
    ("mapping", "index"),
    [
        ("root = if batch_index() == 2 { this } else { deleted() }", 2),
        ("root = if batch_index() != 1 { deleted() } else { this }", 1),
        ("root = if batch_index() > 0 { deleted() }", 0),
        ("root = if 1 > batch_index() { this } else { deleted() }", 0),
        ("root = match { batch_index() == 0 => this, _ => deleted() }", 0),
        ("root = if batch_index() >= 2 { deleted() }", None),
        ("root = if this.a == 0 { this } else { deleted() }", None),
        ("root = if batch_index() == 0 { this } else { this.x }", None),
        ("root = this\nroot = if batch_index() == 0 { this } else { deleted() }", None),
        ("let a = this.a\nroot = if batch_index() == 1 { $a } else { deleted() }", 1),
        ("root = if batch_index() == 1 { this } else { deleted() }\nmeta a = this.a", 1),
        ("let c = counter()\nroot = if batch_index() == 0 { $c } else { deleted() }", None),
        ("let l = lag(this.a)\nroot = if batch_index() == 0 { $l } else { deleted() }", None),
        ('let c = count("c")\nroot = if batch_index() == 0 { $c } else { deleted() }', None),
        ("root = if batch_index() == 0 { this } else { deleted() }\nroot.a = 1", None),
        (
            "root = if batch_index() == 0 { 1 } else { deleted() }\nif this.a == 1 { root = 2 }",
            None,
        ),
    ],
)
def test_that_only_one_index_is_kept_is_claimed_only_when_proved(mapping, index):
    compiled = compile_mapping(mapping)
    assert compiled.only_index == index
    batch = [Message(text.encode()) for text in BATCH]
    for at in range(3) if index is not None else ():
        assert (compiled.apply(batch, at, execution()) is None) is (at != index)


@pytest.mark.parametrize(
    ("mapping", "uses"),
    [
        ("root = this.a", Uses(document=True)),
        ("root = 1", Uses()),
        ("root = batch_index()", Uses(batch=True)),
        ('root = json("a").from_all()', Uses(batch=True, document=True)),
        ('root = count("x")', Uses(batch=True, impure=True)),
        ("root = @a", Uses(meta=True)),
        ("meta a = 1", Uses(meta=True)),
        ("root = content()", Uses(content=True)),
        ("root = now()", Uses(now=True)),
        ("root = uuid_v4()", Uses(random=True)),
        ("root = errored()", Uses(error=True)),
        ('root = env("HOME")', Uses(impure=True)),
        ('map f {\n  root = @a\n}\nroot = "x".apply("f")', Uses(meta=True)),
    ],
)
def test_what_a_mapping_leans_on_is_known(mapping, uses):
    assert compile_mapping(mapping).uses == uses
    compiled = compile_mapping(mapping)
    only_document = uses in (Uses(), Uses(document=True))
    assert (compiled.doc_fn is not None) is only_document


def test_a_plain_function_of_the_document_gives_what_the_mapping_gives():
    run_it = compile_mapping("root.t = this.a.b | this.c.or(5)").doc_fn
    assert run_it({"a": {"b": 1}}) == {"t": 1}
    assert run_it({"a": "x", "c": 2}) == {"t": 2}
    assert run_it("no object") == {"t": 5}
    with pytest.raises(Exception, match="divide by zero"):
        compile_mapping("root = 1 / this.a").doc_fn({"a": 0})


@pytest.mark.parametrize(
    ("arguments", "documents", "results"),
    [
        ("min: this.a", [1, 2, 3, 4], "1 2 3 4"),
        ("min: 3, max: this.a + 4", [1, 2, 3, 4], "3 4 5 3"),
        ("min: this.a, max: this.a + 2", [10, 100, 0, 7], "10 11 12 10"),
        # Documents that have no valid bounds fail, and the next one decides.
        ("min: this.a", [-1, 4, -1], "Error 4 5"),
        ("min: this.a, max: 2 * this.a", [0, 3, 0, 5], "Error 3 4 5"),
        ("min: this.a, set: if this.a == 9 { deleted() }", [4, 5, 9], "4 5 4"),
        ("min: this.a, max: 5, set: if this.a == 9 { null }", [4, 9, 0], "4 4 5"),
    ],
)
def test_bounds_of_a_counter_are_those_of_the_first_message(arguments, documents, results):
    ex, mapping = execution(), compile_mapping(f"root = counter({arguments})")
    found = []
    for a in documents:
        try:
            found.append(mapping.apply([Message.from_value({"a": a})], 0, ex).doc)
        except MessageError:
            found.append("Error")
    assert " ".join(map(str, found)) == results


def test_bounds_of_a_counter_in_a_map_are_those_of_its_first_use():
    mapping = compile_mapping(
        "map wide { root = counter(min: this.length()) }\n"
        'root = ["foo".apply("wide"), "foobar".apply("wide"), "f".apply("wide")]'
    )
    assert mapping.apply([Message(b"{}")], 0, execution()).doc == [3, 4, 5]


def test_counters_live_in_the_run_and_may_be_preset():
    ex = execution()
    assert [run('root = count("n")', ex=ex) for _ in range(3)] == ["1", "2", "3"]
    assert [run("root = counter(min: 5, max: 7)", ex=ex) for _ in range(4)] == ["5", "6", "7", "5"]

    class Preset(dict):
        def __missing__(self, key):
            return 41

    ex.counters = Preset()
    assert run('root = count("other")', ex=ex) == "42"
    assert run("root = counter()", ex=ex) == "42"


def test_the_clock_is_the_runs():
    assert run("root = now()") == "2023-11-14T22:13:20.123456789Z"
    assert run("root = timestamp_unix()") == str(NOW // 10**9)
    assert run("root = timestamp_unix_nano()") == str(NOW)


def test_random_values_stay_in_their_bounds():
    assert {run("root = random_int(min: 3, max: 4)") for _ in range(40)} == {"3", "4"}
    uuid = run("root = uuid_v4()")
    assert len(uuid) == 36
    assert uuid[14] == "4"
    assert uuid[19] in "89ab"


def test_a_mapping_survives_the_trip_to_a_worker():
    for compiled in (compile_mapping("root = this.a"), compile_interpolation("${! this.a }")):
        assert pickle.loads(pickle.dumps(compiled)) is compiled


def test_a_failed_message_can_be_asked_for_its_error():
    message = Message(b"{}", error="it broke")
    found = compile_mapping("root.e = error()\nroot.f = errored()").apply(
        [message], 0, Execution(now=lambda: 0)
    )
    assert found.raw == b'{"e":"it broke","f":true}'
    assert found.error == "it broke"
