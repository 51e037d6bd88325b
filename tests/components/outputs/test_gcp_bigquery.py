"""`gcp_bigquery`, with a stand-in for the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason, Rejection
from tests.servers.http import Asked, Reply, http_server

from .scripted import Seen, built

JOBS = "/bigquery/v2/projects/p/jobs"


class BigQuery:
    """Runs load jobs, whose rows must be JSON with a number `n`; others are kept as they are."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.jobs: dict[str, Any] = {}
        self.configurations: list[Any] = []
        self.error: Any = None
        self.forgets_answer = False
        self.outages = 0

    def answer(self, asked: Asked) -> Reply:
        if asked.method == "GET" and self.outages:
            self.outages -= 1
            return Reply(503, b"away")
        if asked.path == "/bigquery/v2/projects/p/datasets/d":
            return _reply({})
        if asked.path.startswith(f"/upload{JOBS}?"):
            job = self._load(asked)
            if self.forgets_answer:
                self.forgets_answer = False
                return Reply(200, b"?", {"Content-Encoding": "gzip"})
            return _reply({"jobReference": job["jobReference"], "status": {"state": "PENDING"}})
        key = asked.path.removeprefix(f"{JOBS}/").partition("?")[0]
        if key in self.jobs:
            return _reply(self.jobs[key])
        error = {"error": {"status": "NOT_FOUND", "message": "no such thing"}}
        return Reply(404, json.dumps(error).encode())

    def _load(self, asked: Asked) -> Any:
        boundary = asked.headers["content-type"].rpartition("boundary=")[2].encode()
        _, head, data, end = asked.body.split(b"--" + boundary)
        assert end == b"--\r\n"
        job = json.loads(head.partition(b"\r\n\r\n")[2])
        rows = data.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        self.configurations.append(job["configuration"])
        error = self.error
        load = job["configuration"]["load"]
        if load["sourceFormat"] == "NEWLINE_DELIMITED_JSON" and error is None:
            made = [json.loads(line) for line in rows.splitlines()]
            if all(isinstance(row["n"], int) for row in made):
                self.rows += made
            else:
                error = {"reason": "invalid", "message": "no number for field n"}
        elif error is None:
            self.rows.append(rows)
        reference = {**job["jobReference"], "location": "EU"}
        status = {"state": "DONE", **({"errorResult": error} if error else {})}
        self.jobs[reference["jobId"]] = {"jobReference": reference, "status": status}
        return self.jobs[reference["jobId"]]


def _reply(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode())


@pytest.fixture
def bigquery(monkeypatch: pytest.MonkeyPatch) -> Iterator[BigQuery]:
    state = BigQuery()
    with http_server(state.answer) as server:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
        yield state


def send(fields: str, *batch: Message) -> Any:
    config = f"gcp_bigquery: {{project: p, dataset: d, table: t{fields}}}"
    [error] = built(config).deliver([[*batch]], Seen().ex).errors
    return error


def rows(*numbers: Any) -> list[Message]:
    return [Message(json.dumps({"n": number}).encode()) for number in numbers]


def test_a_batch_is_one_job(bigquery: BigQuery) -> None:
    fields = (
        ", job_labels: {team: a}, auto_detect: true, max_bad_records: 2, "
        "ignore_unknown_values: true, create_disposition: CREATE_NEVER"
    )
    assert send(fields, *rows(1, 2), Message(b'{\n"n": 3\n}')) is None
    assert bigquery.rows == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert bigquery.configurations == [
        {
            "labels": {"team": "a"},
            "load": {
                "destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "t"},
                "sourceFormat": "NEWLINE_DELIMITED_JSON",
                "writeDisposition": "WRITE_APPEND",
                "createDisposition": "CREATE_NEVER",
                "ignoreUnknownValues": True,
                "maxBadRecords": 2,
                "autodetect": True,
            },
        }
    ]


def test_a_bad_row_is_rejected_alone(bigquery: BigQuery) -> None:
    error = send("", *rows(0, 1, "x", 3, 4), Message(b"garbage"), Message(b"[1]"))
    assert {index: text.reason for index, text in error.errors.items()} == {
        2: Reason.REFUSED,
        **dict.fromkeys((5, 6), Reason.INVALID),
    }
    assert isinstance(error.errors[2], Rejection) and "no number for field n" in error.errors[2]
    assert bigquery.rows == [{"n": n} for n in (0, 1, 3, 4)]


def test_what_replaces_the_table_does_not_come_in_parts(bigquery: BigQuery) -> None:
    error = send(", write_disposition: WRITE_TRUNCATE", *rows(1, "x"))
    assert not error.is_rejected and not error.errors and len(bigquery.jobs) == 1


@pytest.mark.parametrize(
    "failure",
    [
        {"reason": "backendError", "message": "later"},
        {"reason": "notFound", "message": "no dataset"},
        {"reason": "invalid", "message": "No schema specified on job or table."},
    ],
)
def test_what_is_no_rows_fault_blocks_all(bigquery: BigQuery, failure: Any) -> None:
    bigquery.error = failure
    error = send("", *rows(1, 2))
    assert failure["message"] in str(error)
    assert not error.is_rejected and not error.errors and len(bigquery.jobs) == 1


def test_a_job_whose_answer_was_lost_is_not_run_again(bigquery: BigQuery) -> None:
    bigquery.forgets_answer = True
    bigquery.outages = 2
    assert send("", *rows(1, 2)) is None
    assert bigquery.rows == [{"n": 1}, {"n": 2}] and len(bigquery.jobs) == 1


def test_csv_has_one_header(bigquery: BigQuery) -> None:
    fields = ", format: CSV, csv: {header: [a, b], field_delimiter: ;, skip_leading_rows: 1}"
    assert send(fields, Message(b"1;2"), Message(b"3;4\r\n")) is None
    assert bigquery.rows == [b"a;b\n1;2\n3;4\n"]
    load = bigquery.configurations[0]["load"]
    assert (load["fieldDelimiter"], load["skipLeadingRows"]) == (";", 1)


def test_a_file_of_parquet_is_a_job(bigquery: BigQuery) -> None:
    assert send(", format: PARQUET", Message(b"PAR1\n"), Message(b"PAR2")) is None
    assert bigquery.rows == [b"PAR1\n", b"PAR2"]


def test_probes(bigquery: BigQuery) -> None:
    config = "gcp_bigquery: {project: p, dataset: %s, table: t}"
    assert built(config % "d").probe() == "the dataset is there"
    with pytest.raises(StreamerError, match="BigQuery refuses.*404: NOT_FOUND: no such thing"):
        built(config % "nowhere").probe()
    with pytest.raises(StreamerError, match="the field project is empty"):
        built("gcp_bigquery: {dataset: d, table: t}").probe()
