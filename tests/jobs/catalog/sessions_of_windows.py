"""Incidents: minutes of a service with ten errors or more, no more than five minutes apart."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_SPAN_S = 12 * 3600


def _make_inputs(rng, number):
    logs = []
    for n in range(number):
        at = round(BASE_S + n * _SPAN_S / number, 2)
        service = rng.randrange(10)
        # Each service has bad times of its own.
        share = 0.9 if (int(at) // 240 + service * 5) % 11 < 3 else 0.3
        level = "error" if rng.random() < share else "info"
        logs.append((at, {"ts": format_time(at), "service": f"s{service}", "level": level}))
    return {"logs": shuffle_within(rng, logs, 9)}


def _expect(inputs):
    errors = Counter(
        (one["service"], int(parse_time(one["ts"])) // 60)
        for one in inputs["logs"]
        if one["level"] == "error"
    )
    services: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for (service, minute), number in sorted(errors.items()):
        if number >= 10:
            services[service].append((minute, number))
    out = []
    for service, minutes in services.items():
        incident: list[tuple[int, int]] = []
        for minute, number in [*minutes, (1 << 40, 0)]:
            if incident and minute - incident[-1][0] > 5:
                out.append(
                    {
                        "service": service,
                        "minutes": len(incident),
                        "errors": sum(number for _, number in incident),
                        "until": incident[-1][0],
                    }
                )
                incident = []
            incident.append((minute, number))
    return out


JOB = Job(
    recipe="sessions_of_windows",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=("input.file.paths={in}/*.jsonl", 'output={"file": {"path": "{out}/out.jsonl"}}'),
    # A window's result has a time just before the window's end.
    project=lambda message: {**message, "until": int(parse_time(message["until"])) // 60},
)
