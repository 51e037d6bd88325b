"""Opening, closing, highest, lowest and mean price of each share and hour."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_HOUR_S = 3600


def _make_inputs(rng, number):
    trades = []
    for n in range(number):
        at = round(BASE_S + n * 0.25, 2)
        # Quarters are exact, so that a sum is the same in any order.
        trade = {"at": format_time(at), "symbol": f"S{rng.randrange(40)}"}
        trades.append((at, {**trade, "price": rng.randrange(4, 400) / 4}))
    return {"trades": shuffle_within(rng, trades, 59)}


def _expect(inputs):
    hours: defaultdict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for one in inputs["trades"]:
        at = parse_time(one["at"])
        hours[one["symbol"], int(at) // _HOUR_S].append((at, one["price"]))
    out = []
    for (symbol, hour), trades in hours.items():
        trades.sort()
        prices = [price for _, price in trades]
        out.append(
            {
                "symbol": symbol,
                "hour": format_time(hour * _HOUR_S),
                "open": prices[0],
                "close": prices[-1],
                "high": max(prices),
                "low": min(prices),
                "mean": sum(prices) / len(prices),
            }
        )
    return out


def _as_floats(message):
    numbers = ("open", "close", "high", "low", "mean")
    return {name: float(one) if name in numbers else one for name, one in message.items()}


JOB = Job(
    recipe="first_and_last_by_time", make_inputs=_make_inputs, expect=_expect, project=_as_floats
)
