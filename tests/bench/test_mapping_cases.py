"""The benchmark's mappings and what they are measured against give the same bytes."""

import pytest

from tests.bench import mappings
from tests.bench.mapping_cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_product_writes_what_the_hand_written_function_writes(case: Case) -> None:
    raws = case.documents(200)
    expected = mappings.plainly(case.by_hand)(raws)
    assert mappings.product(case.mapping)(raws) == expected
    assert mappings.exactly(case.by_hand)(raws) == expected
    assert 350 < sum(map(len, raws)) / len(raws) < 650


def test_the_mapping_whose_compile_time_is_measured_has_20_lines() -> None:
    assert len(mappings.LINES.splitlines()) == 20
    assert mappings.product(mappings.LINES)([b"{}"]) == [b"{}"]  # it fails, and is left as it was
