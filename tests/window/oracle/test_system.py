"""The oracle of system windows by examples that were once wrong in it."""

from __future__ import annotations

from tests.window.oracle.system import MicroBatch, Oracle, Rules, Said


def test_a_window_expires_in_a_stream_that_begins_at_the_epoch():
    rules = Rules(size=2, lateness=1, expire_after=0, on_expired="drop")
    oracle = Oracle(rules)
    first = oracle.step(MicroBatch(t=0, messages=(Said("m", "now"),)))
    second = oracle.step(MicroBatch(t=3, messages=()))
    assert (first.windows, first.dropped) == ([], {})
    assert (second.windows, second.dropped) == ([], {"m": "expired"})
