"""A table in PostgreSQL that follows another one by its changes, deletes among them."""

from __future__ import annotations

from contextlib import contextmanager

from tests.jobs.changes import change_rows
from tests.jobs.database import list_rows
from tests.jobs.job import Job, read_file_instead
from tests.servers.postgres import postgres_server

_RECIPE = "postgres_table_from_cdc"


def _make_inputs(rng, number):
    # The changes of a row are in order; a hundred of them come again, as after a crash of Debezium.
    changes = change_rows(
        rng,
        number,
        lambda: {"name": f"name {rng.randrange(999)}", "city": rng.choice(("Ulm", "Bonn", None))},
    )
    again = changes[number // 2 : number // 2 + 100]
    return {"changes": [*changes[: number // 2 + 100], *again, *changes[number // 2 + 100 :]]}


def _expect(inputs):
    rows = {}
    for change in inputs["changes"]:
        rows[(change["before"] or change["after"])["id"]] = change["after"]
    return [[row["id"], row["name"], row["city"]] for row in rows.values() if row]


@contextmanager
def _serve(directory):
    with postgres_server() as dsn:
        (directory / "dsn").write_text(dsn)
        yield {"CUSTOMERS_DSN": dsn}


JOB = Job(
    recipe=_RECIPE,
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(read_file_instead(_RECIPE, "{in}/changes.jsonl"),),
    read=lambda directory: list_rows(
        (directory / "dsn").read_text(), "SELECT id, name, city FROM customers"
    ),
    serve=_serve,
)
