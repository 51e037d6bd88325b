"""`azure_blob_storage`: "sends message parts as objects to" a container of Azure Blob Storage."""

from __future__ import annotations

from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.azure.account import ACCOUNT_FIELDS, PACKAGES, account_problems
from streamer.connectors.azure.blobs import CONTAINER_ABSENT, shared_account
from streamer.connectors.azure.errors import AzureError, azure_errors
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.each_message import send_each
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, max_in_flight_field
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

CONTAINER: Final = "container"
PATH: Final = "path"
BLOB_TYPE: Final = "blob_type"
PUBLIC_ACCESS_LEVEL: Final = "public_access_level"

BLOCK: Final = "BLOCK"
APPEND: Final = "APPEND"
_LEVELS: Final = {"PRIVATE": None, "BLOB": "blob", "CONTAINER": "container"}
_MAX_NAME_CHARACTERS: Final = 1024
_EXISTS: Final = "ContainerAlreadyExists"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "azure_blob_storage",
    "Writes each message as a blob of a container of Azure Blob Storage.",
    description=(
        "A container that is not there is made. Each message may fail by itself: one that Azure "
        "refuses for its content is rejected alone.\n"
        "\n"
        "A message may be written again after a failure of the program. With a `path` that depends "
        "on the message alone, that replaces the blob by the same one; with `counter()` or the "
        "time in it, there are two. In a blob of the type `APPEND` the message is twice.\n"
        "\n"
        "Credentials are the connection string, else `storage_account` with the key or with the "
        "signature, else those of the machine: the environment, a workload identity, a managed "
        "identity, or Azure's command line.\n"
        "\n"
        "It is tested with Azurite, Azure's own emulator, not with Azure itself."
    ),
    fields=(
        *ACCOUNT_FIELDS,
        Field(
            CONTAINER,
            "string",
            "The container.",
            interpolated=True,
            examples=('messages-${! now().ts_format("2006") }',),
        ),
        Field(
            PATH,
            "string",
            "The name of each blob.",
            default="${!counter()}-${!timestamp_unix_nano()}.txt",
            interpolated=True,
            access=Access.NONE,
            examples=("${! @kafka_key }.json", "${! this.doc.namespace }/${! this.doc.id }.json"),
        ),
        Field(
            BLOB_TYPE,
            "string",
            "`BLOCK` replaces a blob of the same name. `APPEND` puts the message behind what is in "
            "it, up to 50,000 messages.",
            default=BLOCK,
            interpolated=True,
            advanced=True,
            check=lambda text: _choice_problem(text, (BLOCK, APPEND)),
        ),
        Field(
            PUBLIC_ACCESS_LEVEL,
            "string",
            "Who may read a container that is made: `PRIVATE` for nobody without credentials, "
            "`BLOB` for everybody who knows the name of a blob, `CONTAINER` for everybody.",
            default="PRIVATE",
            interpolated=True,
            advanced=True,
            check=lambda text: _choice_problem(text, tuple(_LEVELS)),
        ),
        max_in_flight_field(),
    ),
    check=account_problems,
    examples=(
        Example(
            "A blob for each document",
            "output:\n"
            "  azure_blob_storage:\n"
            "    storage_account: example\n"
            "    storage_access_key: ${AZURE_KEY}\n"
            "    container: documents\n"
            "    path: ${! this.id }.json\n",
        ),
    ),
    begin={"storage_account": "example", "container": "messages"},
    categories=("Services", "Azure"),
    requires=PACKAGES,
)


def _choice_problem(text: str, options: tuple[str, ...]) -> str | None:
    if text in options or "${" in text:
        return None
    return f"is {text!r}; expected {' or '.join(options)}"


class BlobOutput(Output):
    """Writes messages as blobs."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self._texts = {
            name: compile_interpolation(parsed[name])
            for name in (CONTAINER, PATH, BLOB_TYPE, PUBLIC_ACCESS_LEVEL)
        }
        self._account = shared_account(parsed, context)

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write the blobs of a batch; those that fail are named."""
        send_each(len(batch), lambda index: self._write_message(batch, index, ex))

    def _write_message(self, batch: Batch, index: int, ex: Execution) -> None:
        texts = {
            name: interpolate(name, text, batch, index, ex) for name, text in self._texts.items()
        }
        if not 0 < len(texts[PATH]) <= _MAX_NAME_CHARACTERS:
            count = len(texts[PATH])
            raise MessageError(f"path has {count} characters; expected 1 to 1,024")
        if not texts[CONTAINER]:
            raise MessageError("the name of the container is empty")
        for name, options in ((BLOB_TYPE, (BLOCK, APPEND)), (PUBLIC_ACCESS_LEVEL, tuple(_LEVELS))):
            if (problem := _choice_problem(texts[name], options)) is not None:
                raise MessageError(f"{name} {problem}")
        data = batch[index].raw
        try:
            self._write_blob(texts, data)
        except AzureError as error:
            if error.code != CONTAINER_ABSENT:
                raise
            self._make_container(texts)
            self._write_blob(texts, data)

    def _write_blob(self, texts: dict[str, str], data: bytes) -> None:
        with azure_errors():
            blob = self._account.client.get_blob_client(texts[CONTAINER], texts[PATH])
            if texts[BLOB_TYPE] == APPEND:
                blob.upload_blob(data, blob_type="AppendBlob", overwrite=False)
            else:
                blob.upload_blob(data, overwrite=True)

    def _make_container(self, texts: dict[str, str]) -> None:
        access = _LEVELS[texts[PUBLIC_ACCESS_LEVEL]]
        try:
            with azure_errors():
                self._account.client.create_container(texts[CONTAINER], public_access=access)
        except AzureError as error:
            if error.code != _EXISTS:
                raise

    def probe(self) -> str:
        """Check that the container could be listed, or the account's where messages name it."""
        container = self._texts[CONTAINER].static
        if container is not None:
            return self._account.check_container(container)
        with azure_errors():
            self._account.client.get_service_properties()
        return "the account is there"


def build(parsed: ParsedFields, context: BuildContext) -> BlobOutput:
    """Compile the fields; nothing is connected yet."""
    return BlobOutput(parsed, context)
