"""The page for those who know SQL: each config gives what its SQL gives, on a few rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from streamer.tools.unit_tests.suite import find_suites, run_suite
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment
from tests.docs.test_docs import ROOT, blocks

PAGE: Final = ROOT / "streamer" / "docs" / "for-sql-people.md"
CONFIGS: Final = {
    block.info.partition("=")[2]: block.text
    for block in blocks(PAGE)
    if block.info.startswith("yaml config=")
}

Step = tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]


def at(minute: int, second: int = 0, **fields: Any) -> dict[str, Any]:
    return {"at": f"2026-01-01T10:{minute:02d}:{second:02d}Z", **fields}


STEPS: Final[dict[str, list[Step]]] = {
    "sql_tumbling.yaml": [
        (
            [
                at(0, light="b", passengers=1),
                at(0, 59, light="a", passengers=2),
                at(0, 1, light="b", passengers=4),
                at(1, light="a", passengers=9),
            ],
            [
                [
                    {
                        "window_start": "2026-01-01T10:00:00Z",
                        "light": light,
                        "cars": cars,
                        "passengers": passengers,
                    }
                    for light, cars, passengers in (("a", 1, 2), ("b", 2, 5))
                ]
            ],
        )
    ],
    "sql_hopping.yaml": [
        (
            [at(0, light="a"), at(1, light="a"), at(2, light="b")],
            [[{"light": "a", "cars": 1}], [{"light": "a", "cars": 2}]],
        ),
        ([at(3, light="a")], [[{"light": "a", "cars": 2}, {"light": "b", "cars": 1}]]),
    ],
    "sql_session.yaml": [
        (
            [at(0, user="u", page="x"), at(0, 50, user="u", page="y"), at(1, user="v", page="x")],
            [],
        ),
        ([at(1, 51, user="u", page="z")], [[{"user": "u", "clicks": 2, "pages": ["x", "y"]}]]),
        ([at(2, 1, user="w", page="z")], [[{"user": "v", "clicks": 1, "pages": ["x"]}]]),
    ],
    "sql_cumulate.yaml": [
        ([at(0, price=1), at(1, price=2)], []),
        ([at(2, price=4)], [[{"window_end": "2026-01-01T10:02:00Z", "price": 3}]]),
        ([at(5, price=8)], [[{"window_end": "2026-01-01T10:04:00Z", "price": 7}]]),
        ([at(10, price=5)], [[{"window_end": "2026-01-01T10:06:00Z", "price": 15}]]),
        ([at(12, price=5)], [[{"window_end": "2026-01-01T10:12:00Z", "price": 5}]]),
    ],
    "sql_over_range.yaml": [
        (
            [at(0, 0, card="c", amount=1), at(0, 10, card="c", amount=2)],
            [
                [{"card": "c", "amount": 1, "total": 1}],
                [{"card": "c", "amount": 2, "total": 3}],
            ],
        ),
        (
            [at(0, 11, card="d", amount=7), at(0, 11, card="c", amount=4)],
            [
                [{"card": "d", "amount": 7, "total": 7}],
                [{"card": "c", "amount": 4, "total": 6}],
            ],
        ),
    ],
    "sql_over_rows.yaml": [
        ([{"card": "c", "amount": 1}, {"card": "c", "amount": 2}], []),
        ([{"card": "c", "amount": 6}], [[{"card": "c", "average": 3.0}]]),
        ([{"card": "c", "amount": 1}], [[{"card": "c", "average": 3.0}]]),
    ],
    "sql_window_join.yaml": [
        (
            [
                at(0, side="left", k="a", v=1),
                at(1, side="left", k="b", v=2),
                at(4, side="right", k="b", v=3),
                at(5, side="right", k="a", v=4),
            ],
            [
                [
                    {"k": "a", "left_v": 1, "right_v": None},
                    {"k": "b", "left_v": 2, "right_v": 3},
                ]
            ],
        )
    ],
    "sql_top_n.yaml": [
        (
            [
                at(0, supplier="a", price=4),
                at(1, supplier="b", price=5),
                at(2, supplier="a", price=2),
                at(3, supplier="c", price=1),
                at(10, supplier="c", price=100),
            ],
            [
                [
                    {"supplier": "a", "price": 6, "n": 1},
                    {"supplier": "b", "price": 5, "n": 2},
                ]
            ],
        )
    ],
    "sql_grace.yaml": [
        ([at(0, light="a"), at(1, 29, light="b")], []),
        ([at(0, 30, light="a")], []),
        ([at(1, 30, light="b")], [[{"light": "a", "cars": 2}]]),
    ],
    "sql_global.yaml": [
        (
            [{"light": "a"}, {"light": "b"}, {"light": "a"}],
            [
                [{"light": "a", "cars": 1}],
                [{"light": "b", "cars": 1}],
                [{"light": "a", "cars": 2}],
            ],
        )
    ],
}


def orders_and_shipments() -> list[dict[str, Any]]:
    def from_input(label: str, hour: int, **fields: Any) -> dict[str, Any]:
        document = {"at": f"2026-01-01T{hour:02d}:00:00Z", **fields}
        return {"input": label, "json_content": document}

    sent = [
        from_input("orders", 10, order=1),
        from_input("orders", 10, order=2),
        from_input("shipments", 9, order=2, carrier="too early"),
        from_input("shipments", 14, order=1, carrier="ups"),
        from_input("shipments", 15, order=2, carrier="too late"),
    ]
    return [{"send": sent, "output_batches": [[{"json_equals": {"id": 1, "carrier": "ups"}}]]}]


def orders_payments_and_shipments() -> list[dict[str, Any]]:
    def from_input(label: str, hour: int, **fields: Any) -> dict[str, Any]:
        document = {"at": f"2026-01-01T{hour:02d}:00:00Z", **fields}
        return {"input": label, "json_content": document}

    sent = [
        from_input("orders", 10, order=1),
        from_input("payments", 11, order=1, method="card"),
        from_input("shipments", 20, order=1, carrier="ups"),
        from_input("orders", 10, order=2),
        from_input("payments", 11, order=2, method="cash"),
        from_input("orders", 10, order=3),
    ]
    first = {"id": 1, "method": "card", "carrier": "ups"}
    second = {"id": 2, "method": "cash", "carrier": None}
    return [
        {"send": sent, "output_batches": [[{"json_equals": first}]]},
        {"end_of_input": True, "output_batches": [[{"json_equals": second}]]},
    ]


def payments_and_rates() -> list[dict[str, Any]]:
    def from_input(label: str, hour: int, **fields: Any) -> dict[str, Any]:
        document = {"at": f"2026-01-01T{hour:02d}:00:00Z", **fields}
        return {"input": label, "json_content": document}

    sent = [
        from_input("rates", 9, currency="USD", rate=2),
        from_input("rates", 11, currency="USD", rate=3),
        from_input("payments", 10, currency="USD", id=1, amount=5),
        from_input("payments", 10, currency="CHF", id=2, amount=5),
        from_input("payments", 12, currency="USD", id=3, amount=5),
    ]
    first, second = {"id": 1, "euro": 10}, {"id": 2, "euro": None}
    last = {"id": 3, "euro": 15}
    return [
        {"send": sent, "output_batches": [[{"json_equals": one}] for one in (first, second)]},
        {"end_of_input": True, "output_batches": [[{"json_equals": last}]]},
    ]


TWO_INPUTS: Final = {
    "sql_interval_join.yaml": orders_and_shipments,
    "sql_temporal_join.yaml": payments_and_rates,
    "sql_three_streams.yaml": orders_payments_and_shipments,
}


def as_steps(steps: list[Step]) -> list[dict[str, Any]]:
    return [
        {
            "send": [{"json_content": document} for document in sent],
            "output_batches": [
                [{"json_contains" if "window_end" in row else "json_equals": row} for row in batch]
                for batch in batches
            ],
        }
        for sent, batches in steps
    ]


def test_each_config_of_the_page_has_rows() -> None:
    assert set(CONFIGS) == {*STEPS, *TWO_INPUTS}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_a_window_gives_what_its_sql_gives(name: str, tmp_path: Path) -> None:
    steps = TWO_INPUTS[name]() if name in TWO_INPUTS else as_steps(STEPS[name])
    case = {
        "name": name,
        "target": "stream",
        "clock": "2026-01-01T16:00:00Z",
        "steps": steps,
    }
    path = tmp_path / name
    path.write_text(f"{CONFIGS[name]}\ntests: {json.dumps([case])}\n")
    [suite] = find_suites([str(path)])
    result = run_suite(suite, SuiteEnvironment(suite.config))
    assert [failure for one in result.cases for failure in one.failures] == []
    assert not result.lints
