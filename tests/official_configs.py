"""Count how many configs of a directory lint clean, and what the others lack.

For the examples and tests of Redpanda Connect, which are not part of this repository:

    python -m tests.official_configs connect/config/examples connect/config/test
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from streamer.core.errors import Lint
from streamer.sdk.spec import Kind
from streamer.tools.migration.review import Review, count_missing, review_config

_RESOURCES: Final = {"set_grab_cache.yaml": "resources.yaml"}
"""Files that run with `-r` and another one beside them."""


class ConfigCount(NamedTuple):
    """The count.

    Attributes:
        clean: files that run unchanged.
        lacking: those that lack components.
        broken: those with other findings.
    """

    clean: list[Review]
    lacking: list[Review]
    broken: list[Review]

    @property
    def total(self) -> int:
        """The number of all files."""
        return len(self.clean) + len(self.lacking) + len(self.broken)


def count_configs(directories: Sequence[Path]) -> ConfigCount:
    """Return the count of the configs and definitions of tests below directories."""
    count = ConfigCount([], [], [])
    for path in sorted(path for one in directories for path in one.rglob("*.y*ml")):
        named = _RESOURCES.get(path.name)
        resources = [str(path.with_name(named))] if named else []
        review = review_config(str(path), {}, resources)
        group = count.broken if review.findings else count.clean
        if review.missing:
            group = count.lacking
        group.append(review)
    return count


def describe_count(count: ConfigCount) -> Iterator[str]:
    """Return lines of text: the sum, the missing components, and other findings."""
    yield f"{len(count.clean)} of {count.total} lint clean"
    for (kind, name), files in count_missing(count.lacking):
        yield f"{files} lack {_describe_component(kind, name)}"
    for review in count.broken:
        yield f"{review.file}: {_describe_finding(review.findings[0])}"


def _describe_component(kind: Kind, name: str) -> str:
    return f"{kind} {name}"


def _describe_finding(lint: Lint) -> str:
    return f"{lint.line}: {lint.message} [{lint.code}]"


if __name__ == "__main__":
    print(*describe_count(count_configs([Path(one) for one in sys.argv[1:]])), sep="\n")
