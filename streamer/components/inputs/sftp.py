"""`sftp`: "consumes files from an SFTP server".

Files are read on the driver, and their messages go to its disk together with the position behind
them, from which the next start goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from streamer.connectors.sftp.fields import (
    CLIENT_FIELDS,
    KNOWN_HOSTS,
    PACKAGES,
    client_problems,
)
from streamer.connectors.sftp.file_session import (
    DELETE_ON_FINISH,
    ENABLED,
    MINIMUM_AGE,
    PATHS,
    POLL_INTERVAL,
    WATCHER,
    FileInput,
)
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.spec.checks import join_checks
from streamer.sdk.spec.scanner_fields import FIELD_SCANNER, SCANNER_FIELDS, build_scanner


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not parsed[PATHS]:
        yield PATHS, "is an empty list; expected at least one path"
    if parsed[WATCHER][ENABLED] and parsed[WATCHER][POLL_INTERVAL] <= 0:
        yield f"{WATCHER}.{POLL_INTERVAL}", "expected more than 0s"


_SCANNER_FIELDS: Final = tuple(
    replace(one, default={"to_the_end": {}}) if one.name == FIELD_SCANNER else one
    for one in SCANNER_FIELDS
)

SPEC: Final = Spec(
    Kind.INPUT,
    "sftp",
    "Reads files of a server of SFTP.",
    description=(
        "The driver reads files one after the other, in the order of `paths` and of their names, "
        "and writes the messages to its disk together with the position in the file. The next "
        "start goes on behind these: each message is read once. A file that has changed meanwhile "
        "is read again from its beginning. A part that the scanner cannot read is logged, and the "
        "rest of that file is skipped.\n"
        "\n"
        "Without a watcher, the input ends behind the last file. A watcher looks for new files "
        "again and again. A file that was read is not read again while it is there, even if it "
        "changes; the checkpoint has the paths, no cache is needed.\n"
        "\n"
        f"{KNOWN_HOSTS}\n"
        "\n"
        "The metadata are `sftp_path` and `sftp_mod_time` (RFC 3339). It was tested with OpenSSH."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            "max_sftp_sessions",
            "int",
            "Has no effect: one session reads all files.",
            default=10,
            advanced=True,
        ),
        Field(
            PATHS,
            "string",
            "Paths of files on the server; `*`, `?` and `[…]` stand for parts of a name.",
            access=Access.REMOTE,
            shape="array",
            examples=(["/upload/*.jsonl"],),
        ),
        *_SCANNER_FIELDS,
        Field(
            DELETE_ON_FINISH,
            "bool",
            "True to delete a file on the server when all of it is on the driver's disk.",
            default=False,
            advanced=True,
        ),
        Field(
            WATCHER,
            "object",
            "Looks for new files.",
            children=(
                Field(ENABLED, "bool", "True to look for new files.", default=False),
                duration_field(
                    MINIMUM_AGE,
                    "Time since a file was written last, before which it is not read: the server "
                    "may still get the rest of it. It needs clocks that agree.",
                    default="1s",
                    examples=("10s", "1m", "10m"),
                ),
                duration_field(
                    POLL_INTERVAL,
                    "Time after which new files are looked for.",
                    default="1s",
                    examples=("100ms", "1s"),
                ),
                Field(
                    "cache",
                    "string",
                    "Has no effect: the checkpoint has the paths of files that were read.",
                    default="",
                    refers=Kind.CACHE,
                ),
            ),
        ),
    ),
    check=join_checks(client_problems, _problems),
    examples=(
        Example(
            "New files, which are deleted when they are read",
            "input:\n"
            "  sftp:\n"
            "    address: sftp.example.com:22\n"
            "    credentials:\n"
            "      username: reader\n"
            "      private_key: ${SFTP_KEY}\n"
            "      host_public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMq\n"
            "    paths: [ /upload/*.jsonl ]\n"
            "    scanner: { lines: {} }\n"
            "    delete_on_finish: true\n"
            "    watcher: { enabled: true, minimum_age: 10s }\n",
        ),
    ),
    categories=("Network",),
    begin={
        "address": "sftp.example.com:22",
        "credentials": {"username": "reader", "password": "${SFTP_PASSWORD}"},
        PATHS: ["/upload/*.jsonl"],
    },
    delivery="exactly once onto the driver's disk, by positions in files",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> FileInput:
    """Take the fields; it is connected once it is opened."""
    scanner = build_scanner(parsed, context)
    return FileInput(parsed, scanner, ComponentRef(context.component).fields)
