"""`match_pattern`: finds steps that follow each other among the messages of a batch.

A small subset of SQL's MATCH_RECOGNIZE: `PATTERN (A X* B X* C) WITHIN … AFTER MATCH SKIP …`, with
relaxed contiguity as `followedBy` of Flink CEP has it. An attempt begins at a message that is the
first step. All ways that go on from it are followed at once, of those to one step the earliest:
what may still come is the same for each. So a match is found whenever there is one, and the one
that ends first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message
from streamer.core.timestamps import format_rfc3339, parse_event_time
from streamer.core.value import DELETED, NOTHING
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

STEPS: Final = "steps"
NAME: Final = "name"
CHECK: Final = "check"
NOT: Final = "not"
REPEAT: Final = "repeat"
WITHIN: Final = "within"
TIMESTAMP_MAPPING: Final = "timestamp_mapping"
KEY_MAPPING: Final = "key_mapping"
CONTIGUOUS: Final = "contiguous"
AFTER_MATCH: Final = "after_match"
EMIT: Final = "emit"


def _find_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    steps = parsed[STEPS]
    if len(steps) < 2:
        yield STEPS, f"has {len(steps)}; expected two steps at least"
    names = [step[NAME] for step in steps]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield STEPS, f"has several steps with the name {name!r}; expected a name for each"
    for step in steps[:1]:
        if step[NOT].strip():
            yield STEPS, f"has a not at {step[NAME]!r}, which is the first: nothing is before it"
    if parsed[WITHIN] is not None and parsed[WITHIN] <= 0:
        yield WITHIN, "is not longer than 0s; leave it out for any time"
    if parsed[WITHIN] is not None and not parsed[TIMESTAMP_MAPPING].strip():
        yield TIMESTAMP_MAPPING, "is needed for within, which is a time between messages"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "match_pattern",
    "Finds steps that follow each other among the messages of a batch: funnels, sequences.",
    description=(
        "A small subset of SQL's MATCH_RECOGNIZE. It processes one batch, such as that of a "
        "window: a `session_window` whose `gap` is `within` has all messages that may belong "
        "together. With a `timestamp_mapping` the messages are sorted by their times first, "
        "those of one time as they came.\n"
        "\n"
        "An attempt begins at each message that is the first step, and finds the match that "
        "ends first, if there is one. Other messages between the steps do not matter, unless "
        "`contiguous` is set, or the step's `not` is true for one of them. An attempt ends "
        "when the last step is found, when `within` has passed since the first, or at the end "
        "of the batch.\n"
        "\n"
        "Messages of this form replace the batch, with the metadata of the attempt's first "
        "message; without a match, the batch is dropped:\n"
        "\n"
        "```json\n"
        '{"complete":true,"reached":3,"key":"ann","start":"…","end":"…",\n'
        ' "steps":{"view":{…},"cart":{…},"pay":{…}},"counts":{"view":1,"cart":1,"pay":1}}\n'
        "```\n"
        "\n"
        "`reached` is how many steps were found, `steps` has the messages by step (an array "
        "for one with `repeat`), `counts` their number, and `start` and `end` the times of "
        "the first and the last. A check that fails is not true, and the failure is logged. A "
        "message without a valid time or key is marked as failed, and follows the others."
    ),
    status="beta",
    fields=(
        Field(
            STEPS,
            "object",
            "The steps, in order.",
            shape="array",
            examples=(
                [
                    {"name": "view", "check": 'this.event == "view"'},
                    {"name": "cart", "check": 'this.event == "cart"'},
                ],
            ),
            children=(
                Field(NAME, "string", "The step's name.", examples=("cart",), access=Access.NONE),
                Field(
                    CHECK,
                    "string",
                    "A Bloblang query that is true for a message that is this step.",
                    mapping=True,
                    examples=('this.event == "cart"',),
                ),
                Field(
                    NOT,
                    "string",
                    "A query that must not be true for any message between the step before and "
                    "this one.",
                    default="",
                    mapping=True,
                    examples=('this.event == "cancel"',),
                ),
                Field(
                    REPEAT,
                    "bool",
                    "True if the step may come several times (`+`): all until the next step.",
                    default=False,
                ),
            ),
        ),
        duration_field(
            WITHIN,
            "Maximum time between the first and the last step, inclusive; default is no limit.",
            optional=True,
            examples=("1h",),
        ),
        Field(
            TIMESTAMP_MAPPING,
            "string",
            "A mapping that returns a message's time, as that of a window does. Without it, the "
            "messages are taken as they come.",
            default="",
            mapping=True,
            examples=("root = this.ts",),
        ),
        Field(
            KEY_MAPPING,
            "string",
            "A mapping that returns a message's key (PARTITION BY): steps are looked for among the "
            "messages of one key. Not needed where windows have the key.",
            default="",
            mapping=True,
            examples=("root = this.user",),
        ),
        Field(
            CONTIGUOUS,
            "bool",
            "True if a step must be the very next message after the one before.",
            default=False,
        ),
        Field(
            AFTER_MATCH,
            "string",
            "Position of the search after a complete match: `skip_past_last`, behind its last "
            "message, so that matches have no message in common; or `skip_to_next`, at the "
            "message behind its first.",
            default="skip_past_last",
            options=("skip_past_last", "skip_to_next"),
        ),
        Field(
            EMIT,
            "string",
            "Output: `matches` (complete ones), `attempts` (complete and partial ones), or "
            "`furthest` (for each key and batch the attempt with the most steps, the earliest "
            "of several).",
            default="matches",
            options=("matches", "attempts", "furthest"),
        ),
    ),
    check=_find_problems,
    examples=(
        Example(
            "A funnel of three steps in an hour",
            "buffer:\n"
            "  session_window:\n"
            "    timestamp_mapping: root = this.ts\n"
            "    key_mapping: root = this.user\n"
            "    gap: 1h\n"
            "pipeline:\n"
            "  processors:\n"
            "    - match_pattern:\n"
            "        timestamp_mapping: root = this.ts\n"
            "        within: 1h\n"
            "        steps:\n"
            "          - name: view\n"
            '            check: this.event == "view"\n'
            "          - name: cart\n"
            '            check: this.event == "cart"\n'
            "          - name: pay\n"
            '            check: this.event == "pay"\n'
            '            not: this.event == "cancel"\n'
            "        emit: furthest\n",
        ),
    ),
    categories=("Composition",),
)


class _Step(NamedTuple):
    name: str
    check: Mapping
    excluded: Mapping | None
    repeats: bool


class _Row(NamedTuple):
    """A message with its time, ns; None without a `timestamp_mapping`."""

    message: Message
    time: int | None


@dataclass(slots=True)
class _Attempt:
    """Rows that were found, by step.

    Attributes:
        first: the place of its first row.
        last: the place of its last row.
        rows_by_step: the rows of each step that was reached.
        is_complete: whether all steps were.
    """

    first: int
    last: int
    rows_by_step: list[list[_Row]]
    is_complete: bool = False

    def with_step(self, row: _Row, place: int) -> _Attempt:
        """Return the attempt with a row of one more step."""
        rows_by_step = [*(list(rows) for rows in self.rows_by_step), [row]]
        return _Attempt(self.first, place, rows_by_step)


class _Checks:
    """Evaluates checks for the rows of one key, each once."""

    def __init__(self, rows: Sequence[_Row], origin: ComponentRef, ex: Execution) -> None:
        self._batches = [[row.message] for row in rows]
        self._origin, self._ex = origin, ex
        self._known: dict[tuple[int, int], bool] = {}

    def is_true(self, check: Mapping, place: int) -> bool:
        """Return whether a check is true for the row at a place."""
        key = id(check), place
        known = self._known.get(key)
        if known is None:
            try:
                known = query_bool(check, self._batches[place], 0, self._ex)
            except MessageError as error:
                self._origin.log(self._ex, "ERROR", f"A step's check failed: {error}")
                known = False
            self._known[key] = known
        return known


class MatchPatternProcessor:
    """Puts what was found in the place of a batch."""

    def __init__(self, parsed: ParsedFields, origin: ComponentRef) -> None:
        """Compile the mappings."""
        self._steps = [
            _Step(
                step[NAME],
                compile_mapping(step[CHECK]),
                compile_mapping(step[NOT]) if step[NOT].strip() else None,
                step[REPEAT],
            )
            for step in parsed[STEPS]
        ]
        self._within: int | None = parsed[WITHIN]
        self._time = _compile_optional(parsed[TIMESTAMP_MAPPING])
        self._key = _compile_optional(parsed[KEY_MAPPING])
        self._contiguous: bool = parsed[CONTIGUOUS]
        self._skips_match = parsed[AFTER_MATCH].lower() == "skip_past_last"
        self._emit: str = parsed[EMIT].lower()
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return a batch of what was found, and of the messages that failed."""
        groups: dict[bytes, tuple[Any, list[_Row]]] = {}
        failed: Batch = []
        for message in batch:
            try:
                row, key = self._read_row(message, ex)
            except (MessageError, ValueError) as error:
                failed.append(self._origin.fail(message, str(error), ex))
                continue
            groups.setdefault(dump_json(key), (key, []))[1].append(row)
        made = [
            self._to_message(attempt, key, rows)
            for key, rows in groups.values()
            for attempt in self._choose(self._sort(rows), ex)
        ]
        made += failed
        return [made] if made else []

    def _read_row(self, message: Message, ex: Execution) -> tuple[_Row, Any]:
        alone = [message]
        time = None
        if self._time is not None:
            time = parse_event_time(self._time.query(alone, 0, ex))
        key = None if self._key is None else self._key.query(alone, 0, ex)
        if key is DELETED or key is NOTHING:
            raise MessageError("key_mapping gives no key")
        return _Row(message, time), key

    def _sort(self, rows: list[_Row]) -> list[_Row]:
        if self._time is not None:
            rows.sort(key=lambda row: row.time or 0)
        return rows

    def _choose(self, rows: Sequence[_Row], ex: Execution) -> list[_Attempt]:
        attempts = list(self._find_attempts(rows, ex))
        if self._emit == "matches":
            return [one for one in attempts if one.is_complete]
        if self._emit == "furthest":
            return [max(attempts, key=lambda one: len(one.rows_by_step))] if attempts else []
        return attempts

    def _find_attempts(self, rows: Sequence[_Row], ex: Execution) -> Iterator[_Attempt]:
        checks = _Checks(rows, self._origin, ex)
        place = 0
        while place < len(rows):
            if not checks.is_true(self._steps[0].check, place):
                place += 1
                continue
            attempt = self._follow(rows, place, checks)
            yield attempt
            past_last = attempt.is_complete and self._skips_match
            place = attempt.last + 1 if past_last else place + 1

    def _follow(self, rows: Sequence[_Row], first: int, checks: _Checks) -> _Attempt:
        """Return the match that ends first of those that begin at a row, or what got the furthest.

        Args:
            rows: of one key, in order.
            first: the place of the row, which is the first step.
            checks: asks checks of rows.
        """
        begin, count = rows[first].time, len(self._steps)
        furthest = _Attempt(first, first, [[rows[first]]])
        # By the number of steps: the attempt that waits for the next one.
        waiting = {1: furthest}
        for place in range(first + 1, len(rows)):
            row = rows[place]
            if self._within is not None and (row.time or 0) - (begin or 0) > self._within:
                break
            for reached in sorted(waiting, reverse=True):
                self._take_row(waiting, reached, row, place, checks)
            if not waiting:
                break
            if len(waiting[max(waiting)].rows_by_step) > len(furthest.rows_by_step):
                furthest = waiting[max(waiting)]
            if count in waiting and not self._steps[-1].repeats:
                break
        furthest.is_complete = len(furthest.rows_by_step) == count
        return furthest

    def _take_row(
        self, waiting: dict[int, _Attempt], reached: int, row: _Row, place: int, checks: _Checks
    ) -> None:
        """Let the attempt that has reached so many steps see a row."""
        attempt = waiting[reached]
        if reached < len(self._steps):
            step = self._steps[reached]
            if checks.is_true(step.check, place):
                waiting.setdefault(reached + 1, attempt.with_step(row, place))
                if self._contiguous:
                    del waiting[reached]
                return
        repeated = self._steps[reached - 1]
        if repeated.repeats and checks.is_true(repeated.check, place):
            attempt.rows_by_step[-1].append(row)
            attempt.last = place
        elif self._contiguous or (
            reached < len(self._steps)
            and step.excluded is not None
            and checks.is_true(step.excluded, place)
        ):
            del waiting[reached]

    def _to_message(self, attempt: _Attempt, key: Any, rows: Sequence[_Row]) -> Message:
        named = list(zip(self._steps, attempt.rows_by_step, strict=False))
        document: dict[str, Any] = {
            "complete": attempt.is_complete,
            "reached": len(attempt.rows_by_step),
            "steps": {
                step.name: [_content(row) for row in some] if step.repeats else _content(some[0])
                for step, some in named
            },
            "counts": {step.name: len(some) for step, some in named},
        }
        if self._key is not None:
            document["key"] = key
        first, last = rows[attempt.first], rows[attempt.last]
        if first.time is not None and last.time is not None:
            document["start"] = format_rfc3339(first.time)
            document["end"] = format_rfc3339(last.time)
        return first.message.with_doc(document)


def _content(row: _Row) -> Any:
    try:
        return row.message.doc
    except MessageError:
        return row.message.raw.decode("utf-8", "replace")


def _compile_optional(text: str) -> Mapping | None:
    return compile_mapping(text) if text.strip() else None


def build(parsed: ParsedFields, context: BuildContext) -> MatchPatternProcessor:
    """Take the steps."""
    return MatchPatternProcessor(parsed, ComponentRef(context.component))
