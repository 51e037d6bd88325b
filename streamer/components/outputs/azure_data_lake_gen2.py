"""`azure_data_lake_gen2`: "sends message parts as files to an Azure Data Lake Gen2 filesystem"."""

from __future__ import annotations

import threading
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.azure.account import (
    ACCOUNT_FIELDS,
    PACKAGES,
    account_problems,
    read_account,
)
from streamer.connectors.azure.blobs import ABSENT, CLIENT_OPTIONS
from streamer.connectors.azure.errors import AzureError, azure_errors
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.each_message import MessageRefusedError, send_each
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, max_in_flight_field
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
)

FILESYSTEM: Final = "filesystem"
PATH: Final = "path"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "azure_data_lake_gen2",
    "Writes each message as a file of a filesystem of Azure Data Lake Storage Gen2.",
    description=(
        "The filesystem must be there; directories are made. A file of the same name is replaced. "
        "A file is created, filled and then flushed: readers can see it empty meanwhile. Each "
        "message may fail by itself: one that Azure refuses for its content is rejected alone.\n"
        "\n"
        "A message may be written again after a failure of the program. With a `path` that depends "
        "on the message alone, that replaces the file by the same one; with `counter()` or the "
        "time in it, there are two.\n"
        "\n"
        "Credentials are those of the output `azure_blob_storage`. Azure's emulator has no Data "
        "Lake: this output is tested with Azure's own client against a stand-in for the service."
    ),
    fields=(
        *ACCOUNT_FIELDS,
        Field(
            FILESYSTEM,
            "string",
            "The filesystem.",
            interpolated=True,
            access=Access.REMOTE,
            examples=('messages-${! now().ts_format("2006") }',),
        ),
        Field(
            PATH,
            "string",
            "The path of each file in the filesystem.",
            default="${!counter()}-${!timestamp_unix_nano()}.txt",
            interpolated=True,
            access=Access.NONE,
            examples=("${! @kafka_key }.json", "${! this.doc.namespace }/${! this.doc.id }.json"),
        ),
        max_in_flight_field(),
    ),
    check=account_problems,
    examples=(
        Example(
            "A file for each document",
            "output:\n"
            "  azure_data_lake_gen2:\n"
            "    storage_account: example\n"
            "    storage_sas_token: ${AZURE_SAS}\n"
            "    filesystem: documents\n"
            "    path: ${! this.year }/${! this.id }.json\n",
        ),
    ),
    begin={"storage_account": "example", "filesystem": "messages"},
    categories=("Services", "Azure"),
    requires=(*PACKAGES, Package("azure.storage.filedatalake")),
)


class _DataLake:
    """A client that lasts as long as its worker."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._parsed = parsed
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def client(self) -> Any:
        with self._lock:
            if self._client is None:
                from azure.storage.filedatalake import DataLakeServiceClient

                account = read_account(self._parsed, "dfs")
                self._client = DataLakeServiceClient(
                    account.url, credential=account.credential, **CLIENT_OPTIONS
                )
            return self._client

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


class DataLakeOutput(Output):
    """Writes messages as files."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self._filesystem = compile_interpolation(parsed[FILESYSTEM])
        self._path = compile_interpolation(parsed[PATH])
        self._lake = context.worker_resource("lake", lambda: _DataLake(parsed))

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write the files of a batch; those that fail are named."""
        send_each(len(batch), lambda index: self._write_message(batch, index, ex))

    def _write_message(self, batch: Batch, index: int, ex: Execution) -> None:
        filesystem = interpolate(FILESYSTEM, self._filesystem, batch, index, ex)
        path = interpolate(PATH, self._path, batch, index, ex)
        if not path.strip("/"):
            raise MessageError(f"path is {path!r}; expected the path of a file")
        if not filesystem:
            raise MessageError("the name of the filesystem is empty")
        try:
            with azure_errors():
                file = self._lake.client.get_file_client(filesystem, path)
                file.upload_data(batch[index].raw, overwrite=True)
        except AzureError as error:
            # A filesystem that one message names is no reason to keep the others waiting.
            if error.status == ABSENT and self._filesystem.static is None:
                raise MessageRefusedError(str(error)) from None
            raise

    def probe(self) -> str:
        """Check that the filesystem is there, or that the fields describe an account."""
        name = self._filesystem.static
        with azure_errors():
            client = self._lake.client
            if name is None:
                return "there are credentials"
            try:
                client.get_file_system_client(name).get_file_system_properties()
            except Exception as error:
                if getattr(error, "status_code", None) == ABSENT:
                    raise AzureError(f"there is no filesystem {name!r}", status=ABSENT) from None
                raise
        return "the filesystem is there"


def build(parsed: ParsedFields, context: BuildContext) -> DataLakeOutput:
    """Compile the fields; nothing is connected yet."""
    return DataLakeOutput(parsed, context)
