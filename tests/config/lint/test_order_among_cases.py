"""When lint is silent about cases of a switch that write to one database."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config.load import lint_config
from streamer.config.read_context import LintOptions

INSERT = "{sql_insert: {driver: sqlite, dsn: 'file:a.db', table: users, columns: [id], "
INSERT += "args_mapping: 'root = [1]'%s}}"
DELETE = "{sql_raw: {driver: sqlite, dsn: 'file:a.db', query: DELETE FROM users%s}}"
ONE = ", max_in_flight: 1"


@pytest.mark.parametrize(
    ("first", "second", "options", "count"),
    [
        (DELETE % "", INSERT % "", "", 1),
        (DELETE % ONE, INSERT % "", "", 1),
        (DELETE % ONE, INSERT % ONE, "", 0),
        (DELETE % "", INSERT % "", ", keep_order: false", 0),
        (INSERT % "", INSERT % "", "", 0),
        (INSERT % ", upsert_by: [id]", INSERT % ", upsert_by: [id]", "", 1),
        (DELETE % "", INSERT.replace("users", "others") % "", "", 0),
        (DELETE % "", INSERT.replace("a.db", "b.db") % "", "", 0),
        (DELETE % "", "{drop: {}}", "", 0),
    ],
)
def test_it_is_silent_where_no_order_matters_or_it_is_kept(
    tmp_path: Path, first: str, second: str, options: str, count: int
) -> None:
    path = tmp_path / "config.yaml"
    cases = f'[{{check: this.op == "d", output: {first}}}, {{output: {second}}}]'
    path.write_text(f"output: {{broker: {{outputs: [{{switch: {{cases: {cases}{options}}}}}]}}}}\n")
    lints = lint_config(path, env={}, options=LintOptions(thorough=True))
    assert [lint.code for lint in lints] == ["no_order_among_cases"] * count
