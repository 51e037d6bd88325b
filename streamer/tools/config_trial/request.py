"""A trial that is asked for: a config, messages, and what a process needs to run its tests.

Requests are pickled, and go only from the program that bounds a trial to the process that runs it;
plain JSON comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from streamer.config import Config
from streamer.config.resources import ResourceText
from streamer.core.permissions import Permissions

TrialKind = Literal["tests", "timeline", "tap", "dry-run"]

MAX_MESSAGES: Final[dict[TrialKind, int]] = {"timeline": 300, "tap": 100}
"""How many messages are taken; those after them are left out."""


@dataclass(frozen=True)
class UnitTestTexts:
    """The texts that unit tests are read from, since a trial may not be allowed to open files.

    Attributes:
        name: the config's file name, by which tests may refer to it.
        text: the config's text.
        definitions: texts of the files of tests beside it, by file name.
        directory: where files begin that tests name; empty where they may name none.
        resources: further resources.
        templates: paths of the service's templates.
    """

    name: str
    text: str
    definitions: dict[str, str] = field(default_factory=dict)
    directory: str = ""
    resources: tuple[ResourceText, ...] = ()
    templates: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrialRequest:
    """A trial.

    Attributes:
        kind: what is run.
        config: the config, which was read by the rules that hold for whoever sent it.
        permissions: what the config may do; they hold in the whole process.
        messages: what comes in; empty lets `tap` read a `generate` input.
        clock: `timeline`: when the first message arrives, Unix ns; None for its event time.
        step: `timeline`: ns from one message to the next; None for their event times.
        buffer: `timeline`: the label of the buffer that is shown; empty for the first one.
        tests: `tests`: what they are read from.
    """

    kind: TrialKind
    config: Config
    permissions: Permissions
    messages: tuple[bytes, ...] = ()
    clock: int | None = None
    step: int | None = None
    buffer: str = ""
    tests: UnitTestTexts | None = None
