"""Events with the name and region of their team, from a CSV file with 5,000 of 6,000 teams."""

from __future__ import annotations

import random

from tests.jobs.job import Job

_TEAMS, _KNOWN = 6_000, 5_000


def _make_inputs(rng, number):
    return {
        "events": [
            {"team_id": rng.choice((str, int))(rng.randrange(_TEAMS)), "event": n}
            for n in range(number)
        ]
    }


def _name_team(number: int) -> tuple[str, str]:
    return f"Team, {number}", random.Random(number).choice(("eu", "us", "ap"))


def _write_table(directory):
    rows = [f'{n},"{_name_team(n)[0]}",{_name_team(n)[1]}' for n in range(_KNOWN)]
    (directory / "teams.csv").write_text("\n".join(["id,name,region", *rows]) + "\n")


def _expect(inputs):
    out = []
    for one in inputs["events"]:
        number = int(one["team_id"])
        team, region = _name_team(number) if number < _KNOWN else ("unknown", "none")
        out.append({**one, "team": team, "region": region})
    return out


JOB = Job(
    recipe="enrich_from_csv",
    make_inputs=_make_inputs,
    expect=_expect,
    prepare=_write_table,
    environment={"TEAMS": "{in}/teams.csv"},
)
