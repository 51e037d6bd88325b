"""Variables of a driver: nobody who has its files alone reads or changes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.cli.submit import driver, sealed_variables
from streamer.cli.submit.sealed_variables import open_variables, seal_variables


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=200), max_size=5))
def test_variables_come_back_as_they_were(variables: dict[str, str]) -> None:
    text, key = seal_variables(variables)
    assert open_variables(text, key) == variables


def test_a_text_shows_nothing_and_no_two_are_alike() -> None:
    variables = {"PASSWORD": "a secret"}
    texts = {seal_variables(variables)[0] for _ in range(20)}
    assert len(texts) == 20
    assert not [text for text in texts if b"secret" in bytes.fromhex(text)]


@pytest.mark.parametrize("at", [0, 40, -1])
def test_a_changed_text_and_the_key_of_another_are_refused(at: int) -> None:
    text, key = seal_variables({"PASSWORD": "a secret"})
    changed = bytearray.fromhex(text)
    changed[at] ^= 1
    for wrong_text, wrong_key in (
        (changed.hex(), key),
        (text, seal_variables({})[1]),
        (text, ""),
    ):
        with pytest.raises(ValueError, match="not sealed with the key of this driver"):
            open_variables(wrong_text, wrong_key)


def test_the_driver_reads_the_key_where_it_is_put() -> None:
    assert driver._KEY_VARIABLE == sealed_variables.KEY_VARIABLE
