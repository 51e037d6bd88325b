"""Why a micro-batch failed, in a sentence, and which component it comes from.

Spark tells it by a text with the traces of Python and Java in it. What a component has said itself
is found by its mark (`blame`); what Spark, the JVM and the machine run into, by its words.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from streamer.engine.blame import Blamed
from streamer.engine.crash_search import without_crashes
from streamer.engine.places import Labels, Places
from streamer.landing.damage import SIGN

_NOBODY: Final[Labels] = {}

_OOM: Final = re.compile(r"java\.lang\.OutOfMemoryError(?::\s*([^\n]*))?")
_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded|ENOSPC")
_NO_DESCRIPTORS: Final = re.compile(r"Too many open files|EMFILE|ENFILE")
_NO_MEMORY: Final = re.compile(r"Cannot allocate memory|ENOMEM|unable to create native thread")
_THERE: Final = re.compile(r"\(TID \d+\) \((\S+) executor (?!driver\))\w+\)")
"""Where a task ran that was lost, on a cluster."""

_HELPER: Final = re.compile(r"Failed to exec spawn helper|jspawnhelper")
_UNSTARTED: Final = re.compile(
    r'Cannot run program "([^"]*)"(?: \(in directory "[^"]*"\))?: ([^\n]*)'
)
_UNBORN: Final = re.compile(r"Python worker (?:\S+ )*?to connect")
_WORKER: Final = re.compile(
    r"Python worker (?:exited unexpectedly|process terminated|crashed)|"
    r"Python worker (?:\S+ )*has crashed|"
    r"python/worker.*exited with code|org\.apache\.spark\.api\.python\.\S*EOFException|"
    r"java\.io\.EOFException|port number from pyspark\.daemon|\bStream closed\b"
)
_SPOOL: Final = re.compile(re.escape(SIGN) + r"[^\n]*")
_MARKED: Final = re.compile(r"the windows' state is damaged: [^\n]*")
_REPLACED: Final = re.compile(r"input file: [^\n]* was replaced or cut short [^\n]*")
_FATAL: Final = re.compile(r"Fatal Python error: ([^\n]*)")
_PROCESSOR: Final = re.compile(r"streamer/processors/(\w+?)_?\.py")
_GONE: Final = re.compile(r"FileNotFoundException|NoSuchFileException")
_MISSING: Final = re.compile(r"No such file or directory: b?['\"]([^'\"]+)")
_ANEW: Final = re.compile(
    r"use a new checkpoint location|delete the existing data in the checkpoint"
)
_STATE: Final = re.compile(r"CANNOT_LOAD_STATE_STORE|CANNOT_READ_STATE|StateStore|RocksDB")
_DAMAGED: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|CHECKSUM_VERIFICATION_FAILED|MALFORMED_LOG_FILE|ChecksumException"
)
_FILE: Final = r"/[^\s,:;'\")\]}]+\.(?:changelog|zip|sst|delta)\b"
"""Of the state, below the checkpoint."""

_KAFKA: Final = re.compile(r"org\.apache\.kafka\.(?:\w+\.)*(\w+?)(?:Exception)?: ([^\n]*)")
_STAGE_2: Final = re.compile(r"TransformWithState|State_?Store|stateful", re.I)
_PYTHON: Final = re.compile(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit)): (.*)$", re.M
)
_CAUSED: Final = re.compile(r"^Caused by: (?:[\w$.]+\.)?(\w+): ([^\n]+)", re.M)
_FRAME: Final = re.compile(
    r"^\s*(?:at \S+\(|File \".*\", line \d+|\.\.\. \d+ more|Traceback |Driver stacktrace:)"
)
_CLASS: Final = re.compile(r"^(?:[a-z][\w$]*\.)+([A-Z]\w*(?:Exception|Error)): ")


class Trouble(NamedTuple):
    """A failure of a micro-batch.

    Attributes:
        text: what went wrong, in a line, and what to do where that is known.
        place: label and path of the component; empty when it is none's.
        lasts: whether the same again is likely to fail as well, as where what is kept is damaged.
        passing: whether the machine lacks what it may have again later: disk, descriptors, memory.
        ended: whether a worker has ended, perhaps by the message that it had in hand.
        overloaded: whether the machine was too busy to begin, which says nothing about messages.
    """

    text: str
    place: Labels = _NOBODY
    lasts: bool = False
    passing: bool = False
    ended: bool = False
    overloaded: bool = False


NO_TROUBLE: Final = Trouble("")


class WaitingInputs:
    """Makes what inputs wait for the trouble of their stream, where it has no other one."""

    def __init__(self, place: Labels) -> None:
        """Take label and path of the input."""
        self._place = place
        self._before = ""

    def look(self, trouble: Trouble, now: str) -> Trouble:
        """Return the stream's trouble.

        Args:
            trouble: what it was.
            now: what the inputs wait for; empty for nothing.
        """
        found = NO_TROUBLE if self._before and trouble.text == self._before else trouble
        self._before = now
        return Trouble(now, self._place) if now and not found.text else found


def trouble_of(error: str, places: Places, checkpoint: str) -> Trouble:
    """Return what a failure of Spark's query comes to.

    Args:
        error: all that Spark says.
        places: where the ends of the stream stand.
        checkpoint: its directory.
    """
    # Behind the reason, Spark shows the query.
    error = error.partition("=== Streaming Query ===")[0]
    blamed = Blamed.found(error)
    if blamed is not None:
        # A message that takes all memory ends its worker, or is told so in good time.
        ended = blamed.text.startswith("MemoryError")
        place = {"label": blamed.label, "path": blamed.path}
        return Trouble(without_crashes(blamed.text), place, ended=ended)
    if _NO_DESCRIPTORS.search(error):
        text = "the machine or the process has no file descriptors left: raise ulimit -n"
        return Trouble(text, places.state, passing=True)
    if _NO_MEMORY.search(error):
        text = "the machine has no memory left for another process or thread"
        return Trouble(text, _stage(error, places), passing=True)
    if (found := _MARKED.search(error)) is not None:
        return Trouble(found[0], places.state, lasts=True)
    if (found := _SPOOL.search(error) or _REPLACED.search(error)) is not None:
        return Trouble(found[0], places.input, lasts=True)
    if (found := _OOM.search(error)) is not None:
        more = f" ({found[1].strip()})" if found[1] else ""
        return Trouble(
            f"Spark's JVM has no memory left{more}: spark.conf.spark.driver.memory sets its heap",
            _stage(error, places),
        )
    if _FULL.search(error):
        there = _THERE.search(error)
        worker = f"a disk of the worker {there[1]} is full, or " if there else ""
        text = f"{worker}the disk of the checkpoint {checkpoint} is full: make room there"
        return Trouble(text, places.state, passing=True)
    if _is_gone(error, checkpoint):
        text = f"the checkpoint {checkpoint} was removed or changed while the stream runs"
        return Trouble(f"{text}; restore it, or start anew", places.state)
    # State is written and read with the help of processes, too, and is not damaged by this.
    if _HELPER.search(error):
        return Trouble(
            "Java can start no process any more: it was replaced while it ran, as by an upgrade; "
            "start the program again",
            _stage(error, places),
            lasts=True,
        )
    if (found := _UNSTARTED.search(error)) is not None:
        return Trouble(f"{found[1]} cannot be started: {found[2].strip()}", _stage(error, places))
    # What is read from a file that ends too soon is an EOFException as well.
    if _DAMAGED.search(error):
        file = re.search(re.escape(checkpoint) + _FILE, error)
        what = file[0] if file else f"the checkpoint {checkpoint}"
        return Trouble(
            f"what {what} holds cannot be read: {said(error)}; if that stays so, restore the "
            "checkpoint from a backup, or start anew with another one",
            places.state,
            lasts=True,
        )
    if _UNBORN.search(error):
        return Trouble(
            "a Python worker did not start in time: the machine has more to do than it can, or no "
            "memory left",
            _stage(error, places),
            passing=True,
            overloaded=True,
        )
    if _WORKER.search(error):
        return Trouble(
            f"a Python worker ended ({_end_of_worker(error)}): what it did is done again",
            _stage(error, places),
            ended=True,
        )
    if (found := _KAFKA.search(error)) is not None:
        return Trouble(f"Kafka: {found[2].strip()} ({found[1]})", places.input)
    return Trouble(said(error))


def _end_of_worker(error: str) -> str:
    """Return how a worker has ended, and in which processor, as far as that is known."""
    signal = _FATAL.search(error)
    if signal is None:
        return "killed, or out of memory"
    # Python writes down where it was, the innermost call first.
    where = _PROCESSOR.search(error, signal.end())
    return f"{signal[1].strip()}{f', in the processor {where[1]}' if where else ''}"


def _is_gone(error: str, checkpoint: str) -> bool:
    """Tell whether files of the checkpoint are not where they were."""
    if _ANEW.search(error) is not None:
        return True
    missing = _MISSING.search(error)
    if missing is not None:
        return missing[1].startswith(checkpoint)
    return _GONE.search(error) is not None and (checkpoint in error or bool(_STATE.search(error)))


def _stage(error: str, places: Places) -> Labels:
    """Return the component that the first of those stands for which ran together."""
    if places.buffer is None:
        return places.input
    return places.buffer if _STAGE_2.search(error) else places.input


def said(error: str) -> str:
    """Return the line of a text of Spark's that says most, without any trace."""
    for pattern in (_PYTHON, _CAUSED):
        # What Python says of an error of Java is that there was one.
        found = [(name, text) for name, text in pattern.findall(error) if "Py4J" not in name]
        if found:
            name, text = found[-1]
            kind = name.rpartition(".")[2]
            return text.strip() if kind == "StreamerError" else f"{kind}: {text.strip()}"
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    lines = [line for line in lines if not _FRAME.match(line) and not line.startswith("at ")]
    return _CLASS.sub(r"\1: ", lines[-1]) if lines else "no reason given"
