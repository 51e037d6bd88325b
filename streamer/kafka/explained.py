"""What `explain` says of a Kafka input: what is read, from where on, how much, and who hears of it.

Nothing is asked of a broker.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Final

from streamer.durations import format_duration
from streamer.kafka.source import MOST, KafkaSource
from streamer.kafka.starting import Start
from streamer.kafka.topics import LATEST, Selection

_LISTED: Final = 5


def explained(source: KafkaSource) -> Iterator[str]:
    """Return what an input does, in lines."""
    yield f"reads        {_what(source.selection)} at {source.bootstrap}{_how(source)}"
    yield f"begins       {_where(source)}; then the checkpoint says where"
    if source.group:
        often = format_duration(source.commit_period)
        yield f"group        {source.group!r} hears every {often} what is safe: tools show its lag"
    else:
        yield "group        none hears how far it is: consumer_group names one"
    yield f"micro-batch  {_how_much(source)}"
    if source.fail_on_data_loss:
        yield "data loss    messages that are gone before they were read end the stream"
    else:
        yield f"data loss    goes on without what is gone, which {source.lost_metric} counts"


def _what(selection: Selection) -> str:
    if selection.by_pattern:
        found = f"topics with {_several(selection.include, ' or ')} in their names"
        if selection.exclude:
            found += f", and not {_several(selection.exclude, ' or ')}"
        return f"{found}, also those that come later,"
    if selection.partitions:
        each = (f"{topic}:{number}" for topic, of in selection.partitions.items() for number in of)
        return f"the partitions {_several(each)}"
    return f"the topic{'s' * (len(selection.topics) > 1)} {_several(selection.topics)}"


def _several(found: Iterable[str], between: str = ", ") -> str:
    items = list(found)
    more = f"{between}{len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return f"{between.join(items[:_LISTED])}{more}"


def _how(source: KafkaSource) -> str:
    sasl, encrypted = source.connection.sasl, source.connection.encryption
    found = []
    if encrypted:
        found.append("by TLS" if encrypted.verified else "by TLS, certificates not verified")
    if sasl:
        found.append(f"{sasl.user!r}, {sasl.mechanism}" if sasl.user else sasl.mechanism)
    if source.read_committed:
        found.append("committed transactions only")
    return f" ({'; '.join(found)})" if found else ""


def _where(source: KafkaSource) -> str:
    partitions = source.selection.partitions.values()
    rule = _rule(source.start)
    if any(at >= 0 for of in partitions for at in of.values()):
        rule = f"at the offsets that topics names, else {rule}"
    if not source.group:
        return rule
    if source.start.at == "committed":
        return "where the group is, which must have read every partition"
    return f"where the group is, else {rule}"


def _rule(start: Start) -> str:
    if start.at == "time":
        at = datetime.datetime.fromtimestamp(start.ms / 1000, datetime.UTC)
        return f"at the first message of {at.isoformat().replace('+00:00', 'Z')} or later"
    return "with the next message" if start.number == LATEST else "with the oldest message"


def _how_much(source: KafkaSource) -> str:
    if source.bound:
        found = f"at most {source.bound:,} messages"
    else:
        found = f"what waits, at most {MOST:,} messages, fewer when they are large"
    if source.min_partitions is None:
        return f"{found}; each partition in order"
    return f"{found}; in {source.min_partitions} parts at least, so that no order is kept"
