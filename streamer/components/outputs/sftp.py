"""`sftp`: "writes files to an SFTP server"."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.connectors.formats.codec import CODEC_FIELD
from streamer.connectors.sftp.fields import (
    CLIENT_FIELDS,
    KNOWN_HOSTS,
    PACKAGES,
    client_problems,
)
from streamer.connectors.sftp.file_output import PATH, SftpOutput
from streamer.sdk.output.protocols import MAX_IN_FLIGHT
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "sftp",
    "Writes files of a server of SFTP.",
    description=(
        "Directories are made as they are needed. With the codec `all-bytes`, each message "
        "replaces its file, so a message that is sent again leaves the file as it was. The other "
        "codecs append: a message may be there twice after a failure. Tasks that append to one "
        "file at the same time do not cut each other's messages, up to 32 KiB a message.\n"
        "\n"
        "Somebody who reads a file while it is written sees a part of it.\n"
        "\n"
        f"{KNOWN_HOSTS}\n"
        "\n"
        "It was tested with OpenSSH."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            PATH,
            "string",
            "The file on the server.",
            access=Access.REMOTE,
            interpolated=True,
            examples=("/out/${! uuid_v4() }.json", "/out/${! @window_start }.jsonl"),
        ),
        replace(CODEC_FIELD, default="all-bytes"),
        Field(
            MAX_IN_FLIGHT,
            "int",
            "Has no effect: batches are written one after the other.",
            default=64,
        ),
    ),
    check=client_problems,
    examples=(
        Example(
            "A file for each day",
            "output:\n"
            "  sftp:\n"
            "    address: sftp.example.com:22\n"
            "    credentials:\n"
            "      username: writer\n"
            "      password: ${SFTP_PASSWORD}\n"
            "      host_public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMq\n"
            '    path: /out/${! now().ts_format("2006-01-02") }.jsonl\n'
            "    codec: lines\n",
        ),
    ),
    categories=("Network",),
    begin={
        "address": "sftp.example.com:22",
        "credentials": {"username": "writer", "password": "${SFTP_PASSWORD}"},
        PATH: "/out/${! uuid_v4() }.json",
    },
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> SftpOutput:
    """Compile the path; nothing is connected yet."""
    return SftpOutput(parsed, context)
