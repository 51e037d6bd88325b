"""Streams of a service that are fed over HTTP and deployed anew meanwhile, each in its own way.

The oracle is plain Python and shares no code with the product: events are numbered, each that was
taken comes out exactly once, and of no window there are two lines, unless it was let out early.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.faults.service import Service

CONFIG = """\
input: {{ http_server: {{ path: /post }} }}
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.id % 4
    size: {size}
    allowed_lateness: {late}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "by": "{by}",
            "window": [ meta("window_key"), @window_start_unix_ms, @window_end_unix_ms ],
            "emit": @window_emit,
            "ids": json("id").from_all(),
          }}
        }} else {{ deleted() }}
output: {{ file: {{ path: {out}, codec: lines }} }}
spark: {{ shards: 2 }}
"""
EVERY = 10
"""Milliseconds of event time from one event to the next."""
_BEGAN = 1_767_261_600
_LATER = {"0s": "1s", "1s": "2s", "2s": "0s"}
_OTHER = {"1s": "2s", "2s": "1s"}


@dataclass
class Deployed:
    """A stream, what it is deployed with, and its traffic.

    Attributes:
        name: its id.
        out: the file that it writes.
        texts: its revisions, the newest last.
        taken: the numbers of the events that were answered with 200.
        unknown: those of which nobody knows, since the answer did not come.
        over: set when no more are to be sent.
    """

    name: str
    out: Path
    texts: list[str] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._values = [{"size": "1s", "late": "0s", "out": str(self.out)}]
        self._url = ""
        self._next = 0
        self.next("in place")

    def next(self, kind: str) -> str:
        """Return the next revision, which differs from the newest one as `kind` says."""
        if kind == "rollback":
            self.texts.append(self.texts[-2])
            self._values.append(self._values[-2])
            return self.texts[-1]
        values = dict(self._values[-1])
        if kind == "migrate":
            values["late"] = _LATER[values["late"]]
        if kind == "drain":
            values["size"] = _OTHER[values["size"]]
        self.texts.append(CONFIG.format(by=len(self.texts), **values))
        self._values.append(values)
        return self.texts[-1]

    @property
    def by(self) -> str:
        """What its newest revision calls itself."""
        return self.texts[-1].partition('"by": "')[2].partition('"')[0]

    def send_to(self, url: str) -> None:
        """Say where the service is; events go there from now on."""
        self._url = url

    def traffic(self) -> threading.Thread:
        """Begin to send."""
        thread = threading.Thread(target=self._send, daemon=True)
        thread.start()
        return thread

    def _send(self) -> None:
        with httpx2.Client(timeout=30) as client:
            while not self.over.wait(EVERY / 1000):
                self._one(client, self._next, _BEGAN + self._next * EVERY / 1000)
                self._next += 1

    def _one(self, client: httpx2.Client, number: int, at: float) -> None:
        body = json.dumps({"id": number, "at": at})
        try:
            answer = client.post(f"{self._url}/{self.name}/post", content=body)
        except httpx2.ConnectError:
            return
        except httpx2.HTTPError:
            self.unknown.add(number)
            return
        if answer.status_code == 200:
            self.taken.add(number)
        elif answer.status_code == 408:
            self.unknown.add(number)

    def finish(self, thread: threading.Thread) -> None:
        """Send no more but one event that lets all windows close but its own."""
        self.over.set()
        thread.join(60)
        with httpx2.Client(timeout=30) as client:
            self._one(client, self._next, _BEGAN + 86_400)
        self.taken.discard(self._next)

    def lines(self) -> list[dict[str, Any]]:
        """Return what has come out."""
        if not self.out.exists():
            return []
        return [json.loads(line) for line in self.out.read_bytes().split(b"\n")[:-1]]

    def ids(self) -> Counter[int]:
        """Return how often each event has come out."""
        return Counter(one for line in self.lines() for one in line["ids"])

    def is_out(self) -> bool:
        """Whether all that was taken has come out."""
        return self.ids().keys() >= self.taken

    def check(self) -> None:
        """Hold what came out against what was taken."""
        found = self.ids()
        assert found.keys() >= self.taken, f"lost: {sorted(self.taken - found.keys())[:9]}"
        twice = [one for one, times in found.items() if times > 1]
        assert not twice, f"in two windows: {twice[:9]}"
        assert found.keys() - self.taken <= self.unknown, "came out, and was not taken"
        windows = Counter[str]()
        for line in self.lines():
            key, start, end = line["window"]
            for one in line["ids"]:
                at = _BEGAN * 1000 + one * EVERY
                assert one % 4 == int(key) and start <= at < end, line
            if line["emit"] != "flush":
                windows[json.dumps(line["window"])] += 1
        assert max(windows.values()) == 1, "a window came out in parts"


def comes_out(running: Service, one: Deployed, since: int) -> None:
    """Wait until the newest revision has written something after so many lines."""
    running.wait_for(
        lambda: any(line["by"] == one.by for line in one.lines()[since:]),
        180,
        f"for a window of {one.name} by revision {one.by}: {running.streams()}",
    )


def write_over(path: Path) -> Callable[[str], None]:
    """Return what writes a file as an editor does: beside it, then over it."""

    def write(text: str) -> None:
        draft = path.with_suffix(".tmp")
        draft.write_text(text)
        draft.replace(path)

    return write


def config_map(directory: Path, name: str) -> Callable[[str], None]:
    """Return what changes a file as the kubelet does: a link to another directory is swapped."""

    def swap(text: str) -> None:
        into = directory / f"..{time.time_ns()}"
        into.mkdir()
        (into / f"{name}.yaml").write_text(text)
        link = directory / f"{name}.yaml"
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}.yaml")
        draft = directory / "..data_tmp"
        draft.symlink_to(into.name)
        draft.rename(directory / "..data")

    return swap
