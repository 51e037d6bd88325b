"""`gcp_bigquery`: it "sends messages as new rows to a Google Cloud BigQuery table"."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.google.api import CREDENTIALS_FIELD, PACKAGES, GoogleClient
from streamer.connectors.http_client.divided_send import raise_failures, send_divided
from streamer.connectors.http_client.errors import HttpError
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, max_in_flight_field
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

PROJECT: Final = "project"
JOB_PROJECT: Final = "job_project"
DATASET: Final = "dataset"
TABLE: Final = "table"
FORMAT: Final = "format"
WRITE_DISPOSITION: Final = "write_disposition"
CSV: Final = "csv"

_ADDRESS: Final = "https://bigquery.googleapis.com"
_EMULATOR: Final = "BIGQUERY_EMULATOR_HOST"
_JSON: Final = "NEWLINE_DELIMITED_JSON"
_PARQUET: Final = "PARQUET"
_APPEND: Final = "WRITE_APPEND"
_REQUEST_TIMEOUT: Final = 120 * SECOND
_JOB_TIMEOUT: Final = 600 * SECOND
_FIRST_PAUSE: Final = SECOND // 4
_LAST_PAUSE: Final = 5 * SECOND
_MAX_JOB_BYTES: Final = 32 << 20
_NOT_FOUND: Final = 404
_NO_SCHEMA: Final = "No schema specified"


def _flag(name: str, description: str) -> Field:
    return Field(name, "bool", description, default=False, advanced=True)


def _name_field(name: str, description: str, **more: Any) -> Field:
    return Field(name, "string", description, **more)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "gcp_bigquery",
    "Loads messages into a table of Google Cloud BigQuery.",
    description=(
        "A batch is one load job, or several of 32 MiB. Use large batches: BigQuery bounds the "
        "number of jobs of a table in a day. A batch counts as sent when its job is done. With "
        "`WRITE_APPEND`, rows that BigQuery refuses are looked for by loading the batch in halves, "
        "and rejected alone; with the others the stream is blocked. If the outcome of a job cannot "
        "be told, its rows may be loaded twice.\n"
        "\n"
        "For JSON a message is a row, for `CSV` it is lines, for `PARQUET` a whole file, which is "
        "a job by itself.\n"
        "\n"
        "It uses the JSON API, and is tested with a stand-in for it, not with Google's."
    ),
    fields=(
        _name_field(PROJECT, "The project of the table; empty for the credentials'.", default=""),
        _name_field(JOB_PROJECT, "The project of the jobs; empty for `project`.", default=""),
        _name_field(DATASET, "The dataset, which must be there."),
        _name_field(TABLE, "The table."),
        _name_field(
            FORMAT, "The format of messages.", default=_JSON, options=(_JSON, "CSV", _PARQUET)
        ),
        max_in_flight_field(),
        _name_field(
            WRITE_DISPOSITION,
            "What becomes of rows that are there: kept, an error, or replaced with each batch.",
            default=_APPEND,
            advanced=True,
            options=(_APPEND, "WRITE_EMPTY", "WRITE_TRUNCATE"),
        ),
        _name_field(
            "create_disposition",
            "What becomes of a table that is missing.",
            default="CREATE_IF_NEEDED",
            advanced=True,
            options=("CREATE_IF_NEEDED", "CREATE_NEVER"),
        ),
        _flag("ignore_unknown_values", "True to leave values out that the schema does not have."),
        Field(
            "max_bad_records",
            "int",
            "Number of bad rows of a job that BigQuery drops. They are lost.",
            default=0,
            advanced=True,
            check=lambda number: None if number >= 0 else f"is {number}; expected 0 or more",
        ),
        _flag("auto_detect", "True to have the schema guessed of the rows."),
        Field("job_labels", "string", "Labels of jobs.", default={}, shape="map", advanced=True),
        CREDENTIALS_FIELD,
        Field(
            CSV,
            "object",
            "Settings of CSV.",
            advanced=True,
            children=(
                Field(
                    "header",
                    "string",
                    "Names of columns, a line before the messages of each job. Without it, the "
                    "first line of a job is that of its first message.",
                    default=(),
                    shape="array",
                ),
                _name_field("field_delimiter", "Between fields.", default=","),
                _flag("allow_jagged_rows", "True if columns at the end of a row may be missing."),
                _flag("allow_quoted_newlines", "True if quoted values may have line breaks."),
                _name_field(
                    "encoding", "The encoding.", default="UTF-8", options=("UTF-8", "ISO-8859-1")
                ),
                Field("skip_leading_rows", "int", "Lines of a job that are no rows.", default=1),
            ),
        ),
        BATCHING_FIELD,
    ),
    check=batching_problems,
    examples=(
        Example(
            "Rows of JSON",
            "output:\n"
            "  gcp_bigquery:\n"
            "    project: my-project\n"
            "    dataset: shop\n"
            "    table: orders\n"
            "    batching: {count: 10000}\n",
        ),
    ),
    categories=("Services", "GCP"),
    requires=PACKAGES,
)


@dataclass(frozen=True, slots=True)
class _Row:
    index: int
    lines: bytes


class BigQueryOutput(Output):
    """Loads rows by jobs."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Take the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._parsed = parsed
        self._appends = parsed[WRITE_DISPOSITION] == _APPEND
        self._google = GoogleClient(
            parsed, context, _REQUEST_TIMEOUT, "BigQuery", _ADDRESS, emulator=_EMULATOR
        )

    def send(self, batch: Batch, ex: Execution) -> None:
        """Load the messages of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        rows: list[_Row] = []
        for index, message in enumerate(batch):
            try:
                rows.append(_Row(index, self._make_row(message)))
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        # What replaces the table must not come in parts, which would replace each other.
        limit = _MAX_JOB_BYTES if self._appends else sum(len(row.lines) for row in rows)
        count = 1 if self._parsed[FORMAT] == _PARQUET else 0
        refused, outage = send_divided(rows, limit, lambda part: self._load(part, ex), count)
        raise_failures(failed | refused, outage, len(batch))

    def _make_row(self, message: Message) -> bytes:
        if self._parsed[FORMAT] == _PARQUET:
            return message.raw
        if self._parsed[FORMAT] == CSV.upper():
            return message.raw.rstrip(b"\r\n") + b"\n"
        if not isinstance(message.doc, dict):
            raise MessageError("the message is no JSON object, which a row has to be")
        raw = message.raw
        return (raw if b"\n" not in raw and b"\r" not in raw else dump_json(message.doc)) + b"\n"

    def _load(self, rows: Sequence[_Row], ex: Execution) -> dict[int, str] | None:
        """Load rows by one job; see `SendRequest`."""
        body = b"".join(row.lines for row in rows)
        header = self._parsed[CSV]["header"]
        if self._parsed[FORMAT] == CSV.upper() and header:
            body = self._parsed[CSV]["field_delimiter"].join(header).encode() + b"\n" + body
        error = self._run_job(body, ex)
        if error is None:
            return {}
        reason = str(error.get("reason") or "")
        text = f"the load job has failed: {reason}: {str(error.get('message') or '')[:500]}"
        if reason != "invalid" or _NO_SCHEMA in text or not self._appends:
            raise StreamerError(text)
        return None if len(rows) > 1 else {rows[0].index: Rejection(text, Reason.REFUSED)}

    def _run_job(self, body: bytes, ex: Execution) -> Any:
        """Run a job to its end; return its error, or None.

        Raises:
            StreamerError: there is no such job, or its outcome cannot be told.
        """
        project = self._job_project
        job_id = f"streamer_{secrets.token_hex(16)}"
        boundary = secrets.token_hex(16)
        head = dump_json(
            {
                "jobReference": {"projectId": project, "jobId": job_id},
                "configuration": self._configuration(),
            }
        )
        parts = b"--%(b)s\r\nContent-Type: application/json\r\n\r\n%(h)s\r\n--%(b)s\r\n"
        parts = (parts + b"Content-Type: application/octet-stream\r\n\r\n") % {
            b"b": boundary.encode(),
            b"h": head,
        }
        sent = parts + body + b"\r\n--%s--\r\n" % boundary.encode()
        path = f"/upload/bigquery/v2/projects/{project}/jobs?uploadType=multipart"
        job: Any = {}
        try:
            kind = f"multipart/related; boundary={boundary}"
            job = self._google.query("POST", path, sent, kind=kind)
        except HttpError as error:
            if error.status is not None and error.status < 500:
                raise
            # The job may have begun all the same: the id tells.
        return self._wait_for_job(project, job_id, job, ex)

    def _wait_for_job(self, project: str, job_id: str, job: Any, ex: Execution) -> Any:
        path = f"/bigquery/v2/projects/{project}/jobs/{job_id}"
        end, pause = ex.elapsed() + _JOB_TIMEOUT, _FIRST_PAUSE
        while True:
            status = job.get("status")
            if isinstance(status, dict) and status.get("state") == "DONE":
                error = status.get("errorResult")
                return error if isinstance(error, dict) else None
            if ex.elapsed() >= end:
                raise StreamerError(f"the load job {job_id} is not done within 10 minutes")
            location = (job.get("jobReference") or {}).get("location")
            if job:
                ex.sleep(pause)
                pause = min(pause * 2, _LAST_PAUSE)
            try:
                job = self._google.query("GET", f"{path}?location={location}" if location else path)
            except HttpError as error:
                if error.status is not None and error.status < 500:
                    raise
                # The job goes on meanwhile; whoever loads its rows again loads them twice.
                ex.sleep(pause)

    def _configuration(self) -> dict[str, Any]:
        parsed, csv = self._parsed, self._parsed[CSV]
        load: dict[str, Any] = {
            "destinationTable": {
                "projectId": self._project,
                "datasetId": parsed[DATASET],
                "tableId": parsed[TABLE],
            },
            "sourceFormat": parsed[FORMAT],
            "writeDisposition": parsed[WRITE_DISPOSITION],
            "createDisposition": parsed["create_disposition"],
            "ignoreUnknownValues": parsed["ignore_unknown_values"],
            "maxBadRecords": parsed["max_bad_records"],
            "autodetect": parsed["auto_detect"],
        }
        if parsed[FORMAT] == CSV.upper():
            load |= {
                "fieldDelimiter": csv["field_delimiter"],
                "allowJaggedRows": csv["allow_jagged_rows"],
                "allowQuotedNewlines": csv["allow_quoted_newlines"],
                "encoding": csv["encoding"],
                "skipLeadingRows": csv["skip_leading_rows"],
            }
        return {"load": load, "labels": dict(parsed["job_labels"])}

    @property
    def _project(self) -> str:
        return self._parsed[PROJECT] or self._google.default_project()

    @property
    def _job_project(self) -> str:
        return self._parsed[JOB_PROJECT] or self._project

    def probe(self) -> str:
        """Check that the dataset is there."""
        dataset = self._parsed[DATASET]
        self._google.query("GET", f"/bigquery/v2/projects/{self._project}/datasets/{dataset}")
        return "the dataset is there"


def build(parsed: ParsedFields, context: BuildContext) -> BigQueryOutput:
    """Take the fields; nothing is connected yet."""
    return BigQueryOutput(parsed, context)
