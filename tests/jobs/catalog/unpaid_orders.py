"""Orders without a payment in ten minutes. By the times of the events, whose end is then known."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_LIMIT_S = 600
_LATENESS_S = 30
_UNPAID, _TOO_LATE = 0.1, 0.1


def _make_inputs(rng, number):
    half = number // 2
    orders, payments = [], []
    for n in range(half):
        at = round(BASE_S + n * 0.8, 3)
        orders.append((at, {"at": format_time(at), "order": n, "amount": rng.randrange(1, 100)}))
        chance = rng.random()
        if chance >= _UNPAID:
            late = chance < _UNPAID + _TOO_LATE
            paid = round(at + (rng.uniform(601, 900) if late else rng.uniform(0, 599)), 3)
            payments.append((paid, {"at": format_time(paid), "order": n}))
    payments.sort(key=lambda payment: payment[0])
    return {
        "orders": shuffle_within(rng, orders, 9),
        "payments": shuffle_within(rng, payments, 9),
    }


def _expect(inputs):
    paid: defaultdict[int, list[float]] = defaultdict(list)
    for payment in inputs["payments"]:
        paid[payment["order"]].append(parse_time(payment["at"]))
    # The clock is that of the side that is behind.
    clock = min(max(parse_time(one["at"]) for one in some) for some in inputs.values())
    out = []
    for one in inputs["orders"]:
        at = parse_time(one["at"])
        if any(at <= when <= at + _LIMIT_S for when in paid[one["order"]]):
            continue
        if at + _LIMIT_S + _LATENESS_S < clock:
            out.append({"order": one["order"], "amount": one["amount"], "unpaid_since": one["at"]})
    return out


JOB = Job(
    recipe="unpaid_orders",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.broker.inputs.0.file.paths={in}/orders.jsonl",
        "input.broker.inputs.1.file.paths={in}/payments.jsonl",
        "output.file.path={out}/out.jsonl",
        "buffer.window_join.clock=stream",
        "buffer.window_join.clock_scope=input",
    ),
)
