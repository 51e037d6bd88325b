"""The processor `duckdb`: rows in, rows out, and what becomes of messages that are none."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.lookup_tables import LookupTable, use_tables
from streamer.core.message import Message
from streamer.core.permissions import NONE, NotPermittedError, limit_permissions
from streamer.plan import make_plan
from streamer.plan.explain import explain
from tests.processes import runs

from .conftest import Make, Run

TOTALS = "SELECT k, sum(v) AS v FROM batch GROUP BY k ORDER BY k"


@pytest.fixture
def query(make: Make) -> Iterator[Any]:
    """Build processors from a query and further fields, and end their processes."""
    made: list[Any] = []

    def build(sql: str, **fields: Any) -> Any:
        made.append(make(f"duckdb: {json.dumps({'query': sql, **fields})}"))
        return made[-1]

    yield build
    for processor in made:
        processor.processor._query.close()


def outcomes(processor: Any, a_run: Run, *documents: Any, **meta: Any) -> list[Any]:
    """Return the documents that come out, and the errors of messages that have failed."""
    batch = [Message(json.dumps(one).encode(), meta) for one in documents]
    made = processor.process(batch, a_run.ex)
    return [
        f"! {message.error}" if message.error else json.loads(message.raw)
        for some in made
        for message in some
    ]


def lints(body: dict[str, Any]) -> list[tuple[int, int, str]]:
    config = {"pipeline": {"processors": [{"duckdb": body}]}}
    with pytest.raises(ConfigError) as raised:
        parse_config(json.dumps(config, indent=1), env={})
    return [(lint.line, lint.column, lint.message) for lint in raised.value.lints]


@pytest.mark.slow
def test_rows_become_messages_with_the_metadata_of_the_window(query: Any, a_run: Run) -> None:
    processor = query(TOTALS)
    batch = [
        Message(b'{"k":"b","v":1}', {"window_start": 7}),
        Message(b'{"k":"a","v":2}', {"window_start": 7}),
        Message(b'{"k":"b","v":3}', {"window_start": 7}),
    ]
    [made] = processor.process(batch, a_run.ex)
    expected = [
        (b'{"k":"a","v":2}', {"window_start": 7}),
        (b'{"k":"b","v":4}', {"window_start": 7}),
    ]
    assert [(message.raw, dict(message.meta)) for message in made] == expected
    # The process goes on, and so does the query over another batch.
    assert outcomes(processor, a_run, {"k": "x", "v": 9223372036854775807}, {"k": "x", "v": 1}) == [
        {"k": "x", "v": 9223372036854775808}
    ]
    # A bad message is marked, and the others take part.
    assert outcomes(processor, a_run, {"k": "a", "v": 1}, [1], {"k": "a", "v": "x"}, {"v": 5}) == [
        {"k": "a", "v": 1},
        {"k": None, "v": 5},
        "! the message is an array; expected an object, whose fields are columns",
        '! the field v is "x", which does not fit its column, bigint',
    ]
    assert a_run.counted == [("error", 1), ("error", 1)] or len(a_run.counted) == 2


@pytest.mark.slow
def test_a_query_without_rows_drops_the_batch(query: Any, a_run: Run) -> None:
    processor = query("SELECT v FROM batch WHERE v > 10")
    assert processor.process([Message(b'{"v":1}')], a_run.ex) == []
    assert outcomes(processor, a_run, {"v": 1}, "x") == [
        "! the message is a text; expected an object, whose fields are columns"
    ]
    # With no row at all there is nothing to ask: no count of zero comes out.
    [[message]] = query("SELECT count(*) FROM batch").process([Message(b"x")], a_run.ex)
    assert message.error is not None


@pytest.mark.slow
def test_messages_that_had_failed_take_no_part(query: Any, a_run: Run) -> None:
    failed = Message(b'{"k":"a","v":100}').with_error("before")
    [made] = query(TOTALS).process([failed, Message(b'{"k":"a","v":1}')], a_run.ex)
    assert [(message.raw, message.error) for message in made] == [
        (b'{"k":"a","v":1}', None),
        (b'{"k":"a","v":100}', "before"),
    ]


@pytest.mark.slow
def test_a_failure_marks_the_batch_with_the_line_of_the_config(make: Make, a_run: Run) -> None:
    processor: Any = make(
        "duckdb:\n  query: |\n    SELECT k,\n      v::INT AS v\n    FROM batch\n  columns:\n"
        "    k: string\n    v: string"
    )
    made = outcomes(processor, a_run, {"k": "a", "v": "1"}, {"k": "b", "v": "x"})
    text = "! line 6 of the config: Conversion Error: Could not convert string 'x' to INT32 when "
    text += "casting from source column v"
    assert made == [text, text]
    assert len(a_run.logged) == 1 and len(a_run.counted) == 2
    assert outcomes(processor, a_run, {"k": "a", "v": "1"}) == [{"k": "a", "v": 1}]
    processor.processor._query.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "text", "timeout"),
    [
        # DuckDB counts neither of these, nor does it stop before they are done.
        ("SELECT length(repeat('a', 2000000000)) AS n FROM batch", "needs more memory than", "60s"),
        (
            "SELECT max(length(repeat('a', (v % 2 + 300000000)::INT))) AS n FROM batch, range(20)",
            "needs more memory than",
            "60s",
        ),
        (
            "SELECT count(*) AS n FROM batch, range(10000000000000)",
            "took longer than 0.5 s",
            "500ms",
        ),
    ],
)
def test_memory_and_time_have_an_end(
    query: Any, a_run: Run, sql: str, text: str, timeout: str
) -> None:
    processor = query(sql, memory_limit="64MiB", timeout=timeout)
    began = time.monotonic()
    [made] = outcomes(processor, a_run, {"v": 1})
    assert text in made
    assert time.monotonic() - began < 30
    process_id = processor.processor._query._process.process_id
    if process_id is not None:
        peak = next(
            line
            for line in Path(f"/proc/{process_id}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        )
        assert int(peak.split()[1]) < 600_000


@pytest.mark.slow
def test_the_process_is_started_again_and_ends_with_its_owner(query: Any, a_run: Run) -> None:
    processor = query(TOTALS)
    process = processor.processor._query._process
    assert outcomes(processor, a_run, {"k": "a", "v": 1}) == [{"k": "a", "v": 1}]
    first = process.process_id
    process._child._process.kill()
    process._child._process.wait()
    assert outcomes(processor, a_run, {"k": "a", "v": 2}) == [{"k": "a", "v": 2}]
    second = process.process_id
    assert second != first and runs(second)
    # The environment of the worker is not there.
    environment = Path(f"/proc/{second}/environ").read_bytes()
    assert {entry.split(b"=")[0] for entry in environment.split(b"\0") if entry} <= {
        b"PYTHONPATH",
        b"LANG",
        b"LD_LIBRARY_PATH",
    }
    # It sees the end of its worker by the connection alone.
    process._child._connection.close()
    process._child._process.wait(10)
    process._child._connection = None


@pytest.mark.slow
def test_threads_share_a_query(query: Any, a_run: Run) -> None:
    processor = query(TOTALS)
    made: list[Any] = []

    def work(number: int) -> None:
        for _ in range(5):
            made.append(
                outcomes(processor, a_run, {"k": "a", "v": number}) == [{"k": "a", "v": number}]
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made == [True] * 20


@pytest.mark.slow
def test_tables_of_the_stream_and_metadata(a_run: Run) -> None:
    config = parse_config(
        """
pipeline:
  processors:
    - duckdb:
        query: |
          SELECT topic, country, count(*) AS n FROM batch LEFT JOIN cities USING (city)
          GROUP BY ALL ORDER BY ALL
        metadata: [topic]
table_resources:
  - label: cities
    inline:
      key: city
      rows:
        - { city: Bonn, country: de }
""",
        env={},
    )
    processor: Any = build_context(config.resources).build(config.processors[0])

    class Tables:
        table = LookupTable({"Bonn": {"city": "Bonn", "country": "de"}})

        def find(self, label: str) -> LookupTable:
            assert label == "cities"
            return self.table

    tables = Tables()
    with use_tables(tables):
        made = outcomes(processor, a_run, {"city": "Bonn"}, {"city": "Rome"}, topic="t")
        assert made == [
            {"topic": "t", "country": "de", "n": 1},
            {"topic": "t", "country": None, "n": 1},
        ]
        # Another version of the table is seen by the next batch.
        tables.table = LookupTable({"Rome": {"city": "Rome", "country": "it"}})
        made = outcomes(processor, a_run, {"city": "Rome"}, topic="t")
        assert made == [{"topic": "t", "country": "it", "n": 1}]
    [text] = outcomes(processor, a_run, {"city": "Bonn"}, topic="t")
    assert text.endswith("there is no table cities; expected batch, or a table of files")
    processor.processor._query.close()


@pytest.mark.parametrize(
    ("body", "place", "text"),
    [
        ({"query": "SELEC 1"}, (6, 16), 'field query: syntax error at or near "SELEC"'),
        ({"query": "SELECT 1; SELECT 2"}, (6, 15), "expected one SELECT, found 2 statements"),
        ({"query": "FROM read_csv('x')"}, (6, 21), "name the file in the field files"),
        ({"query": "FROM nix"}, (6, 15), "there is no table resource with the label 'nix'"),
        ({"query": "FROM batch", "columns": {"a": "varchar"}}, (7, 17), "has the type 'varchar'"),
        ({"query": "FROM batch", "columns": {"a": "int", "A": "int"}}, (7, 17), "has a twice"),
        ({"query": "FROM batch", "timeout": "0s"}, (7, 17), "is not positive"),
        ({"query": "FROM batch", "memory_limit": "1MB"}, (7, 22), "expected 16777216 to"),
        ({"query": "FROM x", "files": {"x": {"path": "x.dat"}}}, (8, 12), "tell its format"),
        (
            {"query": "FROM batch", "columns": {"a": "int"}, "metadata": ["A"]},
            (10, 18),
            "has A, which is a column of columns too",
        ),
    ],
)
def test_lint(body: dict[str, Any], place: tuple[int, int], text: str) -> None:
    [(line, column, message)] = lints(body)
    assert text in message
    assert (line, column) == place


@pytest.mark.slow
def test_unknown_columns_are_shown_at_their_place() -> None:
    yaml = (
        "pipeline:\n  processors:\n    - duckdb:\n        query: |\n          SELECT k,\n"
        "            sum(w) AS v\n          FROM batch GROUP BY k\n        columns:\n"
        "          k: string\n          v: bigint\n"
    )
    with pytest.raises(ConfigError) as raised:
        parse_config(yaml, env={})
    [lint] = raised.value.lints
    assert (lint.line, lint.column) == (6, 17)
    assert 'Referenced column "w" not found' in lint.message
    # Without columns nobody knows; a batch that lacks the field is marked.
    parse_config(yaml.partition("        columns")[0], env={})


def test_configs_that_come_by_api_name_no_files() -> None:
    body = {"query": "FROM t", "files": {"t": {"path": "/etc/passwd", "format": "csv"}}}
    config = json.dumps({"pipeline": {"processors": [{"duckdb": body}]}})
    with limit_permissions(NONE):
        parsed = parse_config(config, env={})
        with pytest.raises(NotPermittedError):
            build_context(parsed.resources).build(parsed.processors[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ("columns: { k: string, v: bigint }", ["columns      k string, v bigint", "Group By"]),
        ("timeout: 1s", ["columns      as the messages have them", "name them in `columns`"]),
        ("columns: { k: string }", ["columns      k string"]),
    ],
)
def test_explain_shows_the_plan(more: str, lines: list[str]) -> None:
    query = TOTALS if "v: bigint" in more or "timeout" in more else "SELECT k FROM batch"
    text = explain(
        make_plan(
            parse_config(
                f"pipeline: {{ processors: [ {{ duckdb: {{ query: '{query}', {more} }} }} ] }}",
                env={},
            )
        ),
        "",
    )
    assert [line for line in lines if line not in text] == []
