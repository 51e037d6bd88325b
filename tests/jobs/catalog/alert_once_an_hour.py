"""Alerts of accounts, at most one an hour each, with the number of those that were held back."""

from __future__ import annotations

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_HOUR_S = 3600


def _make_inputs(rng, number):
    payments = []
    for n in range(number):
        at = BASE_S + n * 3
        account = f"account-{rng.randrange(40)}"
        payments.append(
            (at, {"account": account, "at": format_time(at), "amount": rng.randrange(15_000)})
        )
    return {"payments": shuffle_within(rng, payments, 60)}


def _expect(inputs):
    begun: dict[str, float] = {}
    suppressed: dict[str, int] = {}
    clock = 0.0
    out = []
    for one in inputs["payments"]:
        # A message out of order counts as of the largest time before it.
        account, clock = one["account"], max(clock, parse_time(one["at"]))
        if one["amount"] < 10_000:
            continue
        if account in begun and clock < begun[account] + _HOUR_S:
            suppressed[account] += 1
            continue
        out.append({"account": account, "at": one["at"], "suppressed": suppressed.get(account, 0)})
        begun[account], suppressed[account] = clock, 0
    return out


JOB = Job(recipe="alert_once_an_hour", make_inputs=_make_inputs, expect=_expect)
