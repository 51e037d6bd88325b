"""The revenue of each product and hour, from orders with up to five items."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job, read_file_instead
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_RECIPE = "revenue_of_nested_orders"


def _make_inputs(rng, number):
    orders = []
    for n in range(number):
        at = BASE_S + n
        items = [
            {
                "sku": f"sku-{rng.randrange(100)}",
                "quantity": rng.randrange(1, 9),
                "price": rng.randrange(1, 400) / 4,  # quarters are exact
            }
            for _ in range(rng.randrange(6))
        ]
        orders.append((at, {"order": n, "ts": format_time(at), "items": items}))
    return {"orders": shuffle_within(rng, orders, 599)}


def _expect(inputs):
    hours: defaultdict[tuple[str, int], list[float]] = defaultdict(lambda: [0, 0])
    for order in inputs["orders"]:
        hour = int(parse_time(order["ts"])) // 3600
        for item in order["items"]:
            sold = hours[item["sku"], hour]
            sold[0] += item["quantity"]
            sold[1] += item["quantity"] * item["price"]
    return [
        {"sku": sku, "hour": format_time(hour * 3600), "sold": sold, "revenue": float(revenue)}
        for (sku, hour), (sold, revenue) in hours.items()
    ]


JOB = Job(
    recipe=_RECIPE,
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        read_file_instead(_RECIPE, "{in}/orders.jsonl"),
        "output.file.path={out}/out.jsonl",
    ),
    project=lambda message: {**message, "revenue": float(message["revenue"])},
)
