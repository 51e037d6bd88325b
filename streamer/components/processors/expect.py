"""`expect`: checks messages and batches by named expectations, and counts how many pass and fail.

Delta Live Tables' expectations, the tests of dbt and the expectations of Great Expectations have
this use; the names of fields are theirs where they have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.connectors.expectations.expectation import (
    FAILED_NAMES,
    Expectation,
    ExpectationChecker,
    OnFail,
)
from streamer.connectors.expectations.fields import (
    ACCEPTED_VALUES,
    BATCH,
    CHECK,
    COUNT,
    EXPECTATIONS,
    GROUP,
    HISTORY,
    MAX,
    MAX_RATIO,
    MEASURE,
    MESSAGE,
    MIN,
    MIN_PASS_RATE,
    MIN_RATIO,
    MIN_WINDOWS,
    NAME,
    NOT_NULL,
    ON_FAIL,
    PATTERN,
    PER,
    SCHEMA,
    SCHEMA_PROCESSORS,
    STATISTIC,
    UNIQUE,
    VALUE,
    WINDOW,
    WINDOWS,
    describe_expectations,
    find_name_problem,
    find_number_problem,
    find_problems,
    find_rate_problem,
    find_windows_problem,
    is_per_message,
)
from streamer.connectors.expectations.history import STATISTICS, History
from streamer.connectors.expectations.rules import (
    BatchRule,
    CheckRule,
    MessageRule,
    NumberRule,
    RateRule,
    SchemaRule,
    ValueRule,
    count_messages,
    make_measure,
)
from streamer.connectors.expectations.value_tests import (
    ValueTest,
    make_accepted_test,
    make_bounds_test,
    make_pattern_test,
)
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.regex_field import pattern_problem
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.keyed_state import name_expectation_state

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "expect",
    "Checks messages and batches by named expectations, and counts how many pass and fail.",
    description=(
        "An expectation is a name, one rule and the treatment of what fails it. A rule is for "
        "each message, or for a batch as a whole; behind a window a batch is the window. "
        "`expectation_passed_total`, `expectation_failed_total` and `expectation_dropped_total` "
        "count by name. [Expectations](../../expectations.md) has the semantics with examples.\n"
        "\n"
        "**Rules.** `check` is a query that must be true. `value` is a query for a value of each "
        "message, which must pass its tests. `schema` is a processor that must accept each "
        "message. `count` is the number of messages of a batch, and `measure` a query for "
        "another number of it. An expectation has exactly one of them.\n"
        "\n"
        "**Errors and null.** A `check` passes if it gives `true`. An error, null and all other "
        "values fail. A `value` that is null passes all tests but `not_null`; a query that fails "
        "does not pass.\n"
        "\n"
        "**Failed before.** Messages that had failed before are not judged. They stay as they "
        "are, at their place.\n"
        "\n"
        "**Order.** All expectations judge the batch as it came in. A message that fails several "
        "is dropped if one of them drops it, and marked otherwise. What goes on keeps its order. "
        "Use a second `expect` to judge what the first one has left."
    ),
    status="beta",
    fields=(
        Field(
            EXPECTATIONS,
            "object",
            "The expectations, in the order of their errors.",
            shape="array",
            children=(
                Field(
                    NAME,
                    "string",
                    "The name, which is unique in the processor and labels its metrics.",
                    access=Access.NONE,
                    check=find_name_problem,
                    examples=("speed_in_range",),
                ),
                Field(
                    PER,
                    "string",
                    "What is judged: each `message`, or each `batch` as a whole. `window` is the "
                    "same as `batch`, and lint checks that a buffer with windows is before it.",
                    default=MESSAGE,
                    options=(MESSAGE, BATCH, WINDOW),
                ),
                Field(
                    CHECK,
                    "string",
                    "A rule: a query that is true. Per batch it runs once, with the first message "
                    "as `this`; `from_all()` sees the others.",
                    default="",
                    mapping=True,
                    examples=("this.arrived_at >= this.sent_at",),
                ),
                Field(
                    VALUE,
                    "string",
                    "A rule: a query for a value of each message, which passes `not_null`, "
                    "`unique`, `min`, `max`, `accepted_values` and `pattern`, if they are set.",
                    default="",
                    mapping=True,
                    examples=("this.speed",),
                ),
                Field(
                    SCHEMA,
                    "processor",
                    "A rule: a processor that does not mark the message as failed, one of "
                    f"{', '.join(f'`{name}`' for name in SCHEMA_PROCESSORS)}. The message goes "
                    "on as it was.",
                    optional=True,
                    examples=({"json_schema": {"schema_path": "file://./order.json"}},),
                ),
                Field(
                    COUNT,
                    "bool",
                    "A rule: the number of messages of the batch; 0 for an empty window.",
                    default=False,
                ),
                Field(
                    MEASURE,
                    "string",
                    "A rule: a query for a number of the batch, which runs as a `check` per batch.",
                    default="",
                    mapping=True,
                    examples=('json("price").from_all().sum()',),
                ),
                Field(
                    NOT_NULL,
                    "bool",
                    "The value is not null; nor is it missing.",
                    default=False,
                ),
                Field(
                    UNIQUE,
                    "bool",
                    "No earlier message of the batch has the value. The first one passes.",
                    default=False,
                ),
                Field(
                    MIN,
                    "unknown",
                    "The least number that passes, of `value`, `count` or `measure`.",
                    optional=True,
                    check=find_number_problem,
                    examples=(0,),
                ),
                Field(
                    MAX,
                    "unknown",
                    "The largest number that passes.",
                    optional=True,
                    check=find_number_problem,
                    examples=(200,),
                ),
                Field(
                    ACCEPTED_VALUES,
                    "unknown",
                    'The value equals one of these; 1 and 1.0 are equal, 1 and `"1"` are not.',
                    optional=True,
                    shape="array",
                    examples=(["red", "yellow", "green"],),
                ),
                Field(
                    PATTERN,
                    "string",
                    "The value is a text, and the regular expression (RE2) matches in it; "
                    "`^` and `$` anchor it.",
                    default="",
                    access=Access.NONE,
                    check=lambda text: pattern_problem(text) if text else None,
                    examples=("^[A-Z]{1,3}-[0-9]+$",),
                ),
                Field(
                    MIN_PASS_RATE,
                    "float",
                    "The part of the messages of a batch that pass `value` or `schema`, so that "
                    "the batch passes.",
                    default=1.0,
                    check=find_rate_problem,
                ),
                Field(
                    HISTORY,
                    "object",
                    "Compares `count` or `measure` with the last windows of the same key. It "
                    "needs [state by key](../../state.md): a buffer with windows.",
                    children=(
                        Field(
                            WINDOWS,
                            "int",
                            "Number of windows; 0 for no comparison.",
                            default=0,
                            check=find_windows_problem,
                        ),
                        Field(
                            STATISTIC,
                            "string",
                            "The statistic of their numbers.",
                            default=STATISTICS[0],
                            options=STATISTICS,
                        ),
                        Field(
                            MIN_RATIO,
                            "float",
                            "The least number that passes, as a ratio of the statistic.",
                            optional=True,
                            examples=(0.5,),
                        ),
                        Field(
                            MAX_RATIO,
                            "float",
                            "The largest number that passes, as a ratio of the statistic.",
                            optional=True,
                            examples=(2.0,),
                        ),
                        Field(
                            MIN_WINDOWS,
                            "int",
                            "Windows without which nothing is compared, and the batch passes.",
                            default=1,
                        ),
                        Field(
                            GROUP,
                            "string",
                            "A query for the group of the batch, from its first message. Behind "
                            "`group_by_value` or `group_by`, each group is compared with the "
                            "same group of the windows before.",
                            default="",
                            mapping=True,
                            examples=("this.light",),
                        ),
                    ),
                ),
                Field(
                    ON_FAIL,
                    "string",
                    "What fails is `mark`ed: the message, or all messages of the batch, as failed, "
                    f"with the names in the metadata `{FAILED_NAMES}`. With `drop` it is dropped, "
                    "with `warn` it only counts. With `fail` the stream ends with an error.",
                    default=str(OnFail.MARK),
                    options=tuple(OnFail),
                ),
            ),
        ),
    ),
    check=find_problems,
    explains=describe_expectations,
    examples=(
        Example(
            "Drop impossible messages, and mark what is doubtful",
            "pipeline:\n"
            "  processors:\n"
            "    - label: quality\n"
            "      expect:\n"
            "        expectations:\n"
            "          - name: speed_in_range\n"
            "            value: this.speed\n"
            "            not_null: true\n"
            "            min: 0\n"
            "            max: 300\n"
            "            on_fail: drop\n"
            "          - name: known_light\n"
            "            value: this.light\n"
            "            accepted_values: [red, yellow, green]\n",
        ),
        Example(
            "Windows that are complete and as large as usual",
            "buffer:\n"
            "  tumbling_window:\n"
            "    size: 1h\n"
            "    timestamp_mapping: root = this.at\n"
            "    key_mapping: root = this.shop\n"
            "pipeline:\n"
            "  processors:\n"
            "    - expect:\n"
            "        expectations:\n"
            "          - name: prices_known\n"
            "            per: window\n"
            "            value: this.price\n"
            "            not_null: true\n"
            "            min_pass_rate: 0.95\n"
            "            on_fail: warn\n"
            "          - name: usual_volume\n"
            "            per: window\n"
            "            count: true\n"
            "            history:\n"
            "              windows: 24\n"
            "              min_ratio: 0.5\n"
            "              max_ratio: 2\n"
            "            on_fail: warn\n",
        ),
    ),
    begin={
        EXPECTATIONS: [
            {NAME: "has_id", VALUE: "this.id", NOT_NULL: True, ON_FAIL: str(OnFail.WARN)}
        ]
    },
    categories=("Mapping", "Utility"),
    delivery="counted once, also after retries",
)


class ExpectProcessor:
    """Checks batches by expectations."""

    def __init__(self, checker: ExpectationChecker) -> None:
        """Take what checks them."""
        self._checker = checker

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the messages that go on, in one batch."""
        made = self._checker.check_batch(batch, ex)
        return [made] if made else []

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Return the same of messages that are batches by themselves."""
        return self._checker.check_singles(messages, ex)


class _RuleMaker:
    """Makes the rules of expectations."""

    def __init__(self, context: BuildContext, scope: str) -> None:
        self._context = context
        self._scope = scope

    def make(self, one: ParsedFields) -> Expectation:
        """Return an expectation, whose fields `SPEC` has found to be right."""
        name, on_fail = one[NAME], OnFail(one[ON_FAIL].lower())
        if is_per_message(one):
            return Expectation(name, on_fail, message_rule=self._make_message_rule(one))
        return Expectation(name, on_fail, batch_rule=self._make_batch_rule(one))

    def _make_message_rule(self, one: ParsedFields) -> MessageRule:
        if one[CHECK]:
            return CheckRule(compile_mapping(one[CHECK]))
        if one[SCHEMA]:
            return SchemaRule(self._context.build(one[SCHEMA]), one[SCHEMA].name)
        tests = _make_value_tests(one)
        return ValueRule(compile_mapping(one[VALUE]), tests, one[NOT_NULL], one[UNIQUE])

    def _make_batch_rule(self, one: ParsedFields) -> BatchRule:
        if one[CHECK]:
            return CheckRule(compile_mapping(one[CHECK]))
        if one[COUNT] or one[MEASURE]:
            measure = make_measure(compile_mapping(one[MEASURE])) if one[MEASURE] else None
            measures = measure or count_messages
            history, group = self._make_history(one), _make_group(one)
            return NumberRule(measures, _make_bounds(one), history, group)
        return RateRule(self._make_message_rule(one), Fraction(repr(one[MIN_PASS_RATE])))

    def _make_history(self, one: ParsedFields) -> History | None:
        fields = one[HISTORY]
        if not fields[WINDOWS]:
            return None
        return History(
            name_expectation_state(self._scope, one[NAME]),
            fields[WINDOWS],
            fields[STATISTIC].lower(),
            fields[MIN_RATIO],
            fields[MAX_RATIO],
            fields[MIN_WINDOWS],
        )


def _make_bounds(one: ParsedFields) -> ValueTest | None:
    if one[MIN] is None and one[MAX] is None:
        return None
    return make_bounds_test(one[MIN], one[MAX])


def _make_group(one: ParsedFields) -> Mapping | None:
    query = one[HISTORY][GROUP]
    return compile_mapping(query) if query else None


def _make_value_tests(one: ParsedFields) -> Sequence[ValueTest]:
    tests = [_make_bounds(one)]
    if one[ACCEPTED_VALUES] is not None:
        tests.append(make_accepted_test(one[ACCEPTED_VALUES]))
    if one[PATTERN]:
        tests.append(make_pattern_test(one[PATTERN]))
    return [test for test in tests if test is not None]


def build(parsed: ParsedFields, context: BuildContext) -> ExpectProcessor:
    """Compile the rules."""
    origin = ComponentRef(context.component)
    maker = _RuleMaker(context, origin.state_scope)
    expectations = [maker.make(one) for one in parsed[EXPECTATIONS]]
    return ExpectProcessor(ExpectationChecker(expectations, origin))
