"""The configs of `configs/` as streams of a service: fed with what their own tests send.

What the tests of a config send to its windows stands in files, which the config reads to their end
in place of its standard input. Configs whose windows go by the clock on the wall get cars as they
come, of which plain arithmetic knows what must come out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.docs.cookbook_index import PEERS

CONFIGS = Path(__file__).parents[2] / "configs"
NUMBER = 500
"""Messages that are made for a config whose windows go by the clock."""

# What is made each 10 ms, so that it goes over the end of a window.
_GENERATED = """input:
  generate:
    interval: 10ms
    count: %d
    mapping: |
      let n = count("n") - 1
      root = %s
"""
_CAR = """{
        "traffic_light": "light-" + ($n %% 5).string(),
        "created_at": now(),
        "registration_plate": "AB" + $n.string(),
        "passengers": $n %% 4,
      }""".replace("%%", "%")
_READING = """{
        "sensor": "sensor-" + ($n % 10).string(),
        "measured_at": (timestamp_unix_milli() - $n * 37 % 10000) / 1000,
        "celsius": $n % 40,
      }"""
CLOCKED = {
    "traffic_light": _CAR,
    "traffic_light_hourly": _CAR,
    "benthos_traffic_lights": _CAR,
    "sliding": _CAR,
    "event_time_late": _READING,
}
"""Configs whose windows go by the clock, and the mapping of what they get."""
KAFKA = "kafka_traffic_lights"
POSTS = "tenzir_alerts"

_INPUT = re.compile(r"^input:\n(?: .*\n|\n)+", re.MULTILINE)


class _Loader(yaml.SafeLoader):
    """Times stay texts, as they do in a config."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in some if not tag.endswith(":timestamp")]
    for first, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Recipe:
    """A config, and what it is fed with.

    Attributes:
        name: the config's, and the number of the test whose messages these are.
        config: the config's name.
        text: the config without its tests.
        sent: the lines of each input, by its label; of the only one by "".
        environment: the variables that the test sets.
    """

    name: str
    config: str
    text: str
    sent: dict[str, list[str]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def stream(self, directory: Path, shards: int) -> str:
        """Return it as the config of a stream that reads and writes files of a directory.

        Args:
            directory: gets the input's files, and the output's.
            shards: of the windows.
        """
        text = self.text
        if self.config in CLOCKED:
            made = _GENERATED % (NUMBER, CLOCKED[self.config])
            text = made + _INPUT.sub("", text)
            # What is open when the last message is there comes out at once.
            text = re.sub(r"(  system_window:\n)", r"\1    end_of_input: flush\n", text)
        for label, lines in self.sent.items():
            path = directory / f"{self.name}-{label}.in"
            path.write_text("".join(f"{line}\n" for line in lines))
            if label:
                text = text.replace(f"{label.removeprefix('new_')}.jsonl", str(path))
            text = text.replace("stdin: {}", f"file: {{ paths: [{path}] }}")
            if not re.search("^input:", text, re.MULTILINE):
                text = f"input: {{ file: {{ paths: [{path}] }} }}\n{text}"
        text = text.replace("./late_orders.jsonl", str(directory / f"{self.name}-late.out"))
        file = f"file: {{ path: {directory / self.name}.out, codec: lines }}"
        text = text.replace("stdout: {}", file)
        if not re.search("^output:", text, re.MULTILINE):
            text += f"\noutput: {{ {file} }}\n"
        return f"{text}\nspark: {{ shards: {shards} }}\n"


def recipes() -> Iterator[Recipe]:
    """Return every config that is there, once for each of its tests that run a stream."""
    for path in sorted([*CONFIGS.glob("*.yaml"), *CONFIGS.glob("recipes/*.yaml")]):
        name = path.stem
        if name.endswith("_streamer_test") or (path.parent != CONFIGS and not _is_of_a_peer(name)):
            continue  # Jobs have oracles of their own: tests/jobs.
        text = path.read_text()
        bare = re.split("^tests:", text, maxsplit=1, flags=re.MULTILINE)[0]
        if name in CLOCKED:
            yield Recipe(name, name, bare)
            continue
        cases = yaml.load(text, _Loader)["tests"]
        for number, case in enumerate(one for one in cases if one.get("target") == "stream"):
            environment = {key: str(value) for key, value in case.get("environment", {}).items()}
            yield Recipe(f"{name}-{number}", name, bare, dict(_sent(case)), environment)


def _is_of_a_peer(name: str) -> bool:
    return name.partition("_")[0] in PEERS


def _sent(case: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    messages = [message for step in case["steps"] for message in step.get("send", ())]
    labels = dict.fromkeys(message.get("input", "") for message in messages)
    for label in labels:
        mine = [one for one in messages if one.get("input", "") == label]
        yield (
            label,
            [
                one["content"] if "content" in one else json.dumps(one["json_content"])
                for one in mine
            ],
        )
