"""`hdfs`: "reads files from a HDFS directory, where each discrete file" is a message."""

from __future__ import annotations

from typing import Final

from streamer.connectors.hdfs.client import (
    CONNECTION_FIELDS,
    DIRECTORY,
    PACKAGES,
    hosts_problems,
    make_client,
)
from streamer.connectors.hdfs.directory_store import HdfsStore
from streamer.connectors.objects.fields import (
    DELETE_FIELD,
    OBJECT_SCANNER_FIELDS,
    PREFIX_FIELD,
    READING,
    WATCHER_FIELD,
    WATCHING,
    make_object_source,
)
from streamer.connectors.objects.object_source import ObjectSource
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.INPUT,
    "hdfs",
    "Reads the files of a directory of HDFS.",
    description=(
        f"{READING}\n\n{WATCHING}\n"
        "\n"
        "Files in directories of the directory are left out, as in Connect. The metadata are "
        "`hdfs_name` and `hdfs_path`. Write a file under another name, or elsewhere, and rename it "
        "once it is complete. Connect has no `prefix`, `delete_objects`, `scanner` and `watcher` "
        "here.\n"
        "\n"
        "It is tested with a NameNode and a DataNode of Hadoop 3.5, without Kerberos."
    ),
    fields=(
        *CONNECTION_FIELDS,
        Field(DIRECTORY, "string", "The directory, from the root on.", access=Access.REMOTE),
        PREFIX_FIELD,
        DELETE_FIELD,
        *OBJECT_SCANNER_FIELDS,
        WATCHER_FIELD,
    ),
    check=hosts_problems,
    examples=(
        Example(
            "Lines of files",
            "input:\n"
            "  hdfs:\n"
            "    hosts: [ localhost:9000 ]\n"
            "    directory: /events\n"
            "    scanner:\n"
            "      lines: {}\n",
        ),
    ),
    categories=("Services",),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
    requires=PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> ObjectSource:
    """Make the input; it is connected once it is read."""
    store = HdfsStore(parsed[DIRECTORY], make_client(parsed))
    return make_object_source(parsed, context, store)
