"""Batches whose messages are made late are lists like any other for whoever looks at them."""

import copy
from itertools import chain

import numpy as np
import pytest

from streamer.bloblang import compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.bulk import documents_of, parse_batch
from streamer.core.lazy_batch import LazyBatch
from streamer.core.message import Message
from streamer.window.fire.fire_window import CachedGroup, CachedPack
from streamer.window.pack.message_columns import MessageBuilder
from streamer.window.pack.pack_codec import PackColumns, encode_pack, lengths_of

NUMBERS = [b'{"n":1}', b'{"n":2.5}', b'{"n":3}', b'{"m":[{"n":4}]}']


def packs(raws):
    """Two packs, of which the first holds one message."""
    made = []
    for first, some in ((0, raws[:1]), (1, raws[1:])):
        arrivals = np.arange(first, first + len(some))
        counts = np.array([len(some)])
        columns = PackColumns(
            some, lengths_of(some), arrivals, [b'{"a":"b"}'], None, [b"k"], counts
        )
        made.append(CachedPack(encode_pack(columns)))
    return made


def lazy(raws=NUMBERS, of=None, **told):
    return LazyBatch(CachedGroup([(pack, 0) for pack in of or packs(raws)], MessageBuilder(told)))


def shown(messages):
    return [(message.raw, dict(message.meta)) for message in messages]


PLAIN = shown([Message(raw, {"a": "b", "window": "w"}) for raw in NUMBERS])

USES = {
    "iteration": lambda batch: [message for message in batch],
    "list": list,
    "tuple": tuple,
    "unpacking": lambda batch: [*batch],
    "an argument list": lambda batch: (lambda *some: some)(*batch),
    "chain": lambda batch: chain(batch),
    "slice": lambda batch: batch[:],
    "index": lambda batch: [batch[i] for i in range(-4, 0)],
    "reversed": lambda batch: list(reversed(batch))[::-1],
    "sum": lambda batch: [] + batch,
    "sum with another behind": lambda batch: batch + [],
    "extend": lambda batch: (plain := [], plain.extend(batch))[0],
    "in place": lambda batch: (plain := [], plain.__iadd__(batch))[0],
    "slice of another": lambda batch: (plain := [None], plain.__setitem__(slice(None), batch))[0],
    "copy": lambda batch: batch.copy(),
    "copy.copy": copy.copy,
    "times": lambda batch: batch * 1,
    "pop": lambda batch: [batch.pop(0) for _ in range(len(batch))],
    "sort": lambda batch: (batch.sort(key=lambda m: 0), batch)[1],
    "append": lambda batch: (batch.append(None), batch[:-1])[1],
    "the first, then all": lambda batch: [batch[0], *batch[1:]],
}


@pytest.mark.parametrize("use", USES)
def test_whoever_uses_it_as_a_list_gets_all_messages(use):
    assert shown(USES[use](lazy(window="w"))) == PLAIN


def test_no_method_of_lists_sees_it_without_its_messages():
    harmless = {"__new__", "__init__", "__hash__", "__getattribute__", "__sizeof__"}
    harmless |= {"__class_getitem__", "__doc__"}
    assert set(vars(list)) - harmless <= set(vars(LazyBatch))


def test_the_first_message_and_the_documents_of_all_are_had_without_the_others():
    shared = packs(NUMBERS)
    batches = [lazy(of=shared, window=window) for window in "ab"]
    mapping = compile_mapping(
        'root = {"all": json("n").from_all(), "deep": json("m.0.n").from_all(), '
        '"first": this.n, "window": meta("window"), "size": batch_size()}'
    )
    made = [mapping.apply(batch, 0, Execution(lambda: 0)).doc for batch in batches]
    told = {"all": [1, 2.5, 3, None], "deep": [None] * 3 + [4], "first": 1, "size": 4}
    assert made == [{**told, "window": window} for window in "ab"]
    assert all(batch.content is not None for batch in batches)
    assert documents_of(batches[0], keep=True)[1] is documents_of(batches[1], keep=True)[1]
    assert shown(batches[1]) == shown([Message(raw, {"a": "b", "window": "b"}) for raw in NUMBERS])
    assert all(message.has_doc() for message in batches[1])


def test_a_payload_that_is_no_document_is_found_in_its_message():
    batch = lazy([b'{"n":1}', b"no", b'{"n":3}'])
    parse_batch(batch)
    assert [message.has_doc() for message in batch] == [True, False, False]
    with pytest.raises(MessageError, match="failed to parse"):
        _ = batch[1].doc
    mapping = compile_mapping('root = json("n").from_all()')
    with pytest.raises(MessageError, match="invalid character 'o' in literal null"):
        mapping.apply(lazy([b'{"n":1}', b"no"]), 0, Execution(lambda: 0))
