"""Versions of lookup tables: which one a micro-batch looks up, whatever fails or stops."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.components.catalog import build_context
from streamer.core.execution import Execution
from streamer.core.lookup_tables import TableRow
from streamer.engine.driver import table_versions
from streamer.engine.driver.table_versions import TableMeters, TableVersions
from streamer.sdk.lookup_table import (
    KEY,
    KEY_MAPPING,
    MAX_BYTES,
    MAX_ROWS,
    REFRESH_INTERVAL,
    TableError,
    TableLoader,
    read_version,
)
from streamer.sdk.spec import ParsedFields

_SECOND = 1_000_000_000


class Source:
    """Rows that a test changes; None for a source that is away."""

    def __init__(self) -> None:
        self.value: int | None = 1
        self.reads = 0

    def read_rows(self, ex: Execution) -> Iterable[TableRow]:
        self.reads += 1
        if self.value is None:
            raise OSError(2, "No such file or directory", "cities.csv")
        return [{"k": "a", "v": self.value}]

    def change_sign(self) -> str | None:
        return str(self.value)


class Program:
    """A program on a checkpoint; it can be started again."""

    def __init__(self, directory: Path, source: Source) -> None:
        self.directory, self.source = directory, source
        self.now, self.begun_until = 0.0, -1
        self.counted: Counter[str] = Counter()
        self.gauges: dict[str, float] = {}
        self.logged: list[str] = []

    def start(self, labels: tuple[str, ...] = ("cities",)) -> None:
        fields: dict[str, Any] = {
            **{KEY: "k", KEY_MAPPING: "", REFRESH_INTERVAL: 0, MAX_ROWS: 9, MAX_BYTES: 999}
        }
        loader = TableLoader(ParsedFields(fields), self.source, build_context())
        self.versions = TableVersions(
            self.directory,
            dict.fromkeys(labels, loader),
            lambda level, text, fields: self.logged.append(f"{level} {text}"),
            TableMeters(
                lambda name, label: self.counted.update([name]),
                lambda name, label, value: self.gauges.update({name: value}),
            ),
            now=lambda: self.now,
        )
        self.versions.open(self.begun_until)
        # The thread is left out: the test says when time passes.
        loader.refresh_interval = 10 * _SECOND

    def value_at(self, batch: int) -> int:
        """Return what a micro-batch looks up; Spark's log has it from now on."""
        self.begun_until = max(self.begun_until, batch)
        version = self.versions.versions_for(batch)["cities"]
        path = self.versions.path_of("cities", version)
        row = read_version(path.read_bytes()).get("a")
        assert row is not None
        value: int = row["v"]
        return value

    def refresh(self) -> None:
        self.now += 10
        self.versions.refresh_due()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "tables", Source())


def test_a_micro_batch_looks_up_what_it_did_before(program: Program) -> None:
    program.start()
    assert program.value_at(0) == 1
    program.source.value = 2
    program.refresh()
    assert program.value_at(0) == 1  # a task has failed, and all of it comes again
    assert program.value_at(1) == 2
    program.source.value = 3
    program.start()
    assert program.value_at(1) == 2
    assert program.value_at(2) == 3


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["change", "refresh", "next", "again", "kill"]), max_size=25))
def test_whatever_happens_a_replay_decides_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    program = Program(tmp_path_factory.mktemp("t") / "tables", Source())
    program.start()
    batch, decided = 0, {0: program.value_at(0)}
    for step in steps:
        assert program.source.value is not None
        if step == "change":
            program.source.value += 1
        elif step == "refresh":
            program.refresh()
        elif step == "kill":
            program.start()
        elif step == "next":
            batch += 1
        assert program.value_at(batch) == decided.setdefault(batch, program.value_at(batch))
    kept = [*program.directory.glob("cities/*")]
    assert len(kept) <= 3  # two entries of the record, and one loaded since


def test_an_idle_stream_keeps_no_version_that_nothing_has_looked_up(program: Program) -> None:
    program.start()
    assert program.value_at(0) == 1
    for value in range(2, 9):
        program.source.value = value
        program.refresh()
    assert len([*program.directory.glob("cities/*")]) == 2
    assert program.value_at(0) == 1 and program.value_at(1) == 8


def test_a_micro_batch_that_begins_while_a_version_is_written_does_not_delete_it(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.start()
    assert program.value_at(0) == 1
    program.source.value = 2
    program.refresh()  # the next micro-batch writes the record, and deletes what is unused
    write = table_versions.replace_file

    def write_and_begin(path: Any, body: bytes) -> None:
        write(path, body)
        if path.suffix == table_versions.SUFFIX:
            assert program.value_at(1) == 2

    program.source.value = 3
    monkeypatch.setattr(table_versions, "replace_file", write_and_begin)
    program.refresh()
    monkeypatch.undo()
    assert program.value_at(2) == 3


def test_a_table_that_cannot_be_loaded_stays_as_it_was(program: Program) -> None:
    program.start()
    assert program.value_at(0) == 1
    program.source.value = None
    program.refresh()
    assert program.value_at(1) == 1
    program.start()  # and so it does when the program is started again
    assert program.value_at(2) == 1
    assert program.counted == {"table_refreshed": 1, "table_refresh_failed": 2}
    assert program.gauges == {"table_rows": 1}
    why = "cannot be loaded, and stays as it was: cities.csv: no such file or directory"
    assert f"WARN Table 'cities' {why}" in program.logged
    assert program.versions.read_ages() == {"cities": program.now}
    program.source.value = 2
    program.refresh()
    assert program.value_at(3) == 2 and program.versions.read_ages() == {"cities": 0}


def test_a_stream_does_not_start_without_a_version(program: Program) -> None:
    program.source.value = None
    with pytest.raises(TableError, match="^table 'cities' cannot be loaded: cities.csv: no such"):
        program.start()


def test_nothing_is_read_while_nothing_changes(program: Program) -> None:
    program.start()
    for batch in range(5):
        program.refresh()
        assert program.value_at(batch) == 1
    assert program.source.reads == 1
    record = json.loads((program.directory / "versions.json").read_bytes())
    assert [first for first, _ in record["batches"]] == [0]


def test_a_table_that_a_deploy_adds_is_there_for_a_micro_batch_that_comes_again(
    program: Program,
) -> None:
    program.start()
    assert program.value_at(0) == 1
    program.source.value = 2
    program.start(("cities", "others"))
    held = program.versions.versions_for(0)
    assert program.value_at(0) == 1 and held["others"] != held["cities"]


def test_a_record_that_was_written_over_is_named(program: Program) -> None:
    program.start()
    program.value_at(0)
    (program.directory / "versions.json").write_text("{")
    with pytest.raises(TableError, match=r"versions.json is not what was written .*backup"):
        program.start()


def test_a_version_that_is_gone_is_an_error_for_a_micro_batch_that_looked_it_up(
    program: Program,
) -> None:
    program.start()
    program.value_at(0)
    [file] = program.directory.glob("cities/*")
    file.write_bytes(b"broken")
    program.start()  # the rows are the same: the file is written anew
    assert program.value_at(0) == 1
    program.source.value = 2
    file.unlink()
    program.start()
    with pytest.raises(TableError, match="is gone or damaged: micro-batch 0 had begun with"):
        program.value_at(0)
