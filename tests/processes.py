"""Which processes run, who began them, and what they are: from /proc."""

from __future__ import annotations

from pathlib import Path

_ENDED = "ZX"


def runs(pid: int) -> bool:
    """Tell whether there is such a process, and it has not ended.

    One that has ended stays until its parent asks how. What Spark's scripts began before they
    became a worker stays as long as that: Java knows nothing of it.
    """
    return _state(pid)[0] not in _ENDED


def parent(pid: int) -> int:
    """Return the process id of a process's parent; 0 when it is gone."""
    return _state(pid)[1]


def command(pid: int) -> str:
    """Return the words of a process's command, with a blank between; "" when it has ended."""
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid: int) -> list[int]:
    """Return the process ids of a process's children that run."""
    return [one for one, above in _parents().items() if above == pid]


def descendants(root: int) -> set[int]:
    """Return a process and all that it has started, directly or not, and that still run."""
    parents = _parents()
    ours = {root}
    while more := {pid for pid, above in parents.items() if above in ours} - ours:
        ours |= more
    return ours


def python_workers(program: int) -> list[int]:
    """Return the process ids of the Python workers of a program's tasks.

    A worker is forked by a daemon. The daemon is Spark's child, or is forked itself, from the
    process that has imported all (`streamer.spark.fork_server.fork_server`); forks keep that one's
    command.
    """
    commands = {one: command(one) for one in descendants(program)}
    daemons = {
        one
        for one, text in commands.items()
        if "spark.daemon" in text and "fork_client" not in text
    }
    forked = {
        one for one, text in commands.items() if "streamer.spark.fork_server.fork_server" in text
    }
    return [
        one
        for one in commands
        if parent(one) in daemons
        or (one in forked and parent(one) in forked and parent(parent(one)) in forked)
    ]


def _parents() -> dict[int, int]:
    """Return the parent of each process that runs."""
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    states = {pid: _state(pid) for pid in pids}
    return {pid: above for pid, (state, above) in states.items() if state not in _ENDED}


def _state(pid: int) -> tuple[str, int]:
    """Return the letter of a process's state, X when it is gone, and its parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    state, above = text.rpartition(")")[2].split()[:2]  # a command may hold blanks
    return state, int(above)
