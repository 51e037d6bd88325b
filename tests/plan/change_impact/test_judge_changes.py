"""What a change of a config comes to for the stream that runs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.components import catalog
from streamer.config import Config, load_config, parse_config
from streamer.config.sections import SECTIONS
from streamer.plan.change_impact import ChangeImpact, Effect, judge
from streamer.plan.change_impact.buffer_rulings import BY_VALUE, RULINGS, WINDOWLESS
from streamer.plan.change_impact.judge_changes import IGNORED, SECTION_RULINGS, SPARK_RULINGS
from streamer.sdk.spec import Kind

CONFIGS = sorted((Path(__file__).parents[3] / "configs").rglob("*.yaml"))

BASE = """\
http: {enabled: false}
input:
  label: from
  file: {paths: [a.jsonl]}
  processors:
    - mapping: root = this
buffer:
  tumbling_window: {timestamp_mapping: root = this.at, key_mapping: root = this.k, size: 10s}
pipeline:
  processors:
    - mapping: |
        root.a = 1
        root.b = 2
    - dedupe: {cache: seen, key: '${! json("k") }'}
    - resource: tidy
output:
  http_client: {url: "http://user:hunter2@localhost/x", verb: POST}
  processors:
    - mapping: root = this
cache_resources:
  - {label: seen, lru: {cap: 10}}
  - {label: idle, lru: {cap: 10}}
processor_resources:
  - {label: tidy, mapping: root = this}
  - {label: nobodys, mapping: root = this}
logger: {level: INFO}
metrics: {prometheus: {}}
spark: {master: "local[2]", shards: 2}
"""

IN_PLACE, MIGRATE, RESET, RESTART = (
    Effect.IN_PLACE,
    Effect.MIGRATE,
    Effect.RESET,
    Effect.RESTART,
)


def config(text: str, name: str = "new.yaml") -> Config:
    return parse_config(text, name, env={})


def judged(old: str, new: str) -> ChangeImpact:
    assert old != new, "the edit found nothing"
    return judge(config(old, "old.yaml"), config(new), env={})


EDITS = [
    ("root.b = 2", "root.b = 3", "pipeline.processors.0.mapping", IN_PLACE),
    ("- mapping: root = this\nbuffer", "- mapping: root = 1\nbuffer", "input.processors", IN_PLACE),
    ("verb: POST", "verb: PUT", "output.http_client.verb", IN_PLACE),
    ("hunter2", "hunter3", "output.http_client.url", IN_PLACE),
    ("{cap: 10}}\n  - {label: idle", "{cap: 11}}\n  - {label: idle", "cache_resources", IN_PLACE),
    ("tidy, mapping: root = this", "tidy, mapping: root = 1", "processor_resources.0", IN_PLACE),
    ("level: INFO", "level: DEBUG", "logger.level", IN_PLACE),
    ("prometheus: {}", "json_api: {}", "metrics", IN_PLACE),
    ("shards: 2", "shards: 2, trigger_interval: 2s", "spark.trigger_interval", IN_PLACE),
    ("logger:", "shutdown_timeout: 3s\nlogger:", "shutdown_timeout", IN_PLACE),
    ("logger:", "error_handling: {strict: true}\nlogger:", "error_handling.strict", IN_PLACE),
    ("label: from", "label: other", "input.label", RESET),
    ("a.jsonl", "b.jsonl", "input.file.paths", RESET),
    ("file: {paths: [a.jsonl]}", "csv: {paths: [a.csv]}", "input", RESET),
    ("size: 10s", "size: 20s", "buffer.tumbling_window.size", RESET),
    ("size: 10s", "size: 10s, offset: 1s", "buffer.tumbling_window.offset", RESET),
    ("this.at", "this.time", "buffer.tumbling_window.timestamp_mapping", RESET),
    ("root = this.k", "root = this.j", "buffer.tumbling_window.key_mapping", RESET),
    ("size: 10s", "size: 10s, clock: system", "buffer.tumbling_window.clock", RESET),
    ("size: 10s", "size: 10s, clock_scope: key", "buffer.tumbling_window.clock_scope", RESET),
    ("size: 10s", "size: 10s, idle_timeout: 1s", "buffer.tumbling_window.idle_timeout", RESET),
    ("size: 10s", "size: 10s, emit: changes", "buffer.tumbling_window.emit", RESET),
    ("size: 10s", "size: 10s, allowed_lateness: 1s", "allowed_lateness", MIGRATE),
    ("size: 10s", "size: 10s, max_ahead: 1h", "max_ahead", MIGRATE),
    ("size: 10s", "size: 10s, end_of_input: keep", "end_of_input", MIGRATE),
    ("size: 10s", "size: 10s, retention: 7d", "retention", MIGRATE),
    ("size: 10s", "size: 10s, filter: this.k > 1", "filter", MIGRATE),
    ("size: 10s", "size: 10s, having: batch_size() > 1", "having", MIGRATE),
    ("shards: 2", "shards: 3", "spark.shards", RESET),
    ("local[2]", "local[3]", "spark.master", RESTART),
    ("shards: 2", "shards: 2, checkpoint: /tmp/x", "spark.checkpoint", RESTART),
    ("enabled: false", "enabled: true", "http.enabled", RESTART),
]


@pytest.mark.parametrize(("old", "new", "path", "effect"), EDITS, ids=[e[1] for e in EDITS])
def test_a_change_comes_to(old: str, new: str, path: str, effect: Effect) -> None:
    found = judged(BASE, BASE.replace(old, new, 1))
    assert {change.effect for change in found.changes} == {effect}
    assert all(path in change.path for change in found.changes)
    assert found.effect == effect
    assert bool(found.losses) == (effect == RESET)
    assert found.keeps_input == (not (effect == RESET and path.startswith("input")))
    assert all(change.note for change in found.changes if effect in (RESET, RESTART))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("logger: {level: INFO}\n", ""),
        ("root.b = 2\n", "root.b = 2\n\n"),
        ("logger: {level", "# a comment\nlogger: {level"),
        ("{timestamp_mapping: root = this.at, key", '{"timestamp_mapping": "root = this.at", key'),
        ("size: 10s", "size: 10000ms"),
        ('master: "local[2]", shards: 2', 'shards: 2, master: "local[2]"'),
        ("nobodys, mapping: root = this", "nobodys, mapping: root = 1"),
        ("{label: idle, lru: {cap: 10}}", "{label: idle, lru: {cap: 99}}"),
        ("verb: POST", "verb: POST, retries: 3"),
    ],
)
def test_what_means_the_same_is_no_change(old: str, new: str) -> None:
    assert judged(BASE, BASE.replace(old, new, 1)) == ChangeImpact()


def test_a_resource_by_another_name_is_no_change() -> None:
    text = BASE.replace("seen", "known").replace("tidy", "neat")
    assert judged(BASE, text) == ChangeImpact()


def test_a_resource_by_another_name_and_with_another_value_is_one() -> None:
    found = judged(BASE, BASE.replace("seen", "known").replace("lru: {cap: 10}", "ttlru: {cap: 1}"))
    assert found.effect == IN_PLACE and found.changes


def test_a_processor_that_is_put_in_is_the_only_change() -> None:
    found = judged(BASE, BASE.replace("    - resource", "    - split: {}\n    - resource"))
    assert [(one.path, one.old) for one in found.changes] == [("pipeline.processors.2", None)]
    gone = judge(
        config(BASE.replace("    - resource", "    - split: {}\n    - resource")), config(BASE)
    )
    assert [(one.path, one.new) for one in gone.changes] == [("pipeline.processors.2", None)]


def test_a_change_has_its_place_in_the_new_file() -> None:
    (found,) = judged(BASE, BASE.replace("verb: POST", "verb: PUT")).changes
    line = BASE.splitlines().index(next(x for x in BASE.splitlines() if "verb" in x)) + 1
    assert (found.file, found.line, found.old, found.new) == ("new.yaml", line, "POST", "PUT")


def test_what_is_gone_has_its_place_in_the_old_file() -> None:
    (found,) = judged(BASE, BASE.replace("    - resource: tidy\n", "")).changes
    assert (found.file, found.line) == ("old.yaml", 15)


def test_other_batches_of_an_input_leave_its_offsets_as_they_are() -> None:
    base = "input: {kafka: {addresses: ['a:1'], topics: [t], batching: {count: 5}}}"
    found = judged(base, base.replace("count: 5", "count: 6, processors: [{mapping: root = 1}]"))
    assert {change.effect for change in found.changes} == {IN_PLACE}


def test_what_stands_in_a_file_of_resources_has_its_place_there(tmp_path) -> None:
    main = tmp_path / "main.yaml"
    main.write_text("input: {generate: {mapping: root = 1}}\npipeline: {processors: [resource: r]}")
    configs = []
    for value in (1, 2):
        more = tmp_path / f"{value}.yaml"
        more.write_text(f"\nprocessor_resources: [{{label: r, mapping: root = {value}}}]\n")
        configs.append(load_config(main, resources=[str(more)]))
    (found,) = judge(*configs).changes
    assert (found.file, found.line, found.label) == (str(tmp_path / "2.yaml"), 2, "r")


def test_no_secret_is_in_a_judgement() -> None:
    found = judged(BASE, BASE.replace("hunter2", "swordfish"))
    assert not re.search("hunter2|swordfish", str(found.as_dict()))
    old, new = (
        parse_config(BASE.replace("verb: POST", "verb: ${VERB}"), env={"VERB": verb})
        for verb in ("PUTTING", "PATCHING")
    )
    text = str(judge(old, new, env={"VERB": "x"}).as_dict())
    assert "PUTTING" not in text and "PATCHING" not in text


GROUPED = """
input: {stdin: {}}
buffer: {system_window: {size: 10s}}
pipeline: {processors: [{group_by_value: {value: '${! json("a") }'}}]}
"""


def test_what_messages_are_sharded_by_is_part_of_the_state() -> None:
    found = judged(GROUPED, GROUPED.replace('json("a")', 'json("b")'))
    assert [one.effect for one in found.changes] == [RESET]
    new = "[{log: {}}, {group_by_value"
    assert judged(GROUPED, GROUPED.replace("[{group_by_value", new)).resets
    unsharded = GROUPED.replace('json("a")', "batch_size()")
    assert judged(unsharded, unsharded.replace("batch_size()", "batch_index()")).effect == IN_PLACE


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ("none: {}", "memory: {}", IN_PLACE),
        ("memory: {limit: 9}", "memory: {limit: 10}", IN_PLACE),
        ("none: {}", "system_window: {size: 1s}", RESET),
        ("system_window: {size: 1s}", "none: {}", RESET),
        ("system_window: {size: 1s}", "tumbling_window: {size: 1s}", RESET),
        ("session_window: {gap: 1s}", "session_window: {gap: 2s}", RESET),
        ("session_window: {gap: 1s}", "session_window: {gap: 1s, idle_timeout: 9s}", MIGRATE),
        ("session_window: {gap: 1s}", "session_window: {gap: 1s, emit: changes}", RESET),
        ("session_window: {gap: 1s, emit: each}", "session_window: {gap: 1s}", MIGRATE),
        ("session_window: {gap: 1s, emit: forward}", "session_window: {gap: 1s}", RESET),
    ],
)
def test_a_change_of_the_buffer_comes_to(old: str, new: str, effect: Effect) -> None:
    texts = (f"input: {{stdin: {{}}}}\nbuffer: {{{buffer}}}\n" for buffer in (old, new))
    assert judged(*texts).effect == effect


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_config_and_itself_do_not_differ(path) -> None:
    assert judge(load_config(path), load_config(path)) == ChangeImpact()


@given(st.sets(st.sampled_from(range(len(EDITS)))))
def test_the_gravest_of_many_changes_counts(chosen: set[int]) -> None:
    text, applied = BASE, []
    for old, new, _, effect in (EDITS[index] for index in sorted(chosen)):
        if old in text and (edited := text.replace(old, new, 1)) and _reads(edited):
            text = edited
            applied.append(effect)
    found = judge(config(BASE), config(text), env={})
    assert judge(config(text), config(text)) == ChangeImpact()
    if applied:
        heaviest = max(applied, key=lambda effect: effect.weight)
        assert found.effect is not None and found.effect.weight >= heaviest.weight
    else:
        assert found.effect is None


def _reads(text: str) -> bool:
    try:
        config(text)
    except Exception:
        return False
    return True


def test_every_setting_of_a_window_buffer_is_judged_on_purpose() -> None:
    known = {*RULINGS, *BY_VALUE}
    fields = {
        field.name
        for name in catalog.component_names(Kind.BUFFER)
        if name not in WINDOWLESS and (spec := catalog.find_spec(Kind.BUFFER, name))
        for field in spec.fields
    }
    assert fields <= known, fields - known
    assert known <= fields, known - fields


def test_every_section_is_judged_on_purpose() -> None:
    ways = {"input", "buffer", "buffers", "pipeline", "output", "spark"}
    sections = {
        one.name for one in SECTIONS if not one.name.endswith("_resources") and not one.deprecated
    }
    assert sections == ways | IGNORED | set(SECTION_RULINGS)
    (spark,) = (one for one in SECTIONS if one.name == "spark")
    assert {field.name for field in spark.children} == set(SPARK_RULINGS)


ENDLESS = """
input: {stdin: {}}
buffer: {global_window: {key_mapping: root = this.k}}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          { "n": batch_size(), "sum": json("v").from_all().sum() }
        } else { deleted() }
"""


def test_a_mapping_of_windows_without_end_may_change_what_it_makes_of_the_same() -> None:
    found = judged(ENDLESS, ENDLESS.replace('"n": batch', '"key": this.k, "count": batch'))
    assert found.effect == IN_PLACE


SEVERAL = """
input: {stdin: {}}
buffers:
  - label: totals
    global_window: {key_mapping: root = this.k}
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 { json("v").from_all().sum() } else { deleted() }
    output: {stdout: {}}
"""


def test_that_holds_for_one_of_several_buffers() -> None:
    assert judged(SEVERAL, SEVERAL.replace("sum()", "sum() / 2")).effect == IN_PLACE
    assert judged(SEVERAL, SEVERAL.replace("sum()", "max()")).effect == RESET


def test_one_that_asks_for_something_else_begins_anew() -> None:
    found = judged(ENDLESS, ENDLESS.replace(".sum()", ".max()"))
    assert found.effect == RESET
    assert found.losses == (
        "the windows that are open: one window without end, for each key, "
        "emitted whenever they change",
    )


def test_a_table_takes_effect_in_place_whoever_looks_it_up() -> None:
    table = "table_resources: [{label: cities, csv: {path: %s.csv, key: city}}]\n"
    (found,) = judged(BASE + table % "a", BASE + table % "b").changes
    assert (found.path, found.effect) == ("table_resources.0.csv.path", IN_PLACE)


KEEPS_STATE = """
buffer: { keyed_state: { key_mapping: root = this.k, state_ttl: 1d } }
pipeline:
  processors:
    - mapping: 'root.a = lag(this.a)'
    - label: named
      mapping: 'root = this.merge({"b": acc_sum(this.b), "c": accumulate("c", 0, c -> c + 1)})'
"""


def test_a_change_says_which_state_by_key_starts_again() -> None:
    def lost(old: str, new: str) -> list[tuple[str, str | None]]:
        changed = KEEPS_STATE.replace(old, new)
        impact = judge(parse_config(KEEPS_STATE), parse_config(changed))
        assert all(one.effect in (Effect.IN_PLACE, Effect.MIGRATE) for one in impact.changes)
        return [(one.path, one.old) for one in impact.changes if "it starts again" in one.note]

    first, second = "pipeline.processors.0", "pipeline.processors.1"
    assert lost("root.a = lag(this.a)", 'root.x = {"y": lag( this.a )}') == []
    assert lost("state_ttl: 1d", "state_ttl: 2d") == []
    assert lost("lag(this.a)", "lag(this.z)") == [(first, "lag(this.a)")]
    # One without a label is named by its place; what is named itself stays what it is.
    assert lost("    - mapping", "    - noop: {}\n    - mapping") == [(first, "lag(this.a)")]
    assert lost("named", "called") == [(second, "acc_sum(this.b)")]


def test_all_state_by_key_is_lost_with_the_windows() -> None:
    impact = judge(parse_config(KEEPS_STATE), parse_config(KEEPS_STATE.replace("this.k", "this.i")))
    assert "the state by key: pipeline.processors.0, pipeline.processors.1" in impact.losses


def test_other_partitions_are_those_of_a_table_that_is_made_later() -> None:
    table = "input: {generate: {mapping: root = 1}}\noutput: {delta: {path: ./t}}"
    [change] = judged(table, table.replace("./t", "./t, partition_by: [day]")).changes
    assert change.effect == IN_PLACE
    assert change.note.startswith("is for a table that is made later")
