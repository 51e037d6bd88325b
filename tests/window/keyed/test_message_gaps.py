"""Sessions whose messages bring gaps of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.bloblang import compile_mapping
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.window.assign.message_gaps import parse_gap
from streamer.window.keyed.session import MessageGapRules
from streamer.window.keyed.state import NEVER, KeyState
from streamer.window.pack.metadata_codec import add_gap, decode_meta, encode_meta, read_gap
from streamer.window.settings.window_types import Session

GAP = 3
EVENTS = st.lists(
    st.tuples(st.integers(-30, 30), st.none() | st.integers(1, 12)), min_size=1, max_size=20
)


@given(events=EVENTS, data=st.data())
def test_sessions_are_the_messages_that_overlap_however_they_come(
    events: list[tuple[int, int | None]], data: st.DataObject
) -> None:
    found = []
    for some in (events, data.draw(st.permutations(events))):
        rules, state = MessageGapRules(Session(GAP), 0), KeyState()
        for number, (time, gap) in enumerate(some):
            rules.message_gap = gap
            assert rules.assign(state, time, number, NEVER, 0) is not None
            state = KeyState.decode(state.encode())
        found.append(sorted((one.start, one.end, one.reach, one.count) for one in state.windows))
    assert found == [merged(events)] * 2


def merged(events: list[tuple[int, int | None]]) -> list[tuple[int, int, int, int]]:
    """The sessions by definition: in order of time, each goes on while it reaches the next."""
    sessions: list[tuple[int, int, int, int]] = []
    for time, gap in sorted(events, key=lambda event: event[0]):
        reach = time + (gap or GAP)
        if sessions and time <= sessions[-1][2]:
            start, _, before, count = sessions.pop()
            sessions.append((start, time, max(before, reach), count + 1))
        else:
            sessions.append((time, time, reach, 1))
    return sorted(sessions)


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ('"30s"', 30 * 10**9),
        ("90", 90 * 10**9),
        ("0.25", 10**9 // 4),
        ("null", None),
    ],
)
def test_a_gap_is_a_duration_or_seconds_or_the_usual_one(text: str, gap: int | None) -> None:
    value = compile_mapping(f"root = {text}").query([Message(b"{}")], 0, Execution(lambda: 0))
    assert parse_gap(value) == gap


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('"soon"', "is not a duration"),
        ("true", "expected a duration"),
        ("[]", "expected a duration"),
        ("deleted()", "deleted"),
        ('"0s"', "longer than 0s"),
        ("-1", "longer than 0s"),
    ],
)
def test_anything_else_is_no_gap(text: str, why: str) -> None:
    value = compile_mapping(f"root = {text}").query([Message(b"{}")], 0, Execution(lambda: 0))
    with pytest.raises(ValueError, match=why):
        parse_gap(value)


@pytest.mark.parametrize("meta", [{}, {"a": "b"}, {"\0gap": "mine"}])
def test_a_gap_stands_beside_the_metadata_and_is_none_of_it(meta: dict[str, str]) -> None:
    marked = add_gap(encode_meta(meta), 7)
    assert read_gap(marked) == 7
    assert decode_meta(marked)[0] == meta
    assert read_gap(encode_meta(meta)) is None
