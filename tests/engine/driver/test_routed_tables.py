"""Messages that name their table: a commit to each, each row once, and a bounded number open."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from streamer.config import parse_config
from streamer.connectors.tables.routed_tables import MAX_OPEN_TABLES, OpenTables
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.routed_table_writer import RoutedTableWriter
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan
from streamer.sdk.output.protocols import encode_batch
from tests.connectors.tables.table_kinds import open_catalog

EX = Execution(lambda: 0)
OUTPUTS = {
    "delta": "delta: {{path: '{d}/tables/${{! this.to }}'{more}}}",
    "iceberg": (
        "iceberg: {{catalog: {{url: 'sqlite:///{d}/catalog.db', warehouse: '{d}/lake'}}, "
        "namespace: 'demo_${{! this.ns.or(\"a\") }}', table: '${{! this.to }}'{more}}}"
    ),
}


class Routing:
    """An output whose messages name their tables, as a start of the program makes it."""

    def __init__(self, name: str, directory: Path, more: str = "") -> None:
        text = f"output: {{{OUTPUTS[name].format(d=directory, more=more)}}}"
        plan = make_plan(parse_config(text, "a.yaml"))
        self.output = plan.context().build(plan.outputs[0]).output
        journal = directory / "checkpoint"
        journal.mkdir(exist_ok=True)
        [writer] = make_writers(plan, journal, None, stream=lambda: "s")
        assert isinstance(writer, RoutedTableWriter)
        self.writer = writer
        self.reasons: list[str] = []

    def encode(self, *rows: dict[str, Any]) -> list[Frame]:
        messages = [Message.from_value(row) for row in rows]
        routed, error = encode_batch(self.output, messages, EX)
        self.reasons = [] if error is None else list(map(str, error.errors.values()))
        return [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in routed]

    def write(self, batch: int, *rows: dict[str, Any]) -> None:
        self.writer.write(batch, self.encode(*rows))


def read_rows(name: str, directory: Path) -> dict[str, list[Any]]:
    """Return the numbers of each table, read without the program."""
    tables: dict[str, list[Any]] = {}
    if name == "delta":
        for log in (directory / "tables").rglob("_delta_log"):
            rows = DeltaTable(log.parent).to_pyarrow_table().to_pylist()
            tables[log.parent.name] = sorted(row["n"] for row in rows)
        return tables
    catalog = open_catalog(directory)
    for namespace in catalog.list_namespaces():
        for identifier in catalog.list_tables(namespace):
            rows = catalog.load_table(identifier).scan().to_arrow().to_pylist()
            tables[identifier[-1]] = sorted(row["n"] for row in rows)
    return tables


pytestmark = pytest.mark.parametrize("name", OUTPUTS)


def test_each_table_has_its_rows_once(name: str, tmp_path: Path) -> None:
    routing = Routing(name, tmp_path)
    first = [{"to": "x", "n": 1}, {"to": "y", "n": 2, "more": "a"}, {"to": "x", "n": 3}]
    routing.write(0, *first)
    routing.write(1, {"to": "z", "n": 4})
    # The program ended between two commits of a micro-batch: only some tables have it.
    second = [{"to": "x", "n": 5}, {"to": "y", "n": 6}, {"to": "new", "n": 7}]
    routing.writer._open(routing.encode(second[0])[0].route.strip("\t")).write(
        2, [frame._replace(route="") for frame in routing.encode(second[0])]
    )
    routing = Routing(name, tmp_path)
    routing.write(2, *second)
    routing.write(2, *second)
    assert read_rows(name, tmp_path) == {"x": [1, 3, 5], "y": [2, 6], "z": [4], "new": [7]}
    counts = Counter(routing.writer.take_counts(2))
    assert counts["output_commit_rows_total"] >= 3
    commits = routing.writer.commits()
    assert commits is not None and commits.records[0].batch == 2


def test_a_table_that_takes_nothing_does_not_hold_up_the_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    routing = Routing(name, tmp_path)
    rows = [{"to": "away", "n": 1}, {"to": "there", "n": 2}]
    frames = routing.encode(*rows)
    place = next(one.route for one in frames if one.route.endswith("away")).strip("\t")
    client = routing.writer._output.table(place).client
    commit = client.commit

    def fail(given: Any) -> None:
        raise TableUnavailableError("is away")

    monkeypatch.setattr(client, "commit", fail)
    with pytest.raises(TableUnavailableError, match="is away"):
        routing.writer.write(0, frames)
    assert read_rows(name, tmp_path) == {"there": [2]}
    monkeypatch.setattr(client, "commit", commit)
    routing.writer.write(0, frames)
    assert read_rows(name, tmp_path) == {"there": [2], "away": [1]}


def test_what_does_not_fit_goes_back_to_its_own_table(name: str, tmp_path: Path) -> None:
    key = "key" if name == "delta" else "identifier_fields"
    mode = "mode" if name == "delta" else "row_operation"
    more = f", {key}: [n], {mode}: '${{! this.op.or(\"insert\") }}'"
    routing = Routing(name, tmp_path, more)
    frames = [*routing.encode({"to": "x", "n": 1, "v": "a"}), *routing.encode({"to": "y", "n": 1})]
    blind = Routing(name, tmp_path, more)
    frames += blind.encode({"to": "x", "n": 2, "v": 7, "op": "upsert"})
    with pytest.raises(RefusedRoutesError) as error:
        routing.writer.write(0, frames)
    [(frame, why)] = error.value.refused
    assert why == "the field v is 7, which does not fit its column, string"
    assert frame.route.startswith("upsert\t") and frame.route.endswith("x")
    with pytest.raises(RefusedRoutesError):
        routing.writer.write(1, [frame, *routing.encode({"to": "y", "n": 3})])
    assert read_rows(name, tmp_path) == {"x": [1], "y": [1, 3]}


@pytest.mark.parametrize("bad", ["../up", "a/../b", "", "..", "a\0b", "x" * 256, "back\\slash"])
def test_names_that_leave_their_place_are_rejected(name: str, tmp_path: Path, bad: str) -> None:
    routing = Routing(name, tmp_path)
    routing.write(0, {"to": bad, "n": 1}, {"to": "good", "n": 2})
    assert read_rows(name, tmp_path) == {"good": [2]}
    assert len(routing.reasons) == 1


def test_a_name_that_the_catalog_cannot_have_is_rejected_alone(name: str, tmp_path: Path) -> None:
    routing = Routing(name, tmp_path)
    if name == "delta":
        return
    with pytest.raises(RefusedRoutesError, match="hierarchical namespaces are not supported"):
        routing.write(0, {"to": "x", "n": 1, "ns": "b.c"}, {"to": "y", "n": 2})
    assert read_rows(name, tmp_path) == {"y": [2]}


def test_few_tables_are_open_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenTables.__init__, "__defaults__", (2,))
    routing = Routing(name, tmp_path)
    for batch in range(2):
        routing.write(batch, *({"to": f"t{number}", "n": batch} for number in range(4)))
        assert len(routing.writer._tables) == len(routing.output._tables) == 2
    assert read_rows(name, tmp_path) == {f"t{number}": [0, 1] for number in range(4)}
    assert MAX_OPEN_TABLES >= 2


def test_which_table_is_ahead_is_known(name: str, tmp_path: Path) -> None:
    routing = Routing(name, tmp_path)
    assert routing.writer.find_ahead(0) == ""
    routing.write(0, {"to": "x", "n": 1})
    again = Routing(name, tmp_path)
    assert again.writer.find_ahead(1) == ""
    assert again.writer.find_ahead(0).endswith("x")


def test_dry_run_says_where_tables_are(name: str, tmp_path: Path) -> None:
    text = Routing(name, tmp_path).output.probe()
    assert "tables" in text and "${!" in text


def test_a_path_of_messages_alone_is_refused(name: str) -> None:
    if name == "delta":
        with pytest.raises(StreamerError, match="begins with a part of messages"):
            parse_config("output: {delta: {path: '${! this.to }'}}", "a.yaml")
