"""The three countries of each continent with the most visits of an hour."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_SPAN_S = 24 * 3600
_COUNTRIES, _CONTINENTS = 60, 5


def _make_inputs(rng, number):
    visits = []
    for n in range(number):
        at = round(BASE_S + n * _SPAN_S / number, 2)
        country = min(int(rng.expovariate(0.05)), _COUNTRIES - 1)
        place = {"continent": f"continent-{country % _CONTINENTS}", "country": f"c{country}"}
        visits.append((at, {"ts": format_time(at), **place}))
    return {"visits": shuffle_within(rng, visits, 59)}


def _expect(inputs):
    visits = Counter(
        (one["continent"], int(parse_time(one["ts"])) // 3600, one["country"])
        for one in inputs["visits"]
    )
    best: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for (continent, hour, _), number in visits.items():
        best[continent, hour].append(number)
    # Which country of several with as many comes first is not said: their numbers are compared.
    return [
        {"continent": continent, "hour": format_time(hour * 3600), "best": sorted(some)[:-4:-1]}
        for (continent, hour), some in best.items()
    ]


def _keep_numbers(message):
    countries = [one["country"] for one in message["best"]]
    assert len(set(countries)) == len(countries), message
    return {**message, "best": [one["visits"] for one in message["best"]]}


JOB = Job(
    recipe="top_k_of_windows",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=("input.file.paths={in}/*.jsonl", "output.file.path={out}/out.jsonl"),
    project=_keep_numbers,
)
