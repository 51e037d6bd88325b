"""Diagnosis of a failed micro-batch: a sentence, and the component that is the cause.

Spark gives a text with the traces of Python and Java in it. What a component has reported itself
is found by its mark; what Spark, the JVM and the machine run into, by its words.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from streamer.connectors.spool.damage import DAMAGE_PREFIX
from streamer.engine.report.component_errors import ComponentFailure
from streamer.engine.report.metric_labels import EndpointLabels, Labels
from streamer.engine.stage.crash_search import strip_crash_data

_NO_COMPONENT: Final[Labels] = {}

_OOM: Final = re.compile(r"java\.lang\.OutOfMemoryError(?::\s*([^\n]*))?")
_DISK_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded|ENOSPC")
_NO_DESCRIPTORS: Final = re.compile(r"Too many open files|EMFILE|ENFILE")
_NO_MEMORY: Final = re.compile(r"Cannot allocate memory|ENOMEM|unable to create native thread")
_REMOTE_EXECUTOR: Final = re.compile(r"\(TID \d+\) \((\S+) executor (?!driver\))\w+\)")
"""Where a task ran that was lost, on a cluster."""

_SPAWN_HELPER: Final = re.compile(r"Failed to exec spawn helper|jspawnhelper")
_PROGRAM_NOT_STARTED: Final = re.compile(
    r'Cannot run program "([^"]*)"(?: \(in directory "[^"]*"\))?: ([^\n]*)'
)
_WORKER_NOT_STARTED: Final = re.compile(r"Python worker (?:\S+ )*?to connect")
_WORKER_ENDED: Final = re.compile(
    r"Python worker (?:exited unexpectedly|process terminated|crashed)|"
    r"Python worker (?:\S+ )*has crashed|"
    r"python/worker.*exited with code|org\.apache\.spark\.api\.python\.\S*EOFException|"
    r"java\.io\.EOFException|port number from pyspark\.daemon|\bStream closed\b"
)
_SPOOL_DAMAGED: Final = re.compile(re.escape(DAMAGE_PREFIX) + r"[^\n]*")
_STATE_DAMAGED: Final = re.compile(r"the windows' state is damaged: [^\n]*")
_INPUT_FILE_REPLACED: Final = re.compile(r"input file: [^\n]* was replaced or cut short [^\n]*")
_PYTHON_FATAL: Final = re.compile(r"Fatal Python error: ([^\n]*)")
_PROCESSOR: Final = re.compile(r"streamer/components/processors/(\w+?)_?\.py")
_FILE_NOT_FOUND: Final = re.compile(r"FileNotFoundException|NoSuchFileException")
_MISSING_FILE: Final = re.compile(r"No such file or directory: b?['\"]([^'\"]+)")
_NEW_CHECKPOINT_ADVICE: Final = re.compile(
    r"use a new checkpoint location|delete the existing data in the checkpoint"
)
_STATE_STORE: Final = re.compile(r"CANNOT_LOAD_STATE_STORE|CANNOT_READ_STATE|StateStore|RocksDB")
_UNREADABLE_STATE: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|CHECKSUM_VERIFICATION_FAILED|MALFORMED_LOG_FILE|ChecksumException"
)
_STATE_FILE: Final = r"/[^\s,:;'\")\]}]+\.(?:changelog|zip|sst|delta)\b"
"""Of the state, below the checkpoint."""

_KAFKA_ERROR: Final = re.compile(r"org\.apache\.kafka\.(?:\w+\.)*(\w+?)(?:Exception)?: ([^\n]*)")
_STAGE_2: Final = re.compile(r"TransformWithState|State_?Store|stateful", re.I)
_PYTHON_ERROR: Final = re.compile(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit)): (.*)$", re.M
)
_JAVA_CAUSE: Final = re.compile(r"^Caused by: (?:[\w$.]+\.)?(\w+): ([^\n]+)", re.M)
_TRACE_LINE: Final = re.compile(
    r"^\s*(?:at \S+\(|File \".*\", line \d+|\.\.\. \d+ more|Traceback |Driver stacktrace:)"
)
_JAVA_CLASS: Final = re.compile(r"^(?:[a-z][\w$]*\.)+([A-Z]\w*(?:Exception|Error)): ")


class Diagnosis(NamedTuple):
    """A failure of a micro-batch.

    Attributes:
        text: what went wrong, in a line, and what to do where that is known.
        place: label and path of the component; empty when it is none's.
        is_permanent: whether the same again is likely to fail as well, as where what is kept is
            damaged.
        is_transient: whether the machine lacks what it may have again later: disk, descriptors,
            memory.
        worker_ended: whether a worker has ended, perhaps by the message that it had in hand.
        is_overloaded: whether the machine was too busy to begin, which says nothing about messages.
        is_abort: whether a processor has ended the stream on purpose.
    """

    text: str
    place: Labels = _NO_COMPONENT
    is_permanent: bool = False
    is_transient: bool = False
    worker_ended: bool = False
    is_overloaded: bool = False
    is_abort: bool = False


NO_DIAGNOSIS: Final = Diagnosis("")


class WaitingInputs:
    """Makes what inputs wait for the trouble of their stream, where it has no other one."""

    def __init__(self, place: Labels) -> None:
        """Take label and path of the input."""
        self._place = place
        self._before = ""

    def update(self, trouble: Diagnosis, now: str) -> Diagnosis:
        """Return the stream's trouble.

        Args:
            trouble: what it was.
            now: what the inputs wait for; empty for nothing.
        """
        current = NO_DIAGNOSIS if self._before and trouble.text == self._before else trouble
        self._before = now
        return Diagnosis(now, self._place) if now and not current.text else current


def diagnose(error: str, labels: EndpointLabels, checkpoint: str) -> Diagnosis:
    """Return the diagnosis of a failure of Spark's query.

    Args:
        error: all that Spark says.
        labels: where the ends of the stream stand.
        checkpoint: its directory.
    """
    # Behind the reason, Spark shows the query.
    error = error.partition("=== Streaming Query ===")[0]
    failure = ComponentFailure.from_error_text(error)
    if failure is not None:
        # A message that takes all memory ends its worker, or is told so in good time.
        worker_ended = failure.text.startswith("MemoryError")
        place = {"label": failure.label, "path": failure.path}
        if failure.is_abort:
            return Diagnosis(failure.text, place, is_abort=True)
        return Diagnosis(strip_crash_data(failure.text), place, worker_ended=worker_ended)
    if _NO_DESCRIPTORS.search(error):
        text = "the machine or the process has no file descriptors left: raise ulimit -n"
        return Diagnosis(text, labels.state, is_transient=True)
    if _NO_MEMORY.search(error):
        text = "the machine has no memory left for another process or thread"
        return Diagnosis(text, _stage_labels(error, labels), is_transient=True)
    if (match := _STATE_DAMAGED.search(error)) is not None:
        return Diagnosis(match[0], labels.state, is_permanent=True)
    if (match := _SPOOL_DAMAGED.search(error) or _INPUT_FILE_REPLACED.search(error)) is not None:
        return Diagnosis(match[0], labels.input, is_permanent=True)
    return (
        _diagnose_resources(error, labels, checkpoint)
        or _diagnose_checkpoint(error, labels, checkpoint)
        or _diagnose_worker(error, labels)
        or Diagnosis(root_cause_line(error))
    )


def _diagnose_resources(error: str, labels: EndpointLabels, checkpoint: str) -> Diagnosis | None:
    """Return what a failure comes to that is a lack of heap or disk; None when it is not."""
    if (match := _OOM.search(error)) is not None:
        more = f" ({match[1].strip()})" if match[1] else ""
        return Diagnosis(
            f"Spark's JVM has no memory left{more}: spark.conf.spark.driver.memory sets its heap",
            _stage_labels(error, labels),
        )
    if _DISK_FULL.search(error):
        executor = _REMOTE_EXECUTOR.search(error)
        worker = f"a disk of the worker {executor[1]} is full, or " if executor else ""
        text = f"{worker}the disk of the checkpoint {checkpoint} is full: make room there"
        return Diagnosis(text, labels.state, is_transient=True)
    return None


def _diagnose_checkpoint(error: str, labels: EndpointLabels, checkpoint: str) -> Diagnosis | None:
    """Return what a failure of the checkpoint, or of a program, comes to; None when it is not."""
    if _is_checkpoint_gone(error, checkpoint):
        text = f"the checkpoint {checkpoint} was removed or changed while the stream runs"
        return Diagnosis(f"{text}; restore it, or start again with another one", labels.state)
    # State is written and read with the help of processes, too, and is not damaged by this.
    if _SPAWN_HELPER.search(error):
        return Diagnosis(
            "Java can start no process any more: it was replaced while it ran, as by an upgrade; "
            "start the program again",
            _stage_labels(error, labels),
            is_permanent=True,
        )
    if (match := _PROGRAM_NOT_STARTED.search(error)) is not None:
        return Diagnosis(
            f"{match[1]} cannot be started: {match[2].strip()}", _stage_labels(error, labels)
        )
    # What is read from a file that ends too soon is an EOFException as well.
    if _UNREADABLE_STATE.search(error):
        file = re.search(re.escape(checkpoint) + _STATE_FILE, error)
        what = file[0] if file else f"the checkpoint {checkpoint}"
        return Diagnosis(
            f"what {what} holds cannot be read: {root_cause_line(error)}; if this persists, "
            f"restore the checkpoint from a backup, or start again with another one",
            labels.state,
            is_permanent=True,
        )
    return None


def _diagnose_worker(error: str, labels: EndpointLabels) -> Diagnosis | None:
    """Return what a failure of a Python worker, or of Kafka, comes to; None when it is not."""
    if _WORKER_NOT_STARTED.search(error):
        return Diagnosis(
            "a Python worker did not start in time: the machine has more to do than it can, or no "
            "memory left",
            _stage_labels(error, labels),
            is_transient=True,
            is_overloaded=True,
        )
    if _WORKER_ENDED.search(error):
        return Diagnosis(
            f"a Python worker ended ({_explain_worker_end(error)}): its work is repeated",
            _stage_labels(error, labels),
            worker_ended=True,
        )
    if (match := _KAFKA_ERROR.search(error)) is not None:
        return Diagnosis(f"Kafka: {match[2].strip()} ({match[1]})", labels.input)
    return None


def _explain_worker_end(error: str) -> str:
    """Return how a worker has ended, and in which processor, as far as that is known."""
    signal = _PYTHON_FATAL.search(error)
    if signal is None:
        return "killed, or out of memory"
    # Python writes down where it was, the innermost call first.
    where = _PROCESSOR.search(error, signal.end())
    return f"{signal[1].strip()}{f', in the processor {where[1]}' if where else ''}"


def _is_checkpoint_gone(error: str, checkpoint: str) -> bool:
    """Return whether files of the checkpoint are not where they were."""
    if _NEW_CHECKPOINT_ADVICE.search(error) is not None:
        return True
    missing = _MISSING_FILE.search(error)
    if missing is not None:
        return missing[1].startswith(checkpoint)
    return _FILE_NOT_FOUND.search(error) is not None and (
        checkpoint in error or bool(_STATE_STORE.search(error))
    )


def _stage_labels(error: str, labels: EndpointLabels) -> Labels:
    """Return the component that the first of those stands for which ran together."""
    if labels.buffer is None:
        return labels.input
    return labels.buffer if _STAGE_2.search(error) else labels.input


def root_cause_line(error: str) -> str:
    """Return the line of a text of Spark's that says most, without any trace."""
    for pattern in (_PYTHON_ERROR, _JAVA_CAUSE):
        # What Python says of an error of Java is that there was one.
        causes = [(name, text) for name, text in pattern.findall(error) if "Py4J" not in name]
        if causes:
            name, text = causes[-1]
            kind = name.rpartition(".")[2]
            return text.strip() if kind == "StreamerError" else f"{kind}: {text.strip()}"
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    lines = [line for line in lines if not _TRACE_LINE.match(line) and not line.startswith("at ")]
    return _JAVA_CLASS.sub(r"\1: ", lines[-1]) if lines else "no reason given"
