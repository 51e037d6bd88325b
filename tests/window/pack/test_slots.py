"""Keys and their groups: looked up together they are what they are one by one."""

import zlib

import pytest

from streamer.core.json.dump import dump_json, dump_json_texts
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED
from streamer.window.pack.message_columns import KeyGroups

TEXTS = ["a", "", "a", '","', "\\", 'x\\"', "é", "\n", "1.0", "\x00", "b", "", "\u2028"]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:-1], [""], []])
def test_texts_written_together_are_what_each_is(texts: list[str]) -> None:
    assert dump_json_texts(texts) == [dump_json(text) for text in texts]


@pytest.mark.parametrize("as_json", [True, False])
def test_groups_of_texts_looked_up_together_are_those_of_each(as_json: bool) -> None:
    groups, singly = KeyGroups(3, as_json), KeyGroups(3, as_json)
    codes = [*groups.groups_of_texts(TEXTS[:4]), *groups.groups_of_texts(TEXTS)]
    assert codes == [*map(singly.group_of_result, TEXTS[:4]), *map(singly.group_of_result, TEXTS)]
    assert groups.key_of == singly.key_of
    assert len(set(groups.key_of)) == len(groups.key_of) == len(set(TEXTS))
    assert groups.shard_of == [zlib.crc32(key) % 3 for key in groups.key_of]


@pytest.mark.parametrize("other", [1, None, True])
def test_what_is_no_text_is_refused_by_those_who_ask_for_texts(other: object) -> None:
    groups = KeyGroups(1, True)
    groups.groups_of_texts(["1"])
    with pytest.raises(TypeError):
        groups.groups_of_texts(["1", other])


def test_what_reads_like_a_text_as_json_has_its_group() -> None:
    groups = KeyGroups(2, True)
    same = [b"abc", "YWJj", Timestamp(0), "1970-01-01T00:00:00Z", 1, 1.0, "1"]
    found = [groups.group_of_result(value) for value in same]
    assert found == [0, 0, 1, 1, 2, 2, 3]
    assert groups.other_spellings == []


def test_an_empty_text_is_no_key_where_keys_are_texts_and_one_where_they_are_json() -> None:
    texts, values = KeyGroups(1, False), KeyGroups(1, True)
    assert (
        texts.groups_of_texts(["a", ""])[1] == texts.group_of_result(DELETED) == texts.keyless_group
    )
    assert (
        values.groups_of_texts(["a", ""])[1]
        != values.group_of_result(DELETED)
        == values.keyless_group
    )
