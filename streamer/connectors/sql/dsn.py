"""Hosts and ports in the DSNs of databases."""

from __future__ import annotations

import re
from typing import Final

from streamer.core.urls import address_problem

_POSTGRES_HOSTS: Final = re.compile(r"postgres(?:ql)?://(?:[^/?#]*@)?([^/?#]*)")
_CLICKHOUSE_HOSTS: Final = re.compile(r"clickhouse://(?:[^/?#]*@)?([^/?#]*)")
_MYSQL_ADDRESS: Final = re.compile(r"(?:.*@)?tcp\(([^)]*)\)/[^/]*", re.DOTALL)


def dsn_problem(text: str) -> str | None:
    """Return what is wrong with the hosts and ports in a DSN, or None.

    PostgreSQL's may have several, and a directory of sockets (`%2Frun`) in the place of a host.
    """
    if match := _POSTGRES_HOSTS.match(text):
        places = [place for place in match[1].split(",") if not place.startswith("%2")]
    elif match := _MYSQL_ADDRESS.fullmatch(text):
        places = [match[1]]
    elif match := _CLICKHOUSE_HOSTS.match(text):
        places = [place for place in match[1].split(",") if ":" in place]
    else:
        return None
    return next(filter(None, map(address_problem, places)), None)
