"""Mappings against hand-written Python: ratios, rate on one core, compile and load time.

All are run in this process on the same bytes, turn and turn about, parsing and serialising
included: the generated code, between the product's own reading and writing of JSON; the function
written by hand, over plain orjson; the same function between the product's reading and writing,
which is what it takes to keep the spelling of every number in every document, as Benthos does; and,
beside them, the `mapping` processor fed as a stream feeds it, messages and metadata included.
CPU time, of which a loaded machine takes less than of the clock.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from streamer.bloblang import compile_mapping
from streamer.components.processors.mapping import MappingProcessor
from streamer.core.execution import Execution
from streamer.core.json.bulk import choose_parser
from streamer.core.json.dump import dump_json_each
from streamer.engine.stage.task_input import run_chunk
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.spec import Kind, ParsedComponent
from tests.bench import report
from tests.bench.mapping_cases import CASES, Case

Run = Callable[[list[bytes]], list[bytes]]

_PIECE = 64  # as a stream has it
_SIMPLE = """root.id = this.id
root.name = this.name.uppercase()
root.enough = this.stock > 200
"""
LINES = """let created = this.created.ts_parse("2006-01-02T15:04:05Z07:00")
root.id = this.id
root.at = $created.ts_unix()
root.name = this.name.uppercase()
root.total = this.price * this.quantity
root.taxed = (this.price * this.quantity * 1.19).round()
root.kind = match this.kind { "a" => "first", "b" => "second", _ => "other" }
root.tags = this.tags.map_each(tag -> tag.lowercase()).filter(tag -> tag != "")
root.first = this.tags.index(0) | "none"
root.user.name = this.user.name.catch("anonymous")
root.user.mail = this.user.mail.lowercase().trim()
root.high = this.readings.filter(r -> r.v > 50 && r.id != 7).map_each(r -> r.v * 2)
root.level = if this.score > 0.9 { "high" } else if this.score > 0.5 { "mid" } else { "low" }
root.address = {"street": this.street, "city": this.city.or("unknown"), "zip": this.zip}
root.path = this.url.split("/").slice(3).join("/")
root.ip = this.message.re_find_object("^(?P<ip>[0-9.]+) ").ip
meta topic = "orders-" + this.region
root.internal = deleted()
root.count = this.tags.length() + this.readings.length()
root.text = "%s has %v".format(this.name, this.count)
"""
_LOAD = """
import time
from streamer.bloblang import parser
began = time.process_time()
parser.parse_mapping("root = this")
print(time.process_time() - began)
"""


def product(mapping: str) -> Run:
    """Return a function that runs a mapping on payloads the way a stream does."""
    origin = ComponentRef(ParsedComponent(Kind.PROCESSOR, "mapping"))
    processor = MappingProcessor(compile_mapping(mapping), origin)
    ex = Execution(time.time_ns)

    def run(raws: list[bytes]) -> list[bytes]:
        made = run_chunk([processor], RawMessages(raws, {}), ex, written=True)
        return [message.raw for batch in made for message in batch]

    return run


def generated(mapping: str) -> Run:
    """Return a function that runs a mapping's generated code on payloads, without messages."""
    run = compile_mapping(mapping).doc_fn
    if run is None:
        raise RuntimeError("the mapping looks at more than the document")
    return exactly(run)


def exactly(run: Callable[[Any], Any]) -> Run:
    """Return a function that runs one of documents on payloads, read and written exactly."""

    def every(raws: list[bytes]) -> list[bytes]:
        made: list[bytes] = []
        for start in range(0, len(raws), _PIECE):
            piece = raws[start : start + _PIECE]
            parse = choose_parser(piece)
            made += dump_json_each([run(parse(raw)) for raw in piece])
        return made

    return every


def plainly(run: Callable[[Any], Any]) -> Run:
    """Return a function that runs one of documents on payloads, between orjson and nothing else."""
    loads, dumps, sort = orjson.loads, orjson.dumps, orjson.OPT_SORT_KEYS
    return lambda raws: [dumps(run(loads(raw)), None, sort) for raw in raws]


def _seconds(run: Run, raws: list[bytes]) -> float:
    began = time.process_time()
    run(raws)
    return time.process_time() - began


def _case(case: Case, rounds: int, count: int) -> None:
    raws = case.documents(count)
    sides = {
        "generated": generated(case.mapping),
        "by hand": plainly(case.by_hand),
        "by hand, exactly": exactly(case.by_hand),
        "processor": product(case.mapping),
    }
    if len({tuple(run(raws)) for run in sides.values()}) > 1:
        raise RuntimeError(f"{case.name}: the mapping's result is not that of the hand-written one")
    took: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        names = list(sides)
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            took[name].append(_seconds(sides[name], raws) * 1e6 / count)

    def ratios(ours: str, theirs: str) -> list[float]:
        return [a / b for a, b in zip(took[ours], took[theirs], strict=True)]

    plain, exact = (ratios("generated", peer) for peer in ("by hand", "by hand, exactly"))
    report.figure(case.name, median(plain), "× by hand", most=1.5)
    report.figure("  where numbers keep their spelling", median(exact), "× by hand")
    report.note(
        f"smallest {min(plain):.2f} and {min(exact):.2f}; the processor "
        f"{median(ratios('processor', 'by hand')):.2f} times the former"
    )
    best = ", ".join(f"{name} {min(times):.2f}" for name, times in took.items())
    report.note(f"best, µs: {best}; {sum(map(len, raws)) / count:.0f} bytes")


def _rate(rounds: int, count: int) -> None:
    raws = CASES[1].documents(count)
    mapped = product(_SIMPLE)
    mapped(raws)
    rates = [count / _seconds(mapped, raws) for _ in range(rounds)]
    report.figure("simple mappings on one core, best", max(rates), "/s", least=250_000)
    report.note(f"median {median(rates):,.0f}/s; {len(_SIMPLE.splitlines())} lines, parsed, dumped")


def _compile(rounds: int) -> None:
    compile_mapping(LINES)
    took = []
    for turn in range(rounds):
        began = time.process_time()
        compile_mapping(f"{LINES}# {turn}\n")
        took.append(time.process_time() - began)
    report.figure("compiling 20 lines, median", median(took) * 1000, "ms", most=5)
    report.note(f"best {min(took) * 1000:.2f} ms, parser loaded")


def _load(rounds: int) -> None:
    root = Path(__file__).parents[2]
    took = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", _LOAD], cwd=root, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"the parser could not be loaded: {done.stderr}")
        took.append(float(done.stdout))
    report.figure("loading the parser, first line read, median", median(took) * 1000, "ms", most=60)
    report.note(f"best {min(took) * 1000:.1f} ms, each in a new process, tables from the package")


def mappings(rounds: int = 15, count: int = 3_000) -> None:
    """Measure and print everything about mappings.

    Raises:
        RuntimeError: a mapping's result is not that of the hand-written function.
    """
    report.heading("Mappings against hand-written Python over orjson")
    gc.collect()
    gc.set_threshold(200_000, 50, 100)  # as the workers do
    for case in CASES:
        _case(case, rounds, count)
    _rate(rounds, count)
    _compile(rounds)
    _load(5)


if __name__ == "__main__":
    mappings()
