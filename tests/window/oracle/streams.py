"""Random rules and streams for the laws of windows: small whole times, so that edges are met.

Times are small multiples of a unit (a nanosecond, a millisecond for Kafka, an hour for local days)
around T, whether the clock is the stream's or the system's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from hypothesis import strategies as st

from tests.window.oracle.count import Count
from tests.window.oracle.events import KEY_FAILS, Event, MicroBatch
from tests.window.oracle.hopping import Hopping
from tests.window.oracle.intake import DAY, Fields
from tests.window.oracle.join import Join
from tests.window.oracle.session import Session
from tests.window.oracle.sliding import Sliding
from tests.window.oracle.sliding_event import EventSliding
from tests.window.oracle.sliding_kafka import MS, KafkaSliding
from tests.window.oracle.state import State
from tests.window.oracle.table_join import TableJoin

HOUR = 3600 * 10**9
SPAN = 12  # sizes, gaps and the like are at most so many units
# A few keys often, all that may be mistaken for each other now and then.
KEYS: Sequence[object] = ("a", "a", "b", "b", None, 1, 1.0, "1", True, "", "null", [1], [1.0])
OBJECTS: Sequence[object] = ({"x": 1, "y": None}, {"y": None, "x": 1.0}, {"x": 1})
ZONES = ("Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana")
# Noons (UTC) of days on which clocks of one of the zones change, and of two on which none do.
CHANGES = [
    1_774_785_600,  # 2026-03-29, Berlin
    1_792_929_600,  # 2026-10-25, Berlin
    1_772_971_200,  # 2026-03-08, New York and Havana
    1_793_534_400,  # 2026-11-01, New York and Havana
    1_541_332_800,  # 2018-11-04, São Paulo, whose midnight does not exist
    1_518_955_200,  # 2018-02-18, São Paulo, after a day whose last hour came twice
    43_200,  # 1970-01-01
    -86_356_800,  # 1967-04-07
]
# Seconds near the first and the last instant of 64-bit nanoseconds.
EXTREMES = (-9_223_372_036, 0, 9_223_372_036)
Side = Literal["left", "right"]
EMITS = ("final", "final", "final", "changes", "each", "forward")


@st.composite
def commons(draw: st.DrawFn, unit: int = 1, emits: Sequence[str] = EMITS) -> dict[str, Any]:
    """The fields that all event-time windows have."""
    keyed = draw(st.booleans())
    clock = draw(st.sampled_from(["stream", "stream", "system"]))
    scopes = ["stream", "key"] if keyed and clock == "stream" else ["stream"]
    emit = draw(st.sampled_from(emits))
    also = draw(st.sampled_from([(), (), ("on_time",), ("close",), ("on_time", "close")]))
    if emit == "forward":
        also = ()
    return {
        "emit_also": frozenset(also) - ({"close"} if emit == "final" else set()),
        "keyed": keyed,
        "filtered": draw(st.booleans()),
        "clock": clock,
        "clock_scope": draw(st.sampled_from(scopes)),
        "key_retention": draw(st.sampled_from([SPAN * unit, 3 * SPAN * unit, 7 * DAY])),
        "allowed_lateness": draw(st.sampled_from([0, 0, 1, 3, SPAN])) * unit,
        "max_ahead": draw(st.none() | st.sampled_from([0, 3, SPAN]).map(lambda n: n * unit)),
        "idle_timeout": draw(st.none() | st.sampled_from([1, 5, SPAN]).map(lambda n: n * unit)),
        "emit": emit,
        "order": draw(st.sampled_from(["arrival", "arrival", "event_time"])),
        "end_of_input": draw(st.sampled_from(["flush", "flush", "keep"])),
    }


def uncut(rules: Any) -> Any:
    """The same rules without what depends on T: for the law that the cut does not matter."""
    rules = replace(
        rules, clock="stream", idle_timeout=None, max_ahead=None, key_retention=1_000_000 * DAY
    )
    rules = replace(rules, emit_also=frozenset())
    return rules if rules.emit == "each" else replace(rules, emit="final")


@st.composite
def hoppings(draw: st.DrawFn, tumbling: bool = False) -> Hopping:
    size = draw(st.integers(1, SPAN))
    every = None if tumbling else draw(st.none() | st.integers(1, size))
    bound = (every or size) - 1
    offset = draw(st.integers(-bound, bound))
    return Hopping(**draw(commons()), size=size, every=every, offset=offset)


@st.composite
def local_days(draw: st.DrawFn) -> Hopping:
    """Windows of local days; their streams are `streams(rules, unit=HOUR, around=CHANGES)`."""
    size = draw(st.integers(1, 3))
    every = draw(st.none() | st.integers(1, size))
    bound = 24 * (every or size) - 1
    offset = draw(st.sampled_from([0, 0, 1, 2, 3, -1]) | st.integers(-bound, bound))
    return Hopping(
        **draw(commons(HOUR)),
        size=size * DAY,
        every=None if every is None else every * DAY,
        offset=offset * HOUR + draw(st.sampled_from([0, HOUR // 2])) * (offset < bound),
        timezone=draw(st.sampled_from(ZONES)),
    )


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    gap = draw(st.integers(1, SPAN // 2))
    longest = draw(st.none() | st.integers(gap, SPAN))
    return Session(**draw(commons()), gap=gap, max_duration=longest)


@st.composite
def limited_sessions(draw: st.DrawFn) -> Session:
    """Sessions of at most some messages, or of a duration counted from their start, or both."""
    rules = draw(sessions())
    counted = draw(st.sampled_from(["count", "count", "start", "both"]))
    if counted != "count":
        rules = replace(rules, from_start=True, max_duration=draw(st.integers(1, SPAN)))
    return rules if counted == "start" else replace(rules, max_count=draw(st.integers(1, 5)))


@st.composite
def message_gaps(draw: st.DrawFn) -> Session:
    """Sessions whose messages bring gaps; half of them without a longest duration."""
    rules = draw(sessions())
    longest = draw(st.none() | st.just(rules.max_duration))
    return replace(rules, by_message=True, max_duration=longest, from_start=draw(st.booleans()))


@st.composite
def slidings(draw: st.DrawFn) -> Sliding:
    return Sliding(**draw(commons()), size=draw(st.integers(1, SPAN)))


@st.composite
def event_slidings(draw: st.DrawFn) -> EventSliding:
    """Nothing stays open in this mode: no `emit`, and nothing to be idle."""
    fields = {**draw(commons()), "emit": "final", "emit_also": frozenset(), "idle_timeout": None}
    plain = draw(st.booleans())
    return EventSliding(
        **fields,
        size=draw(st.integers(1, SPAN)),
        conditional=not plain and draw(st.booleans()),
        every=None if plain else draw(st.none() | st.integers(1, 2 * SPAN)),
        closed=draw(st.sampled_from(["both", "both", "right"])),
    )


@st.composite
def waiting_slidings(draw: st.DrawFn) -> EventSliding:
    """Windows of events that wait for the clock, with a delay or without."""
    idle = draw(st.none() | st.sampled_from([1, 5, SPAN]))
    delay = draw(st.sampled_from([0, 0, 1, 3, SPAN]))
    rules = replace(draw(event_slidings()), waits=True, delay=delay, idle_timeout=idle)
    bounds = ["both", "right", "left", "neither"] if delay else ["both", "right"]
    return replace(rules, closed=draw(st.sampled_from(bounds)))


@st.composite
def kafka_slidings(draw: st.DrawFn) -> KafkaSliding:
    """Their streams are `streams(rules, unit=MS)`."""
    return KafkaSliding(**draw(commons(MS)), size=draw(st.integers(1, SPAN)) * MS)


@st.composite
def counts(draw: st.DrawFn) -> Count:
    count = draw(st.integers(1, 6))
    align = draw(st.sampled_from(["end", "end", "start"]))
    return Count(
        count=count,
        every=draw(st.none() | st.integers(1, count if align == "start" else 8)),
        min_count=None if align == "start" else draw(st.none() | st.integers(1, count)),
        align=align,
        end_of_input=draw(st.sampled_from(["drop", "flush", "keep"])),
        keyed=draw(st.booleans()),
        filtered=draw(st.booleans()),
        conditional=align == "end" and draw(st.booleans()),
    )


@st.composite
def states(draw: st.DrawFn) -> State:
    return State(
        single=draw(st.booleans()),
        end_of_input=draw(st.sampled_from(["drop", "flush", "keep"])),
        keyed=draw(st.booleans()),
        filtered=draw(st.booleans()),
    )


@st.composite
def joins(draw: st.DrawFn) -> Join:
    """Their streams are `streams(rules, sides=("left", "right"))`."""
    return Join(
        keyed=draw(st.booleans()),
        filtered=draw(st.booleans()),
        clock=draw(st.sampled_from(["stream", "stream", "system"])),
        idle_timeout=draw(st.none() | st.sampled_from([1, 5, SPAN])),
        allowed_lateness=draw(st.sampled_from([0, 1, 3, SPAN])),
        end_of_input=draw(st.sampled_from(["flush", "keep"])),
        before=draw(st.integers(0, SPAN)),
        after=draw(st.integers(0, SPAN)),
        type=draw(st.sampled_from(["inner", "left", "outer"])),
    )


@st.composite
def table_joins(draw: st.DrawFn) -> TableJoin:
    """Their streams are `streams(rules, sides=("left", "right"))`."""
    lateness = draw(st.sampled_from([0, 0, 1, 3, SPAN]))
    history = draw(st.none() | st.integers(max(lateness, 1), 2 * SPAN))
    return TableJoin(
        keyed=True,
        filtered=draw(st.booleans()),
        max_ahead=draw(st.none() | st.sampled_from([0, 3, SPAN])),
        allowed_lateness=0 if history is None else lateness,
        end_of_input=draw(st.sampled_from(["flush", "keep"])),
        type=draw(st.sampled_from(["inner", "left"])),
        history=history,
        ttl=draw(st.none() | st.none() | st.sampled_from([1, 5, SPAN])),
        deletes=draw(st.booleans()),
    )


@st.composite
def streams(
    draw: st.DrawFn,
    rules: Fields | Count | State,
    *,
    unit: int = 1,
    around: Sequence[int] = (0,),
    partitions: int = 3,
    sides: Sequence[Side] = ("left",),
    keys: Sequence[object] = (*KEYS, *OBJECTS),
    now: bool = True,
) -> list[MicroBatch]:
    """Micro-batches whose T mostly moves on, sometimes leaps or falls back; with restarts.

    Args:
        draw: hypothesis'.
        rules: what they are for.
        unit: what times are multiples of, nearly always.
        around: Unix seconds to begin near.
        partitions: the most partitions of a side.
        sides: the sides of a join.
        keys: the keys that events may have.
        now: whether some have no time of their own.
    """
    t = draw(st.integers(-30, 30))
    zero = draw(st.sampled_from(around)) * 10**9
    count = draw(st.integers(1, partitions))
    batches: list[MicroBatch] = []
    seen: list[int] = [t]
    backlog, number = draw(st.booleans()), 0
    for index in range(draw(st.integers(1, 10))):
        t += draw(st.sampled_from([0, 1, 1, 2, 3, 5, 8, SPAN, 40, -4, -25]))
        restarted = index > 0 and draw(st.integers(0, 5)) == 0
        backlog = draw(st.booleans()) if restarted else backlog and draw(st.booleans())
        lag = not backlog and draw(st.integers(0, 6)) == 0
        events = []
        for _ in range(draw(st.integers(0, 7))):
            number += 1
            time = _time(draw, t, seen, now)
            events.append(
                Event(
                    f"m{number}",
                    zero + time * unit + _fraction(draw, unit) if isinstance(time, int) else time,
                    _key(draw, rules, keys),
                    draw(st.integers(0, count - 1)),
                    draw(st.integers(0, 15)) == 15,
                    _filter(draw, rules),
                    draw(st.sampled_from(sides)),
                    _gap(draw, rules),
                    *_conditions(draw, rules),
                )
            )
        stood = draw(st.sampled_from([0, 0, 0, 0, 3, SPAN])) * unit
        at = zero + t * unit
        batches.append(MicroBatch(at, tuple(events), restarted, backlog, lag, stood=stood))
    if draw(st.booleans()):
        # A bounded input has no backlog.
        batches[-1] = replace(batches[-1], ended=True, backlog=False, lag=False)
    return batches


@st.composite
def recut(draw: st.DrawFn, events: Sequence[Event], ended: bool = True) -> list[MicroBatch]:
    """The same events, cut into micro-batches anew, at other times, with other restarts."""
    batches: list[MicroBatch] = []
    rest, t = list(events), draw(st.integers(-30, 30))
    while rest:
        size = draw(st.integers(0, 6))
        piece, rest = tuple(rest[:size]), rest[size:]
        t += draw(st.sampled_from([0, 1, 5, 40, -4]))
        behind = draw(st.booleans())
        batches.append(MicroBatch(t, piece, bool(batches) and draw(st.booleans()), behind))
    return [*batches, MicroBatch(t, (), ended=ended)]


def one_partition(batches: Iterable[MicroBatch]) -> list[Event]:
    """All events in order, in one partition, each with a time of its own."""
    return [
        replace(event, partition=0, time=batch.t if event.time == "now" else event.time)
        for batch in batches
        for event in batch.events
    ]


def _time(draw: st.DrawFn, t: int, seen: list[int], now: bool) -> int | Literal["now"] | None:
    """Near T, at T, at a time there has been, or just beside one; some at none."""
    way = draw(st.sampled_from(["near"] * 5 + ["again"] * 2 + ["beside", "t", "now", "none"]))
    if way == "none":
        return None
    if way == "now" and now:
        return "now"
    if way in ("t", "now"):
        time = t
    elif way == "near":
        time = draw(st.integers(t - 2 * SPAN, t + SPAN))
    else:
        time = draw(st.sampled_from(seen))
        time += draw(st.sampled_from([-1, 1])) if way == "beside" else 0
    seen.append(time)
    return time


def _fraction(draw: st.DrawFn, unit: int) -> int:
    """Now and then a time that is no whole number of units."""
    if unit == 1:
        return 0
    return draw(st.sampled_from([0, 0, 0, 1, unit - 1]))


def _key(draw: st.DrawFn, rules: Fields | Count | State, keys: Sequence[object]) -> object:
    if not rules.keyed:
        return None
    return draw(st.sampled_from([*keys, KEY_FAILS]))


def _gap(draw: st.DrawFn, rules: Fields | Count | State) -> int | Literal["none"] | None:
    if not getattr(rules, "by_message", False):
        return None
    return draw(st.none() | st.integers(1, SPAN) | st.sampled_from([1, 2 * SPAN, "none"]))


def _conditions(
    draw: st.DrawFn, rules: Fields | Count | State
) -> tuple[bool | Literal["error"], bool | Literal["error"]]:
    """Whether a message begins a window, and whether it emits one."""
    if not getattr(rules, "conditional", False):
        return False, False
    verdicts = st.sampled_from([True, False, False, "error"])
    return draw(verdicts), draw(verdicts)


def _filter(draw: st.DrawFn, rules: Fields | Count | State) -> bool | Literal["error"]:
    if not rules.filtered:
        return True
    verdict: bool | Literal["error"] = draw(
        st.sampled_from([True, True, True, True, False, "error"])
    )
    return verdict
