"""The pipeline that is measured gives what its parts give, one after the other."""

from __future__ import annotations

from tests.bench.mapping_cases import CASES
from tests.bench.pipelines import check


def test_ten_processors_together_make_what_they_make_one_by_one() -> None:
    check(CASES[1].documents(200))
