"""Recipes that keep a table in PostgreSQL, with a real one: what they give is what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamer.components.catalog import build_context
from streamer.config import load_config
from streamer.core.message import Message
from streamer.sdk.output.sender import Sender
from tests.components.outputs.scripted import Seen

from .databases import Place

RECIPES = Path(__file__).parents[3] / "configs" / "recipes"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "variable", "query", "rows"),
    [
        (
            "postgres_table_from_cdc",
            "CUSTOMERS_DSN",
            "SELECT id, name, city FROM customers",
            [(1, "Ann", "Ulm")],
        ),
        (
            "counts_into_postgres",
            "COUNTS_DSN",
            "SELECT user_id, kind, n FROM counts ORDER BY w, n DESC",
            [("ann", "view", 2), ("ann", "buy", 1), ("bob", "view", 1)],
        ),
    ],
)
def test_what_a_recipe_gives_is_in_the_table(
    recipe: str, variable: str, query: str, rows: list[Any], postgres_dsn: str
) -> None:
    path = RECIPES / f"{recipe}.yaml"
    config = load_config(path, env={variable: postgres_dsn})
    expected = yaml.safe_load(path.read_text())["tests"][-1]["output_batches"]
    batches = [[Message.from_value(_plain(one["json_equals"])) for one in b] for b in expected]
    output: Sender = build_context(config.resources).build(config.output)
    for _ in range(2):  # a replay changes nothing
        assert output.deliver(batches, Seen().ex, hold=True).errors == [None] * len(batches)
    assert Place("postgres", postgres_dsn, "").run(query) == rows


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return what YAML has read with times as texts."""
    return {
        name: one if isinstance(one, (str, int)) or one is None else one.isoformat()
        for name, one in value.items()
    }
