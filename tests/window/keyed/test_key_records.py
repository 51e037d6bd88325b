"""The records of keys are read as they were written, whatever they hold."""

from __future__ import annotations

import pytest

from streamer.window.keyed.state import KeyState

WINDOW = b"[3,9,5,2,7,null]"


@pytest.mark.parametrize(
    "record",
    [
        b"[[%b],3]" % WINDOW,
        b"[[%b],3,40,6,[[1,2]],[[3,4]],5]" % WINDOW,
        b'[[%b],3,null,0,[],[],0,[["1",3,5],["\\"a\\"",9,6]]]' % WINDOW,
    ],
    ids=["windows", "clock and marks", "latest by id"],
)
def test_a_record_is_written_as_it_was_read(record: bytes) -> None:
    assert KeyState.decode(record).encode() == record


def test_the_latest_messages_of_a_record_are_times_and_arrivals_by_id() -> None:
    state = KeyState.decode(b'[[],3,null,0,[],[],0,[["1",3,5]]]')
    assert state.latest == {"1": (3, 5)}
    assert not state.is_idle
