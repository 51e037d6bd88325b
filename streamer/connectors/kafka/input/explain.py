"""Lines of `explain` about a Kafka input: topics, start, limits, group.

Nothing is asked of a broker.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Final

from streamer.connectors.kafka.cluster.topic_selection import LATEST, TopicSelection
from streamer.connectors.kafka.input.kafka_source import MAX_BATCH_MESSAGES, KafkaSource
from streamer.connectors.kafka.input.start_offsets import StartRule
from streamer.core.durations import format_duration

_MAX_LISTED: Final = 5


def explain_input(source: KafkaSource) -> Iterator[str]:
    """Return what an input does, in lines."""
    server = f"{source.bootstrap}{_explain_connection(source)}"
    yield f"reads        {_explain_selection(source.selection)} at {server}"
    yield f"begins       {_explain_start(source)}; then the checkpoint says where"
    if source.group:
        often = format_duration(source.commit_period)
        commits = f"gets the committed offsets every {often}"
        yield f"group        {source.group!r} {commits}: tools show its lag"
    else:
        yield "group        none gets its offsets: consumer_group names one"
    yield f"micro-batch  {_explain_bound(source)}"
    if source.fail_on_data_loss:
        yield "data loss    messages that are gone before they were read end the stream"
    else:
        yield f"data loss    goes on without what is gone, which {source.lost_metric} counts"


def _explain_selection(selection: TopicSelection) -> str:
    if selection.is_by_pattern:
        text = f"topics with {_join_some(selection.include, ' or ')} in their names"
        if selection.exclude:
            text += f", and not {_join_some(selection.exclude, ' or ')}"
        return f"{text}, also those that come later,"
    if selection.partitions:
        each = (f"{topic}:{number}" for topic, of in selection.partitions.items() for number in of)
        return f"the partitions {_join_some(each)}"
    return f"the topic{'s' * (len(selection.topics) > 1)} {_join_some(selection.topics)}"


def _join_some(names: Iterable[str], between: str = ", ") -> str:
    items = list(names)
    more = f"{between}{len(items) - _MAX_LISTED} more" if len(items) > _MAX_LISTED else ""
    return f"{between.join(items[:_MAX_LISTED])}{more}"


def _explain_connection(source: KafkaSource) -> str:
    sasl, encrypted = source.connection.sasl, source.connection.encryption
    parts = []
    if encrypted:
        parts.append(
            "by TLS" if encrypted.verifies_brokers else "by TLS, certificates not verified"
        )
    if sasl:
        parts.append(f"{sasl.user!r}, {sasl.mechanism}" if sasl.user else sasl.mechanism)
    if source.read_committed:
        parts.append("committed transactions only")
    return f" ({'; '.join(parts)})" if parts else ""


def _explain_start(source: KafkaSource) -> str:
    partitions = source.selection.partitions.values()
    rule = _explain_start_rule(source.start)
    if any(at >= 0 for of in partitions for at in of.values()):
        rule = f"at the offsets that topics names, else {rule}"
    if not source.group:
        return rule
    if source.start.at == "committed":
        return "where the group is, which must have read every partition"
    return f"where the group is, else {rule}"


def _explain_start_rule(start: StartRule) -> str:
    if start.at == "time":
        at = datetime.datetime.fromtimestamp(start.ms / 1000, datetime.UTC)
        return f"at the first message of {at.isoformat().replace('+00:00', 'Z')} or later"
    return "with the next message" if start.number == LATEST else "with the oldest message"


def _explain_bound(source: KafkaSource) -> str:
    if source.bound:
        text = f"at most {source.bound:,} messages"
    else:
        text = f"what waits, at most {MAX_BATCH_MESSAGES:,} messages, fewer when they are large"
    if source.min_partitions is None:
        return f"{text}; each partition in order"
    return f"{text}; in {source.min_partitions} parts at least, so that no order is kept"
