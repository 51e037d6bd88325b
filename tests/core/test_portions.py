"""Items are cut into lists of a bounded size, in order, as they are asked for."""

from collections.abc import Iterator

from streamer.core.portions import cut_portions


def test_a_list_ends_at_its_size_and_one_item_may_be_larger() -> None:
    texts = ["ab", "c", "defghi", "j", "k"]
    assert [*cut_portions(texts, 3)] == [["ab", "c"], ["defghi"], ["j", "k"]]
    assert [*cut_portions([], 3)] == []


def test_a_list_ends_at_its_number_of_items_too() -> None:
    assert [*cut_portions(range(5), 100, lambda one: 1, 2)] == [[0, 1], [2, 3], [4]]


def test_no_more_is_read_than_a_list_takes() -> None:
    read = []

    def items() -> Iterator[str]:
        for text in ("a", "b", "c"):
            read.append(text)
            yield text

    assert next(cut_portions(items(), 2)) == ["a", "b"]
    assert read == ["a", "b"]
