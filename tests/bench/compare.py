"""Windows of each traffic light in the product, and in what one would take instead of it.

Each reads the same files (or a topic with the same events), counts the different plates and sums up
the passengers of windows of ten seconds by event time that wait five seconds for what is late; all
answers are checked by the same oracle. A peer is run twice, on few events and on all: the
difference is what events cost, the first is what starting costs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench import answers, report, traffic
from tests.bench.compared.environments import python_of, version_of
from tests.bench.compared.peers import BY_NAME, PEERS, Job, Peer, topic_of
from tests.bench.compared.runs import Figures, Launch, Run, measure
from tests.bench.peers import lines_of
from tests.bench.windows.versus import sentinel

FEW = 20_000
FILES = 4
ORIGIN = 1_767_225_600
PACE = 20_000
"""Events in a second of event time: two hundred of each light in a window."""

HEAD = f"{'':22} {'events':>10} {'events/s':>10} {'CPU s/M':>8} {'MiB':>7} {'start s':>8}  answers"


def compare(work: Path, events: int, names: Sequence[str], master: str) -> None:
    """Run peers one after another; print a line for each.

    Args:
        work: a directory for files.
        events: how many; a slow peer gets fewer, since a rate is a rate.
        names: of the peers.
        master: Spark's.

    Raises:
        RuntimeError: the product's answers are wrong, or it does not run.
    """
    report.heading(f"compare: windows of 10 s of each light, {master}")
    few = _written(work / "few", FEW, 1)
    print(f"  {HEAD}", flush=True)
    for name in names:
        peer = BY_NAME[name]
        files = work / f"files-{name}"
        try:
            python = python_of(name, peer.requires)
            sets = few, _written(files, min(events, peer.most), FILES)
            line = _measured(peer, python, sets, work / name, master)
        except RuntimeError as e:
            if name == "streamer":
                raise
            line = f"{name:22} no figures: {e}"
        print(f"  {line}", flush=True)
        for directory in (work / name, files):
            shutil.rmtree(directory, ignore_errors=True)


def names_of(text: str) -> tuple[str, ...]:
    """Read names of peers, with commas between them.

    Raises:
        ValueError: there is no such peer.
    """
    found = tuple(text.split(","))
    if unknown := set(found) - set(BY_NAME):
        raise ValueError(
            f"there is no peer {', '.join(sorted(unknown))}; there are {', '.join(BY_NAME)}"
        )
    return found


NAMES = tuple(peer.name for peer in PEERS)


def _written(directory: Path, events: int, files: int) -> list[Path]:
    paths = traffic.write(directory, events, files, ORIGIN, PACE)
    # Spark and Pathway take the oldest file first.
    for number, path in enumerate(paths):
        os.utime(path, (ORIGIN + number, ORIGIN + number))
    return paths


def _measured(peer: Peer, python: Path, sets: Sequence[list[Path]], work: Path, master: str) -> str:
    called = f"{peer.name} {version_of(python, peer.package)}"
    runs, wrong = [], ""
    for number, paths in enumerate(sets):
        run, said = _run(peer, python, paths, work / str(number), master)
        runs.append(run)
        wrong = wrong or said
    if wrong and peer.name == "streamer":
        raise RuntimeError(f"the answers are wrong: {wrong}")
    found = Figures.of(*runs)
    memory = found.memory / 2**20
    return (
        f"{called:22} {runs[-1].events:10,} {found.rate:10,.0f} {found.cpu:8.1f} {memory:7,.0f} "
        f"{found.start:8.1f}  {wrong or 'all right'}"
    )


def _run(peer: Peer, python: Path, paths: list[Path], work: Path, master: str) -> tuple[Run, str]:
    """Run a peer once; return what was measured, and what is wrong with its answers."""
    work.mkdir(parents=True)
    want = answers.expected(answers.read(paths), 10, 10, closed="left")
    events = sum(1 for _ in lines_of(paths))
    files, last = paths[0].parent, paths[0].parent / "z-last.jsonl"
    (work / "kept").mkdir()
    with ExitStack() as until:
        if peer.watermark:
            until.callback(last.unlink)
            last.write_bytes(sentinel(paths[-1]))
        broker = until.enter_context(topic_of(files, work)) if peer.kafka else ""
        job = Job(files, work / "out.jsonl", work / "kept", python, master, broker)
        launch = peer.launch(job)
        run = measure(launch, events, len(want), work / "log.txt")
        return run, wrong_with(want, launch)


def wrong_with(want: answers.Answers, launch: Launch) -> str:
    """Return what is wrong with a peer's answers, or an empty text."""
    try:
        return answers.differences(want, answers.given(lines_of(launch.outputs())))
    except ValueError as e:
        return str(e)
