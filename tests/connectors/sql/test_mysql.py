"""MySQL's own ways, on a real MariaDB: values, placeholders and DSNs."""

from __future__ import annotations

import json

import pytest

from streamer.connectors.sql.drivers import find_driver
from streamer.connectors.sql.errors import SqlError

from .test_sql_processors import outcomes


@pytest.mark.slow
def test_values_of_mysql_come_as_go_has_them(mysql_dsn: str) -> None:
    query = (
        "SELECT 1 AS a, 1.50 AS b, 1.5e0 AS c, 'x' AS d, x'6162' AS e, NULL AS f, "
        "CAST('2020-01-02 03:04:05' AS datetime) AS g, CAST('2020-01-02' AS date) AS h"
    )
    expected = {"a": 1, "b": "1.50", "c": 1.5, "d": "x", "e": "ab", "f": None}
    for more, times in (
        ("", ("2020-01-02 03:04:05", "2020-01-02")),
        ("&parseTime=true", ("2020-01-02T03:04:05Z", "2020-01-02T00:00:00Z")),
    ):
        yaml = f"sql_raw:\n  driver: mysql\n  dsn: {mysql_dsn}{more}\n  query: |\n    {query}"
        [found] = outcomes(yaml, "{}")
        assert json.loads(found) == [expected | dict(zip("gh", times, strict=True))]


@pytest.mark.slow
def test_only_placeholders_are_replaced(mysql_dsn: str) -> None:
    query = "SELECT '?%' AS a, ? AS b, `c?` /* ? */ FROM (SELECT 5 % 3 AS `c?`) AS t -- ?"
    yaml = f"sql_raw:\n  driver: mysql\n  dsn: {mysql_dsn}\n  query: |\n    {query}\n"
    yaml += '  args_mapping: root = [ "it\'s" ]'
    assert outcomes(yaml, "{}") == ['[{"a":"?%","b":"it\'s","c?":2}]']


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("mysql://here", "user:password@tcp"),
        ("a:b@tcp(h:1)/n?tls=perhaps", "expected one of"),
        ("a:b@tcp(h:1)/n?loc=Local", "loc in the DSN"),
        ("a:b@tcp(h:1)/n?allowAllFiles=true", "allowAllFiles in the DSN"),
    ],
)
def test_a_dsn_that_cannot_be_followed_is_refused(dsn: str, text: str) -> None:
    with pytest.raises(SqlError, match=text):
        find_driver("mysql").engine(dsn)
