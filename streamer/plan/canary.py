"""The plan of a canary: the changed stream without anything that is seen outside of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from streamer.components.catalog import find_spec
from streamer.config import Config, parse_config
from streamer.core.errors import StreamerError
from streamer.plan.change_impact import ChangeImpact, Effect
from streamer.plan.plan import Plan
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import walk_components
from streamer.sdk.window_buffer.fields import RETENTION

QUIET_PROCESSORS: Final = frozenset(
    (
        *("archive", "avro", "benchmark", "bloblang", "bounds_check", "branch", "cached", "catch"),
        *("compress", "crash", "decompress", "dedupe", "deduplicate", "duckdb", "expect"),
        *("for_each", "grok", "group_by", "group_by_value", "insert_part", "javascript"),
        *("jmespath", "jq", "json_schema", "log", "mapping", "match_pattern", "metric", "msgpack"),
        *("mutation", "noop", "parallel", "parquet_decode", "parquet_encode", "parse_log"),
        *("processors", "protobuf", "rate_limit", "resource", "retry", "schema_registry_decode"),
        *("select_parts", "sleep", "split", "sql_select", "string_split", "switch"),
        *(
            "sync_response",
            "text_chunker",
            "throttle",
            "try",
            "try_catch",
            "unarchive",
            "unnest",
            "wasm",
        ),
        *("while", "workflow", "xml"),
    )
)
"""Processors that change nothing outside of the stream; some of them read there."""

CALLING_PROCESSORS: Final = frozenset(
    (
        *("aws_dynamodb_partiql", "aws_lambda", "cache", "cohere_chat", "cohere_embeddings"),
        *("cohere_rerank", "command", "http", "mongodb", "nats_kv", "nats_request_reply"),
        *("ollama_chat", "ollama_embeddings", "ollama_moderation", "openai_chat_completion"),
        *("openai_embeddings", "openai_image_generation", "openai_speech"),
        *("openai_transcription", "openai_translation", "python", "qdrant", "redis"),
        *("redis_script", "schema_registry_encode", "sql_insert", "sql_raw", "subprocess"),
    )
)
"""Processors that may change something outside, whatever their settings say."""

_NUMBERED_BUFFERS: Final = frozenset(("count_window", "state_window", "table_join", "window_join"))
"""Buffers whose results have numbers of messages, the times of a pair, or an order by key."""

_CACHE_USERS: Final = frozenset(("cached", "dedupe"))
_LOCAL_RATE_LIMITS: Final = frozenset(("local",))
_LOCAL_CACHES: Final = frozenset(("noop",))


class CanaryRefusedError(StreamerError):
    """The change cannot be tried by a canary; the text says why, and what to do."""


def check_change(judgement: ChangeImpact) -> None:
    """Check that the windows of a changed stream can be compared with those of the running one.

    Raises:
        CanaryRefusedError: they cannot.
    """
    if judgement.effect == Effect.RESET:
        raise CanaryRefusedError(
            f"the change loses {' and '.join(judgement.losses)}: a canary continues the open "
            "windows of the running revision, and these do not fit; deploy it without a canary"
        )
    if judgement.effect == Effect.RESTART:
        raise CanaryRefusedError(
            "the change applies at the next start of the program, so a canary has nothing to "
            "compare; deploy it without a canary"
        )


def check_calls(plan: Plan, allowed: Collection[str] = ()) -> list[str]:
    """Check that a second run of a stream's processors is not seen outside.

    Args:
        plan: the plan of the changed stream.
        allowed: names and labels of components whose calls may be made a second time.

    Returns:
        Notes about the run, in sentences.

    Raises:
        CanaryRefusedError: it would be seen; the text names the components.
    """
    _check_windows(plan)
    problems, caches = list_calls(plan, allowed)
    if problems:
        raise CanaryRefusedError(
            f"a canary would repeat calls that are seen outside: {'; '.join(problems)}. Allow the "
            "calls that may be made twice with --allow-calls NAME, or deploy it without a canary"
        )
    return [
        f"The cache {label} is in memory: the canary begins with an empty one." for label in caches
    ]


def list_calls(plan: Plan, allowed: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Return which of a stream's processors may change something outside in a second run.

    Args:
        plan: the stream's plan.
        allowed: names and labels of components that may.

    Returns:
        The components with reasons, and the labels of caches in memory that are used.
    """
    problems, caches = [], []
    for component in _used_components(plan):
        if {component.name, component.label} & set(allowed):
            continue
        problem, cache = _judge_component(component, plan)
        if problem:
            problems.append(f"{component.path or component.label}: {problem}")
        if cache:
            caches.append(cache)
    return problems, list(dict.fromkeys(caches))


def _check_windows(plan: Plan) -> None:
    """Check that all buffers have windows whose results are known by key and bounds.

    Raises:
        CanaryRefusedError: one has not; the text says why.
    """
    users = [one.keyed_state.users for one in plan.buffers] or [plan.keyed_state.users]
    for buffer, state_users in zip(plan.all_buffers, users, strict=True):
        spec = find_spec(Kind.BUFFER, buffer.name)
        names = {field.name for field in spec.fields} if spec is not None else set()
        if buffer.name in _NUMBERED_BUFFERS:
            if state_users:
                raise CanaryRefusedError(
                    f"the processors behind {buffer.name} keep a state for each key, and such "
                    "results of single messages are not compared; deploy it without a canary"
                )
        elif RETENTION not in names:
            raise CanaryRefusedError(
                f"the buffer {buffer.name} has no windows with bounds, and a canary compares "
                "windows by these; deploy it without a canary, for example with "
                "--rollback-on-failure"
            )


def _used_components(plan: Plan) -> Iterator[ParsedComponent]:
    """Give the processors and resources that a canary runs: all but inputs and outputs."""
    roots = [*plan.input.processors, *plan.all_buffers, *plan.all_processors]
    seen: set[int] = set()
    for one in walk_components([plan.input]):
        if one.kind == Kind.PROCESSOR:
            roots.append(one)
    roots += [
        component
        for (kind, _), component in plan.resources.items()
        if kind in (Kind.PROCESSOR, Kind.RATE_LIMIT)
    ]
    for one in walk_components(roots):
        if id(one) not in seen and one.kind in (Kind.PROCESSOR, Kind.RATE_LIMIT):
            seen.add(id(one))
            yield one


def _judge_component(component: ParsedComponent, plan: Plan) -> tuple[str, str]:
    """Return why a component must not run twice, and the cache in memory that it uses."""
    name = component.name
    if component.kind == Kind.RATE_LIMIT:
        if name in _LOCAL_RATE_LIMITS:
            return "", ""
        return f"the rate limit {name} counts outside of the stream", ""
    if name in _CACHE_USERS or _reads_cache(component):
        return _judge_cache(component, plan, is_read=name == "cache")
    if name in QUIET_PROCESSORS or _only_gets(component):
        return "", ""
    return f"{name} may change something there", ""


def _reads_cache(component: ParsedComponent) -> bool:
    fields = component.config
    return component.name == "cache" and isinstance(fields, ParsedFields)


def _only_gets(component: ParsedComponent) -> bool:
    fields = component.config
    return (
        component.name == "http"
        and isinstance(fields, ParsedFields)
        and str(fields.get("verb")).upper() in ("GET", "HEAD")
    )


def _judge_cache(component: ParsedComponent, plan: Plan, is_read: bool) -> tuple[str, str]:
    fields = component.config
    label = str(fields.get("cache" if component.name != "cache" else "resource"))
    resource = plan.resources.get((Kind.CACHE, label))
    spec = find_spec(Kind.CACHE, resource.name) if resource is not None else None
    if resource is not None and resource.name in _LOCAL_CACHES:
        return "", ""
    if spec is not None and spec.in_memory:
        return "", label
    if is_read and str(fields.get("operator")) == "get":
        return "", ""
    return f"{component.name} changes the cache {label}", ""


def make_canary_plan(plan: Plan) -> Plan:
    """Return a plan whose results go nowhere: a canary only has them compared.

    Args:
        plan: of the changed stream, which has windows.
    """
    drop = parse_config("output: {drop: {}}", env={}).output

    def dropping(output: ParsedComponent | None) -> ParsedComponent | None:
        return None if output is None else replace(drop, path=output.path, label=output.label)

    buffers = tuple(
        replace(one, output=dropping(one.output), late_output=dropping(one.late_output))
        for one in plan.buffers
    )
    output, late = dropping(plan.output), dropping(plan.late_output)
    assert output is not None
    return replace(
        plan, output=output, late_output=late, buffers=buffers, event_topics=(), traced=False
    )


def list_output_changes(config: Config, running: Config) -> list[str]:
    """Return notes about changes that a comparison of windows does not show."""
    if config.output == running.output:
        return []
    return ["The change of the output is not compared: rows are those that the pipeline gives."]
