"""The list of the cookbook's pages: by subject, and by the jobs that people asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

PEERS: Final = {
    "benthos": "Benthos",
    "ekuiper": "eKuiper",
    "flink": "Flink SQL",
    "kafka": "Kafka Streams",
    "kip450": "KIP-450",
    "ksqldb": "ksqlDB",
    "tenzir": "Tenzir",
}
"""What the names of recipes from other systems' pages begin with."""

SUBJECTS: Final = {
    "Counts and totals": (
        "live_counts",
        "daily_totals",
        "hour_early_on_time_late",
        "latency_percentiles",
        "first_and_last_by_time",
        "running_top_k",
        "average_against_before",
        "revenue_of_nested_orders",
        "topics_hours_apart",
    ),
    "Sessions and gaps": (
        "sessions_closed_in_time",
        "sessions_with_their_own_gap",
        "value_every_minute",
        "heartbeats",
        "heartbeats_of_known_sensors",
    ),
    "Alerts and throttles": ("alert_once_an_hour", "throttle_by_app", "compare_with_last_window"),
    "Joins and enrichment": (
        "unpaid_orders",
        "orders_with_customers",
        "orders_paid_and_shipped",
        "enrich_from_csv",
    ),
    "Funnels and patterns": ("funnel_within_a_limit", "funnel_pattern"),
    "State of keys": ("drop_values_seen_before", "count_events_once", "count_since_alarm"),
    "Tables and databases": (
        "counts_into_postgres",
        "postgres_table_from_cdc",
        "customers_per_city_from_cdc",
    ),
    "Several windows": ("hourly_and_daily_totals", "top_k_of_windows", "sessions_of_windows"),
    "Files": ("files_by_hour", "whole_files_by_hour"),
}
"""The recipes of each subject. One that is in none is under "Other tasks"."""

ASKED: Final = (
    (
        "Report a sensor as alive at its first beat, and as missing after ten seconds without one",
        ("heartbeats", "heartbeats_of_known_sensors"),
    ),
    (
        "Sessions of fifteen minutes, with ten more for late events; a single event is emitted even"
        " if no other follows for days",
        ("sessions_closed_in_time",),
    ),
    (
        "A funnel A, then B, then C within one limit for the chain: the progress of each user",
        ("funnel_within_a_limit", "funnel_pattern"),
    ),
    (
        "Orders joined to payments of the next ten minutes; unpaid ones reported without traffic",
        ("unpaid_orders",),
    ),
    (
        "The median and the 95th percentile of latency by service and minute",
        ("latency_percentiles",),
    ),
    (
        "A value for each minute and sensor; minutes without data repeat the last one",
        ("value_every_minute",),
    ),
    (
        "An alert at once, then none for an hour for the same account, with their number",
        ("alert_once_an_hour",),
    ),
    ("A session gap in each event", ("sessions_with_their_own_gap",)),
    ("Enrich from a CSV file that is replaced while the stream runs", ("enrich_from_csv",)),
    ("Files by the hour of the event time", ("files_by_hour", "whole_files_by_hour")),
    (
        "A throttle with another limit for each key; the excess goes elsewhere",
        ("throttle_by_app",),
    ),
    (
        "The average of five minutes compared with the previous five, and an alert on the ratio",
        ("average_against_before", "compare_with_last_window"),
    ),
    ("Drop values that were seen before, for ever", ("drop_values_seen_before",)),
    ("Daily totals by local midnight, running during the day", ("daily_totals",)),
    (
        "A table in PostgreSQL from Debezium's changes, deletes included; customers per city",
        ("postgres_table_from_cdc", "customers_per_city_from_cdc"),
    ),
    ("The running top three of each continent", ("running_top_k", "top_k_of_windows")),
    (
        "Counts by user, type and window in PostgreSQL, exactly once in any failure",
        ("counts_into_postgres",),
    ),
    (
        "One message for each item of an order, then revenue by product and hour",
        ("revenue_of_nested_orders",),
    ),
    ("Live counts of the last seconds and minutes, each second", ("live_counts",)),
    (
        "Results of an hour: early, at its end, and corrected for an hour of late data",
        ("hour_early_on_time_late",),
    ),
    ("Hourly and daily windows of one stream", ("hourly_and_daily_totals",)),
    (
        "Topics with different schemas in one window, one topic far behind the other",
        ("topics_hours_apart",),
    ),
)
"""Jobs that people asked of stream processors in public, and the recipes that do them."""

_WORDS: Final = {
    "cdc": "CDC",
    "csv": "CSV",
    "postgres": "PostgreSQL",
    "k": "K",
}


class Page(Protocol):
    """What the list says of a page."""

    @property
    def name(self) -> str:
        """The recipe's name."""

    @property
    def summary(self) -> str:
        """The job in one sentence."""

    @property
    def document(self) -> Any:
        """The config as YAML gives it."""


def format_title(name: str) -> str:
    """Return the name of a recipe as a title."""
    first, _, rest = name.partition("_")
    words = [_WORDS.get(word, word) for word in rest.split("_")]
    if first in PEERS:
        return f"{PEERS[first]}: {' '.join(words)}".removesuffix(": ")
    return " ".join([_WORDS.get(first, first.capitalize()), *words]).strip()


def format_index(pages: Sequence[Page]) -> Iterator[str]:
    """Give the lines of the list."""
    by_name = {page.name: page for page in pages}
    own = [name for name in by_name if name.partition("_")[0] not in PEERS]
    listed = {name for some in SUBJECTS.values() for name in some}
    others = tuple(name for name in own if name not in listed)
    for heading, names in (*SUBJECTS.items(), ("Other tasks", others)):
        found = [by_name[name] for name in names if name in by_name]
        if found:
            yield from _format_table(heading, found)
    yield from ("## Common questions", "")
    yield "From forums of Flink, ksqlDB, Kafka Streams, Vector, eKuiper, Bytewax and Materialize."
    yield from ("", "| question | pages |", "|---|---|")
    for asked, names in ASKED:
        links = ", ".join(_link(name) for name in names if name in by_name)
        if links:
            yield f"| {asked} | {links} |"
    yield ""
    yield from _format_table(
        "Examples of other systems", [page for page in pages if page.name not in own]
    )


def _format_table(heading: str, pages: Sequence[Page]) -> Iterator[str]:
    yield from (f"## {heading}", "", "| task | page | buffer |", "|---|---|---|")
    for page in pages:
        summary = page.summary.replace("|", "\\|")
        buffers = ", ".join(dict.fromkeys(f"`{one}`" for one in _list_buffers(page.document)))
        yield f"| {summary} | {_link(page.name)} | {buffers or 'none'} |"
    yield ""


def _link(name: str) -> str:
    return f"[{format_title(name)}](cookbook/{name}.md)"


def _list_buffers(document: Any) -> Iterator[str]:
    for one in (document.get("buffer", {}), *document.get("buffers", ())):
        for name in one:
            if name not in ("label", "from", "pipeline", "output"):
                yield name
