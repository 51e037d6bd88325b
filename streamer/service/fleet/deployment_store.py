"""Store of deployments on disk: after a crash there is the old one or the new one.

It is a database of SQLite: a deploy is one transaction of it, however many streams and rows that
concerns, and it is on the disk when it returns. What was deployed is text with its secrets in it,
so only the program's user can read it.

Every service that opens it begins a term, and may change it until another one has opened it. The
lock of the directory sees to it that the former has ended by then; where that lock was lost, on a
file system of a network, the term does.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from streamer.core.errors import StreamerError
from streamer.service.fleet.errors import RefusedError

FORMAT: Final = 1
MAX_REVISIONS: Final = 100
"""Revisions of a stream that are kept, the newest ones."""

_TABLES: Final = """
CREATE TABLE revisions (
    stream TEXT, number INTEGER, time INTEGER, author TEXT, source TEXT, text TEXT,
    chilled INTEGER, judgement TEXT, proved INTEGER,
    PRIMARY KEY (stream, number)
);
CREATE TABLE streams (id TEXT PRIMARY KEY, current INTEGER, wanted TEXT);
CREATE TABLE resources (
    kind TEXT, label TEXT, text TEXT, time INTEGER, author TEXT, PRIMARY KEY (kind, label)
);
"""

API_SOURCE: Final = "api"
"""The source of revisions that came by API; that of others is their file."""

RUNNING: Final = "running"
PAUSED: Final = "paused"
ENDED: Final = "ended"


@dataclass(frozen=True, slots=True)
class RevisionDraft:
    """A revision that is to be deployed.

    Attributes:
        text: the config, as it came, secrets and all.
        author: who deployed it; empty when that is not known.
        source: `API_SOURCE`, or the file.
        time: when, Unix ns.
        chilled: whether it runs in spite of findings.
        judgement: what the change from the revision before came to.
    """

    text: str = field(repr=False)
    author: str
    source: str
    time: int
    chilled: bool = False
    judgement: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Revision(RevisionDraft):
    """A revision.

    Attributes:
        number: from 1.
        proved: whether it has been started once, and has not failed on probation.
    """

    number: int = 0
    proved: bool = False


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream as it should be.

    Attributes:
        revision: what is deployed.
        desired_state: `RUNNING`, `PAUSED` or `ENDED`.
    """

    revision: Revision
    desired_state: str


@dataclass(frozen=True, slots=True)
class StoredResource:
    """A resource that came by API: a component's config, by its kind and label."""

    kind: str
    label: str
    text: str = field(repr=False)
    author: str = ""
    time: int = 0


class DeploymentStore:
    """The database. It can be used from several threads."""

    def __init__(self, path: Path, shared: bool = False) -> None:
        """Open or create the store, and begin a term.

        Args:
            path: the file.
            shared: whether programs of other machines may open it later, or before. SQLite's
                write-ahead log is for the processes of one machine; without it a change costs
                more, and is seen by all.

        Raises:
            StreamerError: it cannot be read, or another version of the program has made it.
        """
        self._lock = threading.Lock()
        self._term: int | None = None
        try:
            # SQLite gives the files beside it the same rights.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute(f"PRAGMA journal_mode = {'DELETE' if shared else 'WAL'}")
            self._db.execute("PRAGMA synchronous = FULL")
            with self._transaction() as db:
                version = db.execute("PRAGMA user_version").fetchone()[0]
                if version == 0:
                    for statement in filter(str.strip, _TABLES.split(";")):
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {FORMAT}")
                if version in (0, FORMAT):
                    # Not a table of the format: programs that know of no terms may use the rest.
                    db.execute("CREATE TABLE IF NOT EXISTS terms (number INTEGER PRIMARY KEY)")
                    db.execute(
                        "CREATE TABLE IF NOT EXISTS labels "
                        "(stream TEXT, name TEXT, value TEXT, PRIMARY KEY (stream, name))"
                    )
                    self._term = _newest_term(db) + 1
                    db.execute("INSERT INTO terms VALUES (?)", (self._term,))
                    db.execute("DELETE FROM terms WHERE number < ?", (self._term,))
        except (OSError, sqlite3.Error) as e:
            raise StreamerError(
                f"{path} cannot be used: {e}; restore it from a backup, or name another directory "
                "with --checkpoints"
            ) from None
        if version not in (0, FORMAT):
            raise StreamerError(
                f"{path} has format {version}, this program reads {FORMAT}; run the version that "
                "wrote it, or name another directory with --checkpoints"
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if self._term is not None and _newest_term(self._db) != self._term:
                    raise RefusedError(
                        "another service has taken over these streams, and this one changes "
                        "nothing any more; ask the other one"
                    )
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _query(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    def is_superseded(self) -> bool:
        """Whether another service has begun a term, so that this one has to end."""
        # What cannot be read now says nothing; it is asked again.
        with self._lock, suppress(sqlite3.Error):
            return self._term is not None and _newest_term(self._db) != self._term
        return False

    def streams(self) -> dict[str, StoredStream]:
        """Return what is deployed, by id."""
        rows = self._query(
            f"SELECT s.id, s.wanted, {_COLUMNS} FROM streams s"
            " JOIN revisions r ON r.stream = s.id AND r.number = s.current ORDER BY s.id"
        )
        return {row[0]: StoredStream(_parse_revision(row[2:]), row[1]) for row in rows}

    def revisions(self, stream_id: str) -> list[Revision]:
        """Return the revisions of a stream that are kept, the newest first."""
        query = f"SELECT {_COLUMNS} FROM revisions r WHERE r.stream = ? ORDER BY r.number DESC"
        return [_parse_revision(row) for row in self._query(query, stream_id)]

    def deploy(self, stream_id: str, draft: RevisionDraft) -> Revision:
        """Make a revision, which is what is deployed from now on."""
        with self._transaction() as db:
            query = "SELECT coalesce(max(number), 0) + 1 FROM revisions WHERE stream = ?"
            number: int = db.execute(query, (stream_id,)).fetchone()[0]
            judgement = None if draft.judgement is None else json.dumps(draft.judgement)
            db.execute(
                "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (
                    *(stream_id, number, draft.time, draft.author, draft.source, draft.text),
                    *(draft.chilled, judgement),
                ),
            )
            db.execute(
                "INSERT INTO streams VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE"
                " SET current = excluded.current, wanted = excluded.wanted",
                (stream_id, number, RUNNING),
            )
            db.execute(
                "DELETE FROM revisions WHERE stream = ? AND number <= ?",
                (stream_id, number - MAX_REVISIONS),
            )
        return Revision(
            *(draft.text, draft.author, draft.source, draft.time, draft.chilled),
            *(draft.judgement, number, False),
        )

    def set_proved(self, stream_id: str, number: int, proved: bool = True) -> None:
        """Note that a revision has been started; or that it has failed on probation since."""
        with self._transaction() as db:
            query = "UPDATE revisions SET proved = ? WHERE stream = ? AND number = ?"
            db.execute(query, (proved, stream_id, number))

    def revert(self, stream_id: str, number: int, desired_state: str = RUNNING) -> None:
        """Let an older revision be what is deployed, and forget those after it."""
        with self._transaction() as db:
            query = "DELETE FROM revisions WHERE stream = ? AND number > ?"
            db.execute(query, (stream_id, number))
            query = "UPDATE streams SET current = ?, wanted = ? WHERE id = ?"
            db.execute(query, (number, desired_state, stream_id))

    def set_desired_state(self, stream_id: str, desired_state: str) -> None:
        """Note what a stream should do."""
        with self._transaction() as db:
            db.execute("UPDATE streams SET wanted = ? WHERE id = ?", (desired_state, stream_id))

    def remove(self, stream_id: str) -> None:
        """Forget a stream, with its revisions."""
        with self._transaction() as db:
            db.execute("DELETE FROM streams WHERE id = ?", (stream_id,))
            db.execute("DELETE FROM revisions WHERE stream = ?", (stream_id,))
            db.execute("DELETE FROM labels WHERE stream = ?", (stream_id,))

    def labels(self) -> dict[str, dict[str, str]]:
        """Return the labels of streams, by id and name."""
        labels: dict[str, dict[str, str]] = {}
        for stream_id, name, value in self._query(
            "SELECT stream, name, value FROM labels ORDER BY stream, name"
        ):
            labels.setdefault(stream_id, {})[name] = value
        return labels

    def set_labels(self, stream_id: str, labels: Mapping[str, str]) -> None:
        """Give a stream these labels, and no others."""
        with self._transaction() as db:
            db.execute("DELETE FROM labels WHERE stream = ?", (stream_id,))
            rows = [(stream_id, name, value) for name, value in labels.items()]
            db.executemany("INSERT INTO labels VALUES (?, ?, ?)", rows)

    def resources(self) -> list[StoredResource]:
        """Return the resources that came by API."""
        query = "SELECT kind, label, text, author, time FROM resources ORDER BY kind, label"
        return [StoredResource(*row) for row in self._query(query)]

    def put_resource(self, resource: StoredResource) -> None:
        """Keep a resource, in the place of the one of the same kind and label."""
        with self._transaction() as db:
            query = "INSERT OR REPLACE INTO resources (kind, label, text, author, time)"
            values = (resource.kind, resource.label, resource.text, resource.author, resource.time)
            db.execute(f"{query} VALUES (?, ?, ?, ?, ?)", values)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._db.close()


def _newest_term(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(number), 0) FROM terms").fetchone()[0])


_COLUMNS: Final = "r.text, r.author, r.source, r.time, r.chilled, r.judgement, r.number, r.proved"


def _parse_revision(row: tuple[Any, ...]) -> Revision:
    text, author, source, time, chilled, judgement, number, proved = row
    judgement_document = None if judgement is None else json.loads(judgement)
    return Revision(
        text, author, source, time, bool(chilled), judgement_document, number, bool(proved)
    )
