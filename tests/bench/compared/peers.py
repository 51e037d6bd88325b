"""The peers: what each is, what it requires, and how its job is started on a directory of files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.compared.runs import Launch
from tests.bench.peers import lines_of
from tests.bench.windows import jobs
from tests.servers.kafka import Broker, Kafka

_HERE = Path(__file__).parent
_TOPIC = "lights"


@dataclass(frozen=True)
class Job:
    """What a peer is to do.

    Attributes:
        files: a directory of files with events, in the order of their names.
        out: where its answers go.
        work: an empty directory for what it keeps meanwhile.
        python: that of its environment.
        master: Spark's.
        broker: the address of a broker that has the events; empty for those that read files.
    """

    files: Path
    out: Path
    work: Path
    python: Path
    master: str
    broker: str = ""


@dataclass(frozen=True)
class Peer:
    """A peer.

    Attributes:
        name: as it is called on the command line.
        package: of PyPI, whose version is told.
        requires: what its environment needs, as pip reads it.
        launch: says how its job is started.
        watermark: its windows close only when an event moves the watermark beyond them: it gets a
            last event that does.
        kafka: it reads a topic, not files.
        most: events that it gets, so that it is done in a minute on two cores.
    """

    name: str
    package: str
    requires: tuple[str, ...]
    launch: Callable[[Job], Launch]
    watermark: bool = False
    kafka: bool = False
    most: int = 4_000_000


def _streamer(job: Job) -> Launch:
    config = job.work / "config.yaml"
    buffer = jobs.lights("tumbling_window")
    text = jobs.from_files(job.files / "*.jsonl", buffer, jobs.LIGHT, job.out, job.master)
    config.write_text("http: {enabled: false}\n" + text)
    command = [sys.executable, "-m", "streamer.cli.main", "-c", str(config)]
    return Launch([*command, "--checkpoint", str(job.work / "checkpoint")], job.out)


def _pyspark(job: Job) -> Launch:
    out = job.out.with_suffix("")
    given = (job.master, str(job.files), str(out), str(job.work))
    return Launch([str(job.python), "-m", "tests.bench.compared.in_pyspark", *given], out)


def _bytewax(job: Job) -> Launch:
    job.out.touch()
    given = (str(job.files / "*.jsonl"), str(job.out))
    flow = f"tests.bench.compared.in_bytewax:flow{given}"
    return Launch([str(job.python), "-m", "bytewax.run", flow], job.out)


def _quix(job: Job) -> Launch:
    given = (job.broker, _TOPIC, str(job.work / "state"), str(job.out))
    script = str(_HERE / "in_quix.py")
    return Launch([str(job.python), script, *given], job.out, ends=False)


def _pathway(job: Job) -> Launch:
    script = str(_HERE / "in_pathway.py")
    given = (str(job.files), str(job.out))
    return Launch([str(job.python), script, *given], job.out, ends=False)


def _tenzir(job: Job) -> Launch:
    text = (_HERE / "in_tenzir.tql").read_text()
    pipeline = job.work / "pipeline.tql"
    pipeline.write_text(text.replace("DIRECTORY", str(job.files)).replace("OUT", str(job.out)))
    return Launch([str(job.python.parent / "tenzir"), "-f", str(pipeline)], job.out)


PEERS = (
    Peer("streamer", "spark-streamer", (), _streamer),
    Peer("pyspark", "pyspark", ("pyspark>=4.3.0,<4.4",), _pyspark, watermark=True),
    Peer(
        "bytewax", "bytewax", ("bytewax>=0.21,<0.22", "orjson>=3.10,<4"), _bytewax, most=1_000_000
    ),
    # It wants confluent-kafka below 2.13, and the product 2.16.
    Peer(
        "quix",
        "quixstreams",
        ("quixstreams>=3.28,<4",),
        _quix,
        watermark=True,
        kafka=True,
        most=300_000,
    ),
    # 1.6 GB with all that it requires.
    Peer("pathway", "pathway", ("pathway>=0.33,<0.34",), _pathway, watermark=True, most=1_000_000),
    # 1.1 GB; it requires exact versions of its own parts.
    Peer("tenzir", "tenzir", ("tenzir>=6.20,<7",), _tenzir),
)
BY_NAME = {peer.name: peer for peer in PEERS}


@contextmanager
def topic_of(files: Path, work: Path) -> Iterator[str]:
    """Run a broker whose topic has the events, by light, in one partition; give its address."""
    with Broker(work / "broker") as broker:
        client = broker.client()
        client.create(_TOPIC, 1)
        _produce(client, sorted(files.glob("*.jsonl")))
        yield broker.address()


def _produce(client: Kafka, paths: list[Path]) -> None:
    producer: Any = client.producer(linger_ms=50, batch_size=500_000)
    start = len('{"traffic_light":"')
    for line in lines_of(paths):
        while True:
            try:
                producer.produce(_TOPIC, line.rstrip(), key=line[start : start + 36])
                break
            except BufferError:
                producer.poll(0.05)
    if left := producer.flush(120):
        raise RuntimeError(f"the broker has not taken {left:,} events")
