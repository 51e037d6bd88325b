"""How far each visit gets in a funnel that a cancel ends, within an hour."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job, read_file_instead
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_RECIPE = "funnel_pattern"
_HOUR_S = 3600
_STEPS = ("view", "cart", "pay")


def _make_inputs(rng, number):
    events = []
    for n in range(number):
        # No two events have one time, so that their order is never a matter of chance.
        at = BASE_S + n * 5
        event = rng.choices((*_STEPS, "cancel", "home"), (3, 3, 3, 1, 3))[0]
        events.append(
            (at, {"ts": format_time(at), "user": f"user-{rng.randrange(1500)}", "event": event})
        )
    return {"events": shuffle_within(rng, events, 299)}


def _expect(inputs):
    users: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for one in inputs["events"]:
        users[one["user"]].append((parse_time(one["ts"]), one["event"]))
    out = []
    for user, events in users.items():
        events.sort()
        session: list[tuple[float, str]] = []
        for one in [*events, (float("inf"), "")]:
            if session and one[0] - session[-1][0] > _HOUR_S:
                out += _find_furthest(user, session)
                session = []
            session.append(one)
    return out


def _find_furthest(user, session):
    """The attempt that got the furthest; of those that got as far, the first."""
    best: tuple[int, float] | None = None
    for first, (begin, event) in enumerate(session):
        if event != "view":
            continue
        reached = 1
        for at, later in session[first + 1 :]:
            if at - begin > _HOUR_S or (reached == 2 and later == "cancel"):
                break
            if reached < len(_STEPS) and later == _STEPS[reached]:
                reached += 1
            if reached == len(_STEPS):
                break
        if best is None or reached > best[0]:
            best = reached, begin
    if best is None:
        return []
    reached, begin = best
    whole = reached == len(_STEPS)
    return [{"user": user, "reached": reached, "paid": whole, "begin": format_time(begin)}]


JOB = Job(
    recipe=_RECIPE,
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        read_file_instead(_RECIPE, "{in}/events.jsonl"),
        "output.file.path={out}/out.jsonl",
    ),
)
