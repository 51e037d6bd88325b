"""Cron expressions: the times that robfig/cron v3 gives for them, as Benthos runs it."""

from __future__ import annotations

import pytest

from streamer.connectors.generated.cron import parse_cron
from streamer.core.durations import SECOND

# A moment, an expression, and how many seconds later the next five times are. The times were given
# by robfig/cron 3.0.1 itself; changes of the clocks in London and New York are among them.
TIMES = [
    (1700000000, "* * * * *", [40, 100, 160, 220, 280]),
    (1700000000, "*/15 * * * *", [100, 1000, 1900, 2800, 3700]),
    (1700000000, "30 9 * * 1-5", [40600, 127000, 213400, 472600, 559000]),
    (1700000000, "0,30 */2 * * * *", [40, 70, 160, 190, 280]),
    (1700000000, "TZ=Europe/London 30 3-6,20-23 * * *", [1000, 4600, 19000, 22600, 26200]),
    (1711846800, "TZ=Europe/London 30 1 * * *", [84600, 171000, 257400, 343800, 430200]),
    (1729990800, "TZ=Europe/London 30 1 * * *", [1800, 88200, 174600, 261000, 347400]),
    (1710000000, "TZ=America/New_York 30 2 * * *", [138600, 225000, 311400, 397800, 484200]),
    (1730500000, "TZ=America/New_York 15,45 1 * * *", [24500, 26300, 110900, 112700, 114500]),
    (1700000000, "0 0 13 * FRI", [179200, 784000, 1388800, 1993600, 2425600]),
    (1700000000, "0 0 */2 * MON", [6400, 179200, 352000, 438400, 524800]),
    (1700000000, "0 0 ? * 3", [6400, 611200, 1216000, 1820800, 2425600]),
    (1700000000, "0 0 29 2 *", [9164800, 135395200, 261625600, 387856000, 514086400]),
    (1700000000, "0 0 31 jan,Mar-Apr *", [6659200, 11843200, 38281600, 43379200, 69817600]),
    (1700000000, "10/20 * * * * *", [10, 30, 50, 70, 90]),
    (1700000000, "5-40/7 5 5 * * *", [24705, 24712, 24719, 24726, 24733]),
    (1700000000, "@daily", [6400, 92800, 179200, 265600, 352000]),
    (1700000000, "@weekly", [352000, 956800, 1561600, 2166400, 2771200]),
    (1700000000, "@yearly", [4067200, 35689600, 67225600, 98761600, 130297600]),
    (1700000000, "CRON_TZ=Asia/Kolkata @hourly", [1000, 4600, 8200, 11800, 15400]),
    (1700000000, "@every 90s", [90, 180, 270, 360, 450]),
    (1700000000, "@every 1500ms", [1, 2, 3, 4, 5]),
    (1700000000, "@every 10ms", [1, 2, 3, 4, 5]),
    (1700000000, "0 0 30 2 *", []),
]


@pytest.mark.parametrize(("moment", "text", "later"), TIMES)
def test_the_times_are_those_of_the_library_that_benthos_uses(
    moment: int, text: str, later: list[int]
) -> None:
    found, at = [], moment * SECOND
    while len(found) < 5 and (following := parse_cron(text).next_after(at)) is not None:
        at = following
        found.append(at // SECOND - moment)
    assert found == later


def test_a_time_is_behind_the_moment_however_little() -> None:
    assert parse_cron("* * * * *").next_after(59 * SECOND + 999_999_999) == 60 * SECOND
    assert parse_cron("* * * * *").next_after(60 * SECOND) == 120 * SECOND


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("* * * *", "expected 5 to 6 fields, found 4"),
        ("60 * * * *", "'60' does not fit a minute: expected 0 to 59"),
        ("* * 0 * *", "does not fit a day of month: expected 1 to 31"),
        ("* * * * 7", "does not fit a day of week: expected 0 to 6"),
        ("5-2 * * * *", "the smaller number first"),
        ("*/0 * * * *", "a step above 0"),
        ("x * * * *", "failed to parse int from 'x' in the minute 'x'"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every soon", "'soon' is not a duration"),
        ("TZ=Mars/Olympus * * * * *", "provided bad location Mars/Olympus"),
    ],
)
def test_what_is_no_expression_is_told(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parse_cron(text)
