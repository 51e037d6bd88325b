"""Kinds of access to the machine that a field's value has when its component is built or runs."""

from __future__ import annotations

from enum import StrEnum


class Access(StrEnum):
    """The thing that a field's value opens or runs; the permissions of a config decide by it.

    A text whose field's name looks like one of these needs one. Mappings, interpolated strings
    and labels of resources have rules of their own and need none, unless they name something too.
    """

    FILE = "file"
    """A file or a directory of the machine."""

    PROGRAM = "program"
    """A program of the machine."""

    PYTHON = "python"
    """Code in Python, or the name of a function: it may do whatever this program can."""

    ADDRESS = "address"
    """A server, by host and port or by URL. As a path or as `unix:…` it names a Unix socket."""

    NETWORK = "network"
    """The kind of a socket: `tcp` and so on; with `unix` and `unixgram` the address is a path."""

    SCHEMA_URL = "schema_url"
    """A document by URL: `file://…` is a file, `http://…` a server's."""

    DATABASE = "database"
    """The kind of a database: that of `sqlite` is a file."""

    DATABASE_URL = "database_url"
    """Where a database is, in the words of its driver, which may name files and Unix sockets."""

    QUERY = "query"
    """Code for another language, whose interpreter sees neither files nor the environment."""

    REMOTE = "remote"
    """Code, or a name, that a server is sent and that means nothing here."""

    NONE = "none"
    """Nothing of the machine: a path in a URL, in a document or in an archive, a mere name."""
