"""Counts of clicks and orders of a user by the hour; the orders come two hours after the clicks."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.jobs.job import Job, read_file_instead
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_RECIPE = "topics_hours_apart"
_SPAN_S = 30 * 3600
_LAG_S = 2 * 3600


def _make_inputs(rng, number):
    clicks, orders = [], []
    for n in range(number):
        user = f"user-{rng.randrange(200)}"
        # As far into each file as into the other, orders are two hours older than clicks.
        if n % 2:
            at = BASE_S + _LAG_S + n * _SPAN_S // number
            clicks.append((at, {"user_id": user, "clicked_at": format_time(at)}))
        else:
            at = BASE_S + n * _SPAN_S // number
            orders.append((at, {"customer": user, "time": format_time(at), "price": n}))
    return {
        "clicks": shuffle_within(rng, clicks, 299),
        "orders": shuffle_within(rng, orders, 299),
    }


def _expect(inputs):
    counts: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for one in inputs["clicks"]:
        counts[one["user_id"], int(parse_time(one["clicked_at"])) // 3600]["click"] += 1
    for one in inputs["orders"]:
        counts[one["customer"], int(parse_time(one["time"])) // 3600]["order"] += 1
    return [
        {"user": user, "hour": format_time(hour * 3600), "counts": dict(some)}
        for (user, hour), some in counts.items()
    ]


JOB = Job(
    recipe=_RECIPE,
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        read_file_instead(_RECIPE, "{in}/clicks.jsonl", "input", "broker", "inputs", 0),
        read_file_instead(_RECIPE, "{in}/orders.jsonl", "input", "broker", "inputs", 1),
        # Files are no partitions.
        "buffer.tumbling_window.clock_scope=input",
        "output.file.path={out}/out.jsonl",
    ),
)
