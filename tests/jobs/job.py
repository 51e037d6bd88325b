"""What a job is, and how it is run: the program as a process, files in, a file out, kill -9."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.faults.program import program
from tests.jobs.small_batches import LIMIT_VARIABLE

RECIPES = Path(__file__).parents[2] / "configs" / "recipes"
EVENTS = 100_000
_TIMEOUT_S = 300
_MICRO_BATCHES = 10
_ENDED = "The input has ended"

Event = dict[str, Any]
Inputs = Mapping[str, Sequence[Event]]
"""Events in the order of arrival, by the name of the file that has them."""


@dataclass(frozen=True)
class Job:
    """A job: what goes in, and what must come out.

    Attributes:
        recipe: name of the config in `configs/recipes`.
        make_inputs: makes events from a random number generator and a number of events.
        expect: an oracle in plain Python: the messages that must come out, each as often as it
            occurs, in any order.
        settings: options of the command line that replace the recipe's inputs and outputs; `{in}`
            is the directory of the input files, `{out}` that of the output.
        read: reads what has come out of the directory of the output; lines of `out.jsonl` if left
            out.
        project: what is compared of a message that came out; all of it if left out.
        prepare: writes what else the job needs into the directory of the inputs.
        environment: variables of the program; `{in}` and `{out}` as in `settings`.
        serve: runs what the job needs besides, until its output has been read; gets the directory
            of the output, gives more variables of the program.
        kills: whether the program is killed in the middle, and started again.
    """

    recipe: str
    make_inputs: Callable[[random.Random, int], Inputs]
    expect: Callable[[Inputs], Sequence[Any]]
    settings: Sequence[str] = ("input.file.paths={in}/*.jsonl", "output.file.path={out}/out.jsonl")
    read: Callable[[Path], list[Any]] | None = None
    project: Callable[[Any], Any] = lambda message: message
    prepare: Callable[[Path], None] = lambda directory: None
    environment: Mapping[str, str] = field(default_factory=dict)
    serve: Callable[[Path], AbstractContextManager[Mapping[str, str]]] = lambda directory: (
        nullcontext({})
    )
    kills: bool = True

    @property
    def path(self) -> Path:
        """The recipe's file."""
        return RECIPES / f"{self.recipe}.yaml"


def read_file_instead(recipe: str, file: str, *path: str | int) -> str:
    """Return a setting by which a recipe's input reads a file, with its label and processors.

    Args:
        recipe: name of the recipe.
        file: the file, `{in}` in it as in `Job.settings`.
        path: where the input stands, `"input", "broker", "inputs", 0` for example; `"input"` if
            left out.
    """
    where = path or ("input",)
    found = yaml.safe_load((RECIPES / f"{recipe}.yaml").read_text())
    for part in where:
        found = found[part]
    kept = {name: found[name] for name in ("label", "processors") if name in found}
    return f"{'.'.join(map(str, where))}={json.dumps({'file': {'paths': [file]}, **kept})}"


def run_job(
    job: Job, directory: Path, seed: int, events: int = EVENTS, more: Sequence[str] = ()
) -> None:
    """Run a job and hold what came out against its oracle.

    Args:
        job: the job.
        directory: an empty directory for its files.
        seed: decides the events and when the program is killed.
        events: about how many events.
        more: options of the command line besides, such as the cluster to run on.

    Raises:
        AssertionError: something else came out; the text has the first differences.
    """
    rng = random.Random(f"{job.recipe} {seed}")
    inputs = job.make_inputs(rng, events)
    source, target = directory / "in", directory / "out"
    source.mkdir()
    target.mkdir()
    for name, some in inputs.items():
        with (source / f"{name}.jsonl").open("w") as file:
            file.writelines(json.dumps(event) + "\n" for event in some)
    job.prepare(source)
    read = job.read or _read_lines
    with job.serve(target) as environment:
        began = time.monotonic()
        kills = _run(job, directory, {**job.environment, **environment}, rng, more)
        seconds = time.monotonic() - began
        found = Counter(_canonical(job.project(one)) for one in read(target))
    wanted = Counter(_canonical(one) for one in job.expect(inputs))
    sent = sum(len(some) for some in inputs.values())
    print(f"{job.recipe}: {sent} events, {wanted.total()} messages, {kills} kills, {seconds:.1f} s")
    assert wanted, "the oracle expects nothing"
    missing, extra = wanted - found, found - wanted
    assert not missing and not extra, (
        f"{missing.total()} of {wanted.total()} messages are missing, {extra.total()} are too many:"
        f"\nmissing {sorted(missing)[:5]}\nextra {sorted(extra)[:5]}"
    )


def _run(
    job: Job,
    directory: Path,
    variables: Mapping[str, str],
    rng: random.Random,
    more: Sequence[str],
) -> int:
    """Run the program to its end, killed once on the way if the job wants it; return the kills."""

    def name_paths(text: str) -> str:
        return text.replace("{in}", f"{directory}/in").replace("{out}", f"{directory}/out")

    options = [text for setting in job.settings for text in ("-s", name_paths(setting))]
    environment = {name: name_paths(text) for name, text in variables.items()}
    size = sum(path.stat().st_size for path in (directory / "in").glob("*.jsonl"))
    environment[LIMIT_VARIABLE] = str(size // _MICRO_BATCHES)
    checkpoint = directory / "checkpoint" / "state"

    def start() -> Any:
        return program(
            job.path,
            checkpoint,
            *options,
            *more,
            before=(sys.executable, "-m", "tests.jobs.small_batches"),
            env=environment,
        )

    kills = 0
    if job.kills:
        with start() as running:
            enough = rng.randrange(1, _MICRO_BATCHES // 2)
            running.wait_for(
                lambda: running.process.poll() is not None or _count_commits(checkpoint) >= enough,
                _TIMEOUT_S,
                "for micro-batches",
            )
            time.sleep(rng.uniform(0, 0.7))
            # A run that has ended is not gone on with: the next one would begin anew.
            if any(_ENDED in message for message in running.messages()):
                assert running.finish(_TIMEOUT_S) == 0
            else:
                running.kill()
                kills = 1
    if kills or not job.kills:
        with start() as running:
            code = running.finish(_TIMEOUT_S)
            assert code == 0, "\n".join(running.messages()[-30:])
    return kills


def _count_commits(checkpoint: Path) -> int:
    """Return how many micro-batches are committed."""
    # Not of the whole tree: other directories come and go while the program starts.
    return sum(1 for path in checkpoint.glob("spark*/commits/*") if path.name.isdecimal())


def _read_lines(directory: Path) -> list[Any]:
    return [json.loads(line) for line in (directory / "out.jsonl").read_bytes().splitlines()]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
