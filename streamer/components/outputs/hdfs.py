"""`hdfs`: "sends message parts as files to a HDFS directory"."""

from __future__ import annotations

import posixpath
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.hdfs.client import (
    CONNECTION_FIELDS,
    DIRECTORY,
    PACKAGES,
    HdfsMissingError,
    hosts_problems,
    shared_client,
)
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.each_message import send_each
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

PATH: Final = "path"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "hdfs",
    "Writes each message as a file of a directory of HDFS.",
    description=(
        "Directories are made. A file of the same name is replaced. To write many messages as one "
        "file, join them by `archive` in the processors of `batching`: HDFS is made for large "
        "files, and closing a file can take half a second. Each message may fail by itself: one "
        "whose path HDFS does not take is rejected alone.\n"
        "\n"
        "A message may be written again after a failure of the program. With a `path` that depends "
        "on the message alone, that replaces the file by the same one; with `counter()` or the "
        "time in it, there are two.\n"
        "\n"
        "Kerberos works by the ticket of the process, with the settings in `HADOOP_CONF_DIR`. It "
        "is not tested; all else is, with a NameNode and a DataNode of Hadoop 3.5."
    ),
    fields=(
        *CONNECTION_FIELDS,
        Field(
            DIRECTORY,
            "string",
            "The directory, from the root on.",
            interpolated=True,
            access=Access.REMOTE,
        ),
        Field(
            PATH,
            "string",
            "The path of each file in the directory.",
            default="${!counter()}-${!timestamp_unix_nano()}.txt",
            interpolated=True,
            access=Access.NONE,
        ),
        max_in_flight_field(),
        BATCHING_FIELD,
    ),
    check=join_checks(hosts_problems, batching_problems),
    examples=(
        Example(
            "Files of a thousand lines",
            "output:\n"
            "  hdfs:\n"
            "    hosts: [ localhost:9000 ]\n"
            "    directory: /events\n"
            "    path: ${! counter() }-${! timestamp_unix_nano() }.jsonl\n"
            "    batching:\n"
            "      count: 1000\n"
            "      period: 10s\n"
            "      processors:\n"
            "        - archive:\n"
            "            format: lines\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


class HdfsOutput(Output):
    """Writes messages as files."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._directory = compile_interpolation(parsed[DIRECTORY])
        self._path = compile_interpolation(parsed[PATH])
        self._client = shared_client(parsed, context)

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write the files of a batch; those that fail are named."""
        send_each(len(batch), lambda index: self._write_message(batch, index, ex))

    def _write_message(self, batch: Batch, index: int, ex: Execution) -> None:
        directory = interpolate(DIRECTORY, self._directory, batch, index, ex)
        path = interpolate(PATH, self._path, batch, index, ex)
        if not path.strip("/") or path.endswith("/") or "\0" in path:
            raise MessageError(f"path is {path!r}; expected the path of a file")
        target = posixpath.normpath(posixpath.join("/", directory, path.lstrip("/")))
        self._client.write(target, batch[index].raw)

    def probe(self) -> str:
        """Check that a NameNode answers."""
        directory = self._directory.static
        place = posixpath.join("/", directory) if directory else "/"

        def find_directory(client: Any) -> Any:
            return client.get_file_info(place)

        try:
            self._client.run(find_directory)
        except HdfsMissingError:
            return f"the directory {place} will be made"
        return f"the directory {place} is there"


def build(parsed: ParsedFields, context: BuildContext) -> HdfsOutput:
    """Compile the fields; nothing is connected yet."""
    return HdfsOutput(parsed, context)
