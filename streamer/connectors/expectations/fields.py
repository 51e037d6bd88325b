"""The fields of expectations: their names, what is wrong with them together, and a description."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

from streamer.connectors.expectations.history import MAX_WINDOWS
from streamer.sdk.spec import ParsedFields

EXPECTATIONS: Final = "expectations"
NAME: Final = "name"
PER: Final = "per"
CHECK: Final = "check"
VALUE: Final = "value"
NOT_NULL: Final = "not_null"
UNIQUE: Final = "unique"
ACCEPTED_VALUES: Final = "accepted_values"
PATTERN: Final = "pattern"
SCHEMA: Final = "schema"
COUNT: Final = "count"
MEASURE: Final = "measure"
MIN: Final = "min"
MAX: Final = "max"
MIN_PASS_RATE: Final = "min_pass_rate"
HISTORY: Final = "history"
GROUP: Final = "group"
WINDOWS: Final = "windows"
STATISTIC: Final = "statistic"
MIN_RATIO: Final = "min_ratio"
MAX_RATIO: Final = "max_ratio"
MIN_WINDOWS: Final = "min_windows"
ON_FAIL: Final = "on_fail"

MESSAGE: Final = "message"
BATCH: Final = "batch"
WINDOW: Final = "window"
SCHEMA_PROCESSORS: Final = (
    *("json_schema", "avro", "protobuf"),
    *("schema_registry_decode", "schema_registry_encode"),
)

_RULES: Final = (CHECK, VALUE, SCHEMA, COUNT, MEASURE)
_RULES_OF_FIELD: Final = {
    **dict.fromkeys((NOT_NULL, UNIQUE, ACCEPTED_VALUES, PATTERN), (VALUE,)),
    **dict.fromkeys((MIN, MAX), (VALUE, COUNT, MEASURE)),
    MIN_PASS_RATE: (VALUE, SCHEMA),
    HISTORY: (COUNT, MEASURE),
}
_MAX_NAME_CHARACTERS: Final = 100


def find_name_problem(name: str) -> str | None:
    """Return what is wrong with the name of an expectation; None for nothing."""
    if not name.strip():
        return "is empty; name the expectation, such as speed_in_range"
    if len(name) > _MAX_NAME_CHARACTERS or not name.isprintable():
        return f"has control characters or more than {_MAX_NAME_CHARACTERS}; it labels metrics"
    return None


def find_number_problem(value: Any) -> str | None:
    """Return what is wrong with a bound; None for nothing."""
    if type(value) is bool or not isinstance(value, int | float) or not isfinite(value):
        return f"is {value!r}; expected a number"
    return None


def find_rate_problem(rate: float) -> str | None:
    """Return what is wrong with a pass rate; None for nothing."""
    return None if 0 <= rate <= 1 else f"is {rate:g}; expected 0 to 1, such as 0.95"


def find_windows_problem(windows: int) -> str | None:
    """Return what is wrong with a number of windows; None for nothing."""
    if 0 <= windows <= MAX_WINDOWS:
        return None
    return f"is {windows}; expected 1 to {MAX_WINDOWS}, or 0 for no comparison"


def find_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with the fields of all expectations together, see `Spec.check`."""
    if not parsed[EXPECTATIONS]:
        yield EXPECTATIONS, "is empty; name at least one expectation"
    places: dict[str, int] = {}
    for number, one in enumerate(parsed[EXPECTATIONS]):
        place = f"{EXPECTATIONS}.{number}"
        name = one[NAME]
        if name in places:
            text = (
                f"is {name!r}, as in {EXPECTATIONS}.{places[name]}; a name is unique in a processor"
            )
            yield f"{place}.{NAME}", text
        places.setdefault(name, number)
        for field, text in _find_problems_of(one):
            yield f"{place}.{field}" if field else place, text


def is_per_message(one: ParsedFields) -> bool:
    """Return whether an expectation judges each message."""
    return bool(one[PER].lower() == MESSAGE)


def _rules_of(one: ParsedFields) -> list[str]:
    return [name for name in _RULES if one[name]]


def _find_problems_of(one: ParsedFields) -> Iterator[tuple[str, str]]:
    rules = _rules_of(one)
    if len(rules) != 1:
        problem = f"has {' and '.join(rules)}" if rules else "has no rule"
        yield "", f"{problem}; expected exactly one of {', '.join(_RULES)}"
        return
    (rule,) = rules
    yield from _find_misplaced(one, rule)
    if rule == VALUE and not _has_tests(one):
        tests = (NOT_NULL, UNIQUE, MIN, MAX, ACCEPTED_VALUES, PATTERN)
        yield VALUE, f"has nothing to pass; set at least one of {', '.join(tests)}"
    if rule in (COUNT, MEASURE):
        if is_per_message(one):
            yield PER, f"is {MESSAGE}, but {rule} is of a batch; set it to batch or window"
        if one[MIN] is None and one[MAX] is None and not one[HISTORY][WINDOWS]:
            yield rule, f"has nothing to pass; set {MIN}, {MAX} or {HISTORY}"
    if rule == SCHEMA and one[SCHEMA].name not in SCHEMA_PROCESSORS:
        yield SCHEMA, f"is {one[SCHEMA].name}; expected one of {', '.join(SCHEMA_PROCESSORS)}"
    for low, high, fields in ((MIN, MAX, one), (MIN_RATIO, MAX_RATIO, one[HISTORY])):
        if None not in (fields[low], fields[high]) and fields[low] > fields[high]:
            yield low, f"is {fields[low]}, above {high}, which is {fields[high]}"
    yield from _find_history_problems(one[HISTORY])


def _find_misplaced(one: ParsedFields, rule: str) -> Iterator[tuple[str, str]]:
    """Return fields that say nothing beside a rule."""
    for name, rules in _RULES_OF_FIELD.items():
        if name == HISTORY:
            is_set = bool(one[HISTORY][WINDOWS])
        elif name == MIN_PASS_RATE:
            is_set = one[MIN_PASS_RATE] != 1
        else:
            is_set = one[name] is not None and one[name] is not False and one[name] != ""
        if is_set and rule not in rules:
            yield name, f"does not go with {rule}, only with {' or '.join(rules)}"
        elif is_set and name == MIN_PASS_RATE and is_per_message(one):
            yield name, f"is set, but {PER} is {MESSAGE}; set {PER} to batch or window"


def _has_tests(one: ParsedFields) -> bool:
    bounds = one[MIN], one[MAX], one[ACCEPTED_VALUES]
    return bool(one[NOT_NULL] or one[UNIQUE] or one[PATTERN]) or any(
        bound is not None for bound in bounds
    )


def _find_history_problems(history: ParsedFields) -> Iterator[tuple[str, str]]:
    if not history[WINDOWS]:
        return
    if history[MIN_RATIO] is None and history[MAX_RATIO] is None:
        yield HISTORY, f"has nothing to pass; set {MIN_RATIO} or {MAX_RATIO}"
    if not 1 <= history[MIN_WINDOWS] <= history[WINDOWS]:
        text = (
            f"is {history[MIN_WINDOWS]}; expected 1 to {history[WINDOWS]}, the number of {WINDOWS}"
        )
        yield f"{HISTORY}.{MIN_WINDOWS}", text


def describe_expectations(parsed: ParsedFields) -> Iterator[str]:
    """Return a line for each expectation, see `Spec.explains`."""
    for one in parsed[EXPECTATIONS]:
        (rule,) = _rules_of(one)
        yield f"expectation  {one[NAME]}: per {one[PER]}, {_describe(one, rule)}; {one[ON_FAIL]}"


def _describe(one: ParsedFields, rule: str) -> str:
    text = rule
    if rule == SCHEMA:
        text = f"schema by {one[SCHEMA].name}"
    elif rule != COUNT:
        text = f"{rule} {' '.join(one[rule].split())}"
    parts = [name for name in (NOT_NULL, UNIQUE) if one[name]]
    for name in (MIN, MAX, PATTERN):
        if one[name] not in (None, ""):
            parts.append(f"{name} {one[name]}")
    if one[ACCEPTED_VALUES] is not None:
        parts.append(f"one of {len(one[ACCEPTED_VALUES])} values")
    if not is_per_message(one) and rule in (VALUE, SCHEMA):
        parts.append(f"{MIN_PASS_RATE} {one[MIN_PASS_RATE]:g}")
    history = one[HISTORY]
    if history[WINDOWS]:
        bounds = ((MIN_RATIO, history[MIN_RATIO]), (MAX_RATIO, history[MAX_RATIO]))
        ratios = [f"{name} {value:g}" for name, value in bounds if value is not None]
        last = f"the {history[STATISTIC]} of the last {history[WINDOWS]} windows"
        if history[GROUP]:
            last += f" of the group {' '.join(history[GROUP].split())}"
        parts.append(f"{' and '.join(ratios)} of {last}")
    return ", ".join([text, *parts])
